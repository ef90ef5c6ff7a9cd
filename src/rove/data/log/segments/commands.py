"""The commands of a partition to a disk.

Law: commands are executed in order, one after the other, and the first that fails ends its group. `Publish` is the
exception: its content is safe already, so its failure is reported to the partition and does not fail the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType, Protocol, TypeAlias

Position = NewType("Position", int)  # of an entry in its partition: 0, 1, 2 …; bounds are exclusive
START = Position(0)
Bytes: TypeAlias = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Write:
    """Write the parts, one after the other, into a file. The file is created if it does not exist."""

    file: str
    offset: int
    parts: tuple[Bytes, ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """Return when the bytes and the length of a file would survive a power cut."""

    file: str


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """Return when the names of all files would survive a power cut."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut a file down to a length."""

    file: str
    length: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file, if it exists."""

    file: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace a file atomically: after a power cut it is the old one or the new one."""

    file: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Publish:
    """Tell readers how far they may read, with one write to the start of a file."""

    file: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Clear:
    """Remove the folder with all its files."""


Command: TypeAlias = Write | Sync | SyncFolder | Truncate | Delete | Replace | Publish | Clear


@dataclass(frozen=True, slots=True)
class Group:
    """Commands whose success or failure is reported to the partition under one token."""

    token: int
    commands: tuple[Command, ...]


class Disk(Protocol):
    """One folder. Failures raise OSError; a missing file raises FileNotFoundError."""

    def execute(self, command: Command) -> None: ...

    def sizes(self) -> dict[str, int]:
        """Every file and its length."""

    def read(self, file: str, offset: int, length: int) -> bytes:
        """Bytes of a file; fewer at its end."""

    def mapped(self, file: str, length: int) -> Bytes:
        """At least the first `length` bytes of a file, or all it has, without a copy."""

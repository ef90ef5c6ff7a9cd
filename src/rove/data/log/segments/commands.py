"""What a partition asks of a disk.

Law: commands are carried out in order, one after the other; the first that fails ends its group. A `Publish` is the
exception: what it tells readers is safe already, so its failure is told to the partition and costs no group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType, Protocol, TypeAlias

Position = NewType("Position", int)  # of an entry in its partition: 0, 1, 2 … ; as a bound, the first not meant
START = Position(0)
Bytes: TypeAlias = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Write:
    """Put the parts, one after the other, into a file that is made if need be."""

    file: str
    offset: int
    parts: tuple[Bytes, ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """Return when the bytes and the length of a file would outlive a power cut."""

    file: str


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """Return when the names of all files would outlive a power cut."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut a file down to a length."""

    file: str
    length: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file, if it is there."""

    file: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Make a file anew in one step: after a power cut it is the old one or the new one."""

    file: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Publish:
    """Tell readers how far they may read, with one write to the start of a file."""

    file: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Clear:
    """Remove the folder with all that is in it."""


Command: TypeAlias = Write | Sync | SyncFolder | Truncate | Delete | Replace | Publish | Clear


@dataclass(frozen=True, slots=True)
class Group:
    """Commands whose success or failure is told to the partition under one token."""

    token: int
    commands: tuple[Command, ...]


class Disk(Protocol):
    """One folder. Trouble is an OSError; a file that is not there a FileNotFoundError."""

    def execute(self, command: Command) -> None: ...

    def sizes(self) -> dict[str, int]:
        """Every file and its length."""

    def read(self, file: str, offset: int, length: int) -> bytes:
        """Bytes of a file, fewer where it ends."""

    def mapped(self, file: str, length: int) -> Bytes:
        """At least the first `length` bytes of a file, or all it has, without copying them."""

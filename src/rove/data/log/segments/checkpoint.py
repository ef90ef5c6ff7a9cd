"""The checkpoint of a partition: what its reader has made of all entries before one position.

Law: two are kept, each in a file of its own, and a new one replaces the older of them. So a damaged file costs the
entries between two checkpoints, which are still there: entries are deleted only below the older one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from rove.data.log.segments.carrier import Read
from rove.data.log.segments.commands import START, Command, Delete, Position, Replace, SyncFolder
from rove.data.log.segments.format import body_at, record

FILES = ("checkpoint-0", "checkpoint-1")
CONSUMER = "checkpoint"  # its name among the readers of the partition
CHECKPOINT_BYTES_MAX = 255 * 1024 * 1024  # a larger one is not written

_encode = msgspec.msgpack.Encoder().encode


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    """What a reader has made of the entries before a position."""

    position: Position
    body: bytes


_decode = msgspec.msgpack.Decoder(Checkpoint).decode


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of one partition: where the newest one is, and one that waits to be written."""

    slot: int = 0  # the file of the next one
    newest: Position = START  # the position of the newest that is safe
    safe: bool = False  # whether there is one
    found: Checkpoint | None = None  # what was found when the partition was opened
    waits: Checkpoint | None = None
    alone: bool = False  # whether the other file is removed when this one is written

    def moved_to(self, position: Position) -> Checkpoints:
        """The same state with an earlier position. It is written in the place of the newest one. The other one goes,
        because its position may be beyond this one too. No entry is deleted because of it."""
        body = b"" if self.found is None else self.found.body
        moved = Checkpoint(position, body)
        return Checkpoints(slot=1 - self.slot, found=moved, waits=moved, alone=True)

    def take_off(self) -> list[Command]:
        """The commands that write the one that waits."""
        if self.waits is None:
            return []
        commands: list[Command] = [Replace(FILES[self.slot], record(_encode(self.waits)))]
        if self.alone:
            commands += [Delete(FILES[1 - self.slot]), SyncFolder()]
        self.waits, self.alone = None, False
        return commands

    def landed(self, position: Position) -> Position | None:
        """A checkpoint was written. Returns the position of the one before it, below which no entry is needed."""
        before = self.newest if self.safe else None
        self.newest, self.safe, self.slot = position, True, 1 - self.slot
        return before


def find(files: Mapping[str, int], read: Read, trimmed: bool) -> tuple[Checkpoints, list[str], str]:
    """The checkpoints in the files of a partition, what is said of damaged ones, and the damage if none is left and
    entries were `trimmed`."""
    there = [(slot, _read(file, files, read)) for slot, file in enumerate(FILES) if file in files]
    whole = [(found.position, slot, found) for slot, found in there if found is not None]
    damaged = [FILES[slot] for slot, found in there if found is None]
    if not whole:
        if trimmed:
            return Checkpoints(), [], f"{' and '.join(damaged) or 'its checkpoints'} cannot be read"
        return Checkpoints(), [f"{file} was damaged, and is made again from all input" for file in damaged], ""
    position, slot, newest = max(whole)
    notices = [f"{file} was damaged, and is made again from {FILES[slot]}" for file in damaged]
    return Checkpoints(slot=1 - slot, newest=position, safe=True, found=newest), notices, ""


def _read(file: str, files: Mapping[str, int], read: Read) -> Checkpoint | None:
    data = read(file, 0, files[file])
    body = body_at(data, 0, len(data))
    if body is None:
        return None
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None

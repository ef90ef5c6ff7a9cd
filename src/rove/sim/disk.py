"""A simulated disk that fails as real disks do, for the commands of one partition.

Law: synced data survives a crash unchanged, unless the disk `lies` or bytes are flipped. Of other data, each block may
be kept, missing, zero or garbage, each file may be long or short, and each new or deleted name may be stored or not.
The random generator decides.
"""

from __future__ import annotations

import errno
from random import Random
from typing import Protocol

from rove.data.log.segments.commands import (
    Bytes,
    Clear,
    Command,
    Delete,
    Publish,
    Replace,
    Sync,
    SyncFolder,
    Truncate,
    Write,
)

HARMS = ("deleted", "cut", "flipped", "zeroed")  # what may become of a file that was safe


class Chance(Protocol):
    """The methods of `random.Random` that are needed."""

    def random(self) -> float: ...

    def randint(self, a: int, b: int) -> int: ...

    def randbytes(self, n: int) -> bytes: ...


class SimFile:
    """A file's bytes as the process sees them, and as they are on the disk."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.synced = b""

    def torn(self, chance: Chance, block_bytes: int) -> bytes:
        """The bytes that are left after a power cut."""
        if self.written == self.synced:
            return self.synced
        shorter, longer = sorted((len(self.written), len(self.synced)))
        length = (shorter, longer, chance.randint(shorter, longer))[chance.randint(0, 2)]
        left = bytearray(self.synced[:length].ljust(length, b"\0"))
        for start in range(0, length, block_bytes):
            end = min(start + block_bytes, length)
            new = bytes(self.written[start:end])
            fate = chance.random()
            if fate < 0.6:
                left[start : start + len(new)] = new
            elif fate < 0.75:
                for at in range(start, end):
                    if at >= len(self.synced):  # synced bytes of a block are kept
                        left[at] = chance.randbytes(1)[0]
        return bytes(left)


class SimDisk:
    """One folder in memory. `capacity_bytes` makes it full, `fail_after` breaks it, `crash` cuts the power."""

    def __init__(self, chance: Chance, *, capacity_bytes: int | None = None, block_bytes: int = 64) -> None:
        self._chance, self._block_bytes = chance, block_bytes
        self.capacity_bytes = capacity_bytes
        self.fail_after: int | None = None  # this many commands succeed, the next fails half done
        self.slow_us = 0  # the most that a sync takes beyond a millisecond
        self.lies = False  # a sync is answered, and not done
        self._files: dict[str, SimFile] = {}
        self._names: dict[str, SimFile] = {}  # the names as they are on the disk

    def execute(self, command: Command) -> None:
        part = 1.0
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                self.fail_after, part = None, self._chance.random()
        self._do(command, part)
        if part < 1.0:
            raise OSError(errno.EIO, "the simulated disk fails")

    def duration_us(self, command: Command) -> int:
        """How long a command takes; only syncs take noticeable time (1 ms and more)."""
        if isinstance(command, Sync | SyncFolder | Replace):
            return 1_000 + self._chance.randint(0, self.slow_us)
        return 10

    def sizes(self) -> dict[str, int]:
        return {name: len(file.written) for name, file in self._files.items()}

    def read(self, file: str, offset: int, length: int) -> bytes:
        return bytes(self._existing(file).written[offset : offset + length])

    def mapped(self, file: str, length: int) -> Bytes:
        return bytes(self._existing(file).written)

    def crash(self) -> None:
        """Cut the power. Synced data is left, and pieces of the rest."""
        left: dict[str, SimFile] = {}
        for name in sorted(self._files.keys() | self._names.keys()):
            seen, named = self._files.get(name), self._names.get(name)
            file = seen if seen is named or self._chance.random() < 0.5 else named
            if file is not None:
                left[name] = SimFile()
                left[name].synced = file.torn(self._chance, self._block_bytes)
                left[name].written = bytearray(left[name].synced)
        self._files, self._names = left, dict(left)

    def harm(self, file: str, harm: str, place: float) -> None:
        """Damage what was safe: delete a file, cut it, flip a byte of it or zero 64 of them. `place` is from 0 to 1."""
        if harm == "deleted":
            del self._files[file]
            self._names.pop(file, None)
            return
        data = self._files[file].written
        at = int(place * len(data))
        match harm:
            case "cut":
                del data[at:]
            case "flipped":
                data[at : at + 1] = bytes(byte ^ 0x10 for byte in data[at : at + 1])
            case "zeroed":
                data[at : at + 64] = bytes(len(data[at : at + 64]))
        self._files[file].synced = bytes(data)

    def flip(self, random: Random) -> bool:
        """Change a few bytes of a file. Returns whether there were any."""
        files = sorted(name for name, file in self._files.items() if file.written)
        if not files:
            return False
        file = self._files[random.choice(files)]
        start = random.randrange(len(file.written))
        for at in range(start, min(len(file.written), start + random.choice((1, 1, 8, 100)))):
            file.written[at] ^= random.randint(1, 255)
        file.synced = bytes(file.written)
        return True

    def _do(self, command: Command, part: float) -> None:
        match command:
            case Write(file, offset, parts):
                self._write(file, offset, b"".join(parts), part)
            case Publish(file, data):
                self._write(file, 0, data, part)
            case Sync(file) if part == 1.0:
                existing = self._existing(file)
                if not self.lies:
                    existing.synced = bytes(existing.written)
            case SyncFolder() if part == 1.0 and not self.lies:
                self._names = dict(self._files)
            case Truncate(file, length) if part == 1.0:
                written = self._existing(file).written
                written[:] = written[:length].ljust(length, b"\0")
            case Delete(file) if part == 1.0:
                self._files.pop(file, None)
            case Clear() if part == 1.0:
                self._files = {}
            case Replace(file, data) if part == 1.0:
                self._make_room(len(data))
                new = SimFile()
                new.written, new.synced = bytearray(data), b"" if self.lies else data
                self._files[file] = new
                if not self.lies:
                    self._names[file] = new
            case _:
                pass

    def _write(self, name: str, offset: int, data: bytes, part: float) -> None:
        data = data[: int(len(data) * part)]
        file = self._files.setdefault(name, SimFile())
        grows = max(0, offset + len(data) - len(file.written))
        room = grows if self.capacity_bytes is None else self.capacity_bytes - sum(self.sizes().values())
        fits = data[: len(data) - max(0, grows - room)]
        file.written.extend(bytes(max(0, offset - len(file.written))))
        file.written[offset : offset + len(fits)] = fits
        if len(fits) < len(data):
            raise OSError(errno.ENOSPC, "the simulated disk is full")

    def _make_room(self, size: int) -> None:
        if self.capacity_bytes is not None and sum(self.sizes().values()) + size > self.capacity_bytes:
            raise OSError(errno.ENOSPC, "the simulated disk is full")

    def _existing(self, name: str) -> SimFile:
        if name not in self._files:
            raise FileNotFoundError(errno.ENOENT, "no such simulated file", name)
        return self._files[name]

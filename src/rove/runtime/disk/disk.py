"""Partitions of the log on real files.

Law: `execute` returns when the whole command is done, or raises the system's OSError. A folder has one writer.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from rove.data.log.segments.commands import (
    Bytes,
    Clear,
    Command,
    Delete,
    Position,
    Publish,
    Replace,
    Sync,
    SyncFolder,
    Truncate,
    Write,
)
from rove.data.log.segments.damage import AlreadyOpen
from rove.data.log.segments.disk_work.commit import commit, recovered, retire
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.model.batch import Header
from rove.model.clock import MICROS_MIN
from rove.model.errors import DiskError

OPEN_FILES_MAX = 8
MAPPED_FILES_MAX = 4
PARTS_PER_WRITE = 512  # systems take at most 1,024 buffers in a call, some fewer
LOCK_FILE = "lock"
PRIVATE = 0o600  # the permissions of files that only this user may read
FOLDERS, ROWS = (
    0o750,
    0o640,
)  # of folders and files with rows: a group may be given access by the folder of the node; nobody else has any
_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # the length is synced with the bytes, times are not


class LogFolder:
    """One partition's folder: executes commands, reads, maps."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open: OrderedDict[str, int] = OrderedDict()
        self._maps: OrderedDict[str, mmap.mmap] = OrderedDict()
        self._lock: int | None = None

    def execute(self, command: Command) -> None:
        match command:
            case Write(file, offset, parts):
                _write(self._file(file, create=True), offset, parts)
            case Sync(file):
                _sync(self._file(file))
            case SyncFolder():
                _sync_folder(self.path)
            case Truncate(file, length):
                os.ftruncate(self._file(file), length)
            case Delete(file):
                self._close(file)
                (self.path / file).unlink(missing_ok=True)
            case Replace(file, data):
                self._replace(file, data)
            case Publish(file, data):
                _write(self._file(file, create=True), 0, (data,))
            case Clear():
                for name in list(self._open):
                    self._close(name)
                shutil.rmtree(self.path, ignore_errors=True)  # remaining files are found at the next start

    def sizes(self) -> dict[str, int]:
        found = {}
        for entry in os.scandir(self.path):
            try:
                found[entry.name] = entry.stat().st_size
            except FileNotFoundError:
                continue  # deleted meanwhile
        return found

    def read(self, file: str, offset: int, length: int) -> bytes:
        descriptor = os.open(self.path / file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while length > 0 and (part := os.pread(descriptor, length, offset)):
                parts.append(part)
                offset, length = offset + len(part), length - len(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def mapped(self, file: str, length: int) -> Bytes:
        found = self._maps.get(file)
        if found is None or len(found) < length:
            with open(self.path / file, "rb") as opened:
                if not os.fstat(opened.fileno()).st_size:
                    return b""  # an empty file cannot be mapped
                found = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            self._maps[file] = found
            if len(self._maps) > MAPPED_FILES_MAX:
                self._maps.popitem(last=False)  # unmapped when the last batch read from it is gone
        self._maps.move_to_end(file)
        return memoryview(found)

    def lock(self) -> None:
        """Become the only writer, until `close` or the end of this process."""
        descriptor = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, ROWS)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise AlreadyOpen(f"{self.path} is written by process {holder}; stop it, or use another folder") from error
        self._lock = descriptor  # set first, so that the lock is closed even if the next lines fail
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        for file in list(self._open):
            self._close(file)
        self._maps.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _file(self, file: str, *, create: bool = False) -> int:
        descriptor = self._open.get(file)
        if descriptor is None:
            flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
            descriptor = self._open[file] = os.open(self.path / file, flags, ROWS)
            if len(self._open) > OPEN_FILES_MAX:
                self._close(next(iter(self._open)))
        self._open.move_to_end(file)
        return descriptor

    def _close(self, file: str) -> None:
        descriptor = self._open.pop(file, None)
        if descriptor is not None:
            os.close(descriptor)

    def _replace(self, file: str, data: bytes) -> None:
        new = self.path / f"{file}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, ROWS)
        try:
            _write(descriptor, 0, (data,))
            _sync(descriptor)
        finally:
            os.close(descriptor)
        self._close(file)
        new.replace(self.path / file)
        _sync_folder(self.path)


class LogWriter:
    """A partition and its folder, for a writer that waits for the disk."""

    def __init__(self, partition: Partition, folder: LogFolder) -> None:
        self.partition, self.folder = partition, folder

    def append(
        self, header: Header, payload: bytes | memoryview | pa.Buffer | None = None, low: int = MICROS_MIN
    ) -> Position | None:
        """Append a batch. It is safe after a `commit` that returns its position."""
        return self.partition.append(header, payload, low)

    def commit(self, now_us: int | None = None) -> range:
        """Sync appended batches. Returns the positions that are safe now."""
        return commit(self.partition, self.folder, _now_us() if now_us is None else now_us)

    def retire(self, now_us: int | None = None) -> int:
        """Delete segments that are not needed. Returns how many."""
        return retire(self.partition, self.folder, _now_us() if now_us is None else now_us)

    def close(self) -> None:
        self.folder.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_partition(path: str | Path, schema: pa.Schema, settings: LogSettings | None = None) -> LogWriter:
    """The writer of a partition, recovered if it exists, created if not."""
    path = Path(path)
    folder = LogFolder(path)
    try:
        if not path.is_dir():
            make_private(path, FOLDERS)
            _sync_folder(path.parent)
        folder.lock()
        partition, _ = recovered(path.name, schema, folder, settings, _now_us())
        commit(partition, folder, _now_us())
    except OSError as error:
        folder.close()
        raise DiskError(
            f"the log in {path} cannot be opened: {error}; repair the disk or use another folder"
        ) from error
    except BaseException:
        folder.close()
        raise
    return LogWriter(partition, folder)


def open_reader(path: str | Path, position: int = 0) -> Reader:
    """A reader of a partition that another process may be writing."""
    return Reader(LogFolder(path), position)


def make_private(path: Path, mode: int = 0o700) -> None:
    """Make a folder, and those above it that do not exist, so that only this user can look into them, or as `mode`
    says. A folder that exists keeps its permissions."""
    if not path.is_dir():
        make_private(path.parent, mode)
        path.mkdir(mode=mode, exist_ok=True)


def _now_us() -> int:
    return time.time_ns() // 1_000


def _write(descriptor: int, offset: int, parts: tuple[Bytes, ...]) -> None:
    """Write all bytes, however few the system takes at a time."""
    left = [memoryview(part) for part in parts]
    while left:
        written = os.pwritev(descriptor, left[:PARTS_PER_WRITE], offset)
        offset += written
        done = 0
        while done < len(left) and written >= left[done].nbytes:
            written -= left[done].nbytes
            done += 1
        del left[:done]
        if written:
            left[0] = left[0][written:]


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

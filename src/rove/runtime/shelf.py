"""A node's disk: its partitions by folder, what it remembers, and how often it has started.

Law: one thread does all that may wait for the disk, in order, so that a slow one holds back acks and never heartbeats.
A group is answered once, and answers to a partition that has been opened again since are not given.

    worker ─ OnDisk ─► queue ─► disk thread ─► done ─ bell ─► worker takes DiskDone
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from zlib import crc32

import msgspec
import pyarrow as pa

from rove.data.events import DiskDone, OnDisk, Remember
from rove.data.log.segments.commands import Group, Position, Publish
from rove.data.log.segments.commit import commit
from rove.data.log.segments.damage import Damaged
from rove.data.log.segments.format import Mark
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.reader import Reader
from rove.data.log.segments.settings import LogSettings
from rove.data.log.segments.stored import Stored, entries, lying
from rove.model.batch import Header
from rove.model.errors import DiskError, NotWritable
from rove.model.events import Payload
from rove.model.messages import Fragment, Peer
from rove.runtime.clock import now_us
from rove.runtime.disk import LogFolder
from rove.runtime.network.bell import Bell

REMEMBERED_FILE = "remembered"
STARTS_FILE = "starts"
READER = "reader-"  # before a reader's name, the file in which it says what it needs no more
FORMAT = 1
OPEN_ATTEMPTS = 3
CLOSE_S = 5.0
NOT_NOW = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)  # a disk that may be mended


class _Remembered(msgspec.Struct, frozen=True, array_like=True):
    """The file `remembered`: what a node ran and whom it knew."""

    fragments: tuple[Fragment, ...]
    peers: tuple[Peer, ...]
    plans: dict[str, bytes] = {}


class _Sealed(msgspec.Struct, frozen=True, array_like=True):
    """Bytes that can be told from damage."""

    format: int
    crc: int
    body: bytes


class DiskShelf:
    """The disk of one node, below one folder. `bell` is rung when `done` has something to tell."""

    def __init__(self, path: str | Path, bell: Bell, settings: LogSettings | None = None) -> None:
        self.path, self._bell, self._settings = Path(path), bell, settings
        self._marks: dict[str, Mark] = {}  # how far each partition went when it was opened
        self._folders: dict[str, LogFolder] = {}
        self._readers: dict[str, tuple[LogFolder, Reader]] = {}
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._done: deque[tuple[LogFolder, DiskDone]] = deque()
        self.trouble = ""  # why the last `remembered` could not be kept
        self._own = LogFolder(self.path)
        with ExitStack() as undo:
            undo.callback(self._own.close)
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                self._own.lock()
                self.incarnation = self._next_start()
            except OSError as error:
                kind = NotWritable if error.errno in NOT_NOW else DiskError
                raise kind(f"{self.path} cannot be used: {error}; mend the disk or choose another folder") from error
            undo.pop_all()
        self._thread = threading.Thread(target=self._work, name=f"disk {self.path.name}", daemon=True)
        self._thread.start()

    # What a worker asks (data.sinks.Shelf)

    def open(self, folder: str, schema: pa.Schema, settings: LogSettings | None = None) -> Partition:
        """A partition as it is on the disk, all of it committed; a new one if there is none."""
        self._put_away(folder)
        place = self._place(folder)
        disk = LogFolder(place)
        with ExitStack() as undo:
            undo.callback(disk.close)
            try:
                new = not place.is_dir()
                place.mkdir(parents=True, exist_ok=True)
                if new:
                    _sync_up(place, self.path)
                disk.lock()
                partition = Partition.recover(folder, schema, disk.sizes(), disk.read, settings or self._settings)
                self._marks[folder] = partition.mark()
                for _ in range(OPEN_ATTEMPTS):
                    if not partition.pending_bytes and partition.committed == partition.end:
                        break
                    commit(partition, disk, now_us())
            except OSError as error:
                raise DiskError(f"the log in {place} cannot be opened: {error}; mend the disk") from error
            undo.pop_all()
        self._folders[folder] = disk
        self._readers.pop(folder, None)
        return partition

    def folders(self, prefix: str) -> list[str]:
        places = {index.parent.relative_to(self.path) for index in (self.path / prefix).glob("*/*/*.index")}
        return [place.as_posix() for place in places]

    def lying(self, folder: str) -> Iterator[tuple[Position, Header, Stored]]:
        if folder not in self._readers:
            disk = LogFolder(self._place(folder))
            self._readers[folder] = (disk, Reader(disk))
        return lying(*self._readers[folder])

    def entries(self, folder: str) -> Iterator[tuple[Header, Payload | None]]:
        """Everything that was in a folder when it was opened, in order."""
        place = self._place(folder)
        try:
            yield from entries(LogFolder(place), self._marks[folder])
        except Damaged as damage:
            raise DiskError(f"in {place}, {damage}; or remove the folder to begin anew") from damage

    def readers(self, folder: str) -> dict[str, int]:
        """Who reads a folder from outside: each leaves a file that says how far it has come. O(files)."""
        found: dict[str, int] = {}
        for file in self._place(folder).glob(f"{READER}*"):
            try:
                said = msgspec.json.decode(file.read_bytes(), type=dict[str, int])
                found[file.name.removeprefix(READER)] = said["position"]
            except (OSError, msgspec.MsgspecError, KeyError):
                continue  # being replaced, or somebody else's
        return found

    # What the shell asks

    def carry_out(self, order: OnDisk) -> None:
        """Begin a group; `done` tells when it is over."""
        disk = self._folders.get(order.folder)
        if disk is None:
            raise DiskError(f"no partition `{order.folder}` is open in {self.path}")
        self._jobs.put(lambda: self._finish(disk, _carried_out(disk, order.folder, order.group)))

    def remember(self, kept: Remember) -> None:
        """Keep what a node runs and whom it knows, for its next start; it is kept when this returns, unless there is
        `trouble`. Deployments are rare, so nobody waits long."""
        self._keep(REMEMBERED_FILE, msgspec.msgpack.encode(_Remembered(kept.fragments, kept.peers, dict(kept.plans))))

    def remembered(self) -> Remember | None:
        """What was kept by the last start; None if there is nothing to be found."""
        body = self._kept(REMEMBERED_FILE)
        if body is None:
            return None
        try:
            found = msgspec.msgpack.decode(body, type=_Remembered)
        except msgspec.MsgspecError as error:
            raise DiskError(
                f"{self.path / REMEMBERED_FILE} is not of this version of rove: {error}; remove it, the coordinator "
                "knows the same"
            ) from error
        return Remember(found.fragments, found.peers, found.plans)

    def done(self) -> Iterator[DiskDone]:
        """Groups that are over since the last call."""
        while self._done:
            disk, event = self._done.popleft()
            if self._folders.get(event.folder) is disk:
                if not disk.path.is_dir():  # it was cleared
                    self._folders.pop(event.folder).close()
                    self._readers.pop(event.folder, None)
                yield event

    @property
    def has_done(self) -> bool:
        return bool(self._done)

    def settle(self) -> None:
        """Wait until everything that was asked is over."""
        over = threading.Event()
        self._jobs.put(over.set)
        over.wait()

    def close(self) -> None:
        """Finish what was asked, if the disk answers in time, and let go of the folders."""
        self._jobs.put(None)
        self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            for disk in (*self._folders.values(), self._own):
                disk.close()
        self._folders.clear()

    # Within

    def _place(self, folder: str) -> Path:
        place = (self.path / folder).resolve()
        if not place.is_relative_to(self.path.resolve()):
            raise DiskError(f"`{folder}` is outside of {self.path}; a sink writes below its node's own folder")
        return place

    def _put_away(self, folder: str) -> None:
        """Let go of a partition that is to be opened again."""
        disk = self._folders.pop(folder, None)
        if disk is not None:
            self.settle()
            disk.close()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _finish(self, disk: LogFolder, event: DiskDone) -> None:
        self._done.append((disk, event))
        self._bell.ring()

    def _keep(self, file: str, body: bytes) -> None:
        try:
            keep_file(self.path / file, _sealed(body))
            self.trouble = ""
        except OSError as error:
            self.trouble = f"{self.path / file} could not be kept: {error}"

    def _kept(self, file: str) -> bytes | None:
        try:
            data = (self.path / file).read_bytes()
            sealed = msgspec.msgpack.decode(data, type=_Sealed)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise DiskError(f"{self.path / file} cannot be read: {error}; remove it to begin anew") from error
        if sealed.format != FORMAT:
            raise DiskError(f"{self.path / file} has format {sealed.format}; this version of rove reads {FORMAT}")
        if crc32(sealed.body) != sealed.crc:
            raise DiskError(f"{self.path / file} is damaged; remove it to begin anew")
        return sealed.body

    def _next_start(self) -> int:
        """A number that no earlier start of this node had, on the disk before anybody hears it."""
        body = self._kept(STARTS_FILE)
        last = int.from_bytes(body, "big") if body is not None else 0
        number = max(last + 1, time.time_ns())  # a folder that was emptied must not bring old numbers back
        keep_file(self.path / STARTS_FILE, _sealed(number.to_bytes(8, "big")))
        return number


def _sealed(body: bytes) -> bytes:
    return msgspec.msgpack.encode(_Sealed(FORMAT, crc32(body), body))


def keep_file(path: Path, data: bytes) -> None:
    """Make a file anew in one step: after a power cut it is the old one or the new one."""
    new = path.with_name(f"{path.name}.new")
    with open(new, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync_up(path, path.parent)


def _carried_out(disk: LogFolder, folder: str, group: Group) -> DiskDone:
    unpublished = ""
    for command in group.commands:
        try:
            disk.execute(command)
        except OSError as error:
            if not isinstance(command, Publish):
                return DiskDone(folder, group.token, trouble=str(error))
            unpublished = str(error)
    return DiskDone(folder, group.token, unpublished=unpublished)


def _sync_up(path: Path, top: Path) -> None:
    """Make the names of new folders safe, up to one that was there."""
    for folder in path.parents:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if folder == top or not folder.is_relative_to(top):
            return

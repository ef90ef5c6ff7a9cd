"""A node's disk: its partitions by folder, what it remembers, and how often it has started.

Law: one thread does all that may wait for the disk, in the order in which it was asked, so that a slow one holds back
acks and never heartbeats. Every order is answered once.

    worker ─ Open, OnDisk, Load … ─► queue ─► disk thread ─► done ─ bell ─► worker takes Opened, DiskDone, Loaded …
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

from rove.data.events import (
    AskReaders,
    DiskAnswer,
    DiskDone,
    DiskWork,
    Listed,
    ListFolders,
    Load,
    LogRead,
    OnDisk,
    Open,
    Opened,
    OpenFailed,
    Readers,
    ReadLog,
    Remember,
)
from rove.data.log.segments.carry_out import carried_out, loaded
from rove.data.log.segments.commands import Position
from rove.data.log.segments.commit import commit
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.read_back import LogCursor
from rove.data.log.segments.settings import LogSettings
from rove.model.errors import DiskError, NotWritable, RoveError
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
        self._folders: dict[str, LogFolder] = {}  # that are open; the disk's thread alone looks at them
        self._cursors: dict[str, LogCursor] = {}  # of those that are read back
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._done: deque[DiskAnswer] = deque()
        self._bug: Exception | None = None
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

    # What a worker asks

    def ask(self, order: DiskWork) -> None:
        """Begin disk work; `done` has the answer when it is over."""
        self._jobs.put(lambda: self._finish(self._answer(order)))

    def _answer(self, order: DiskWork) -> DiskAnswer:
        match order:
            case OnDisk():
                return self._carried_out(order)
            case Open():
                return self._opened(order)
            case Load():
                return loaded(LogFolder(self._place(order.rows.folder)), order)
            case ReadLog():
                return self._read(order)
            case ListFolders():
                return self._listed(order)
            case AskReaders():
                return Readers(order.folder, self._readers(order.folder))

    def _carried_out(self, order: OnDisk) -> DiskDone:
        disk = self._folders.get(order.folder)
        if disk is None:
            return DiskDone(order.folder, order.group.token, trouble=f"no partition `{order.folder}` is open")
        done = carried_out(disk, order)
        if not disk.path.is_dir():  # it was cleared
            self._folders.pop(order.folder).close()
        return done

    def _opened(self, order: Open) -> Opened | OpenFailed:
        """A partition as it is on the disk, all of it committed; a new one if there is none."""
        folder = order.folder
        if folder in self._folders:
            self._folders.pop(folder).close()
        self._cursors.pop(folder, None)
        try:
            place = self._place(folder)
            disk = LogFolder(place)
            with ExitStack() as undo:
                undo.callback(disk.close)
                new = not place.is_dir()
                place.mkdir(parents=True, exist_ok=True)
                if new:
                    _sync_up(place, self.path)
                disk.lock()
                settings = order.settings or self._settings
                partition = Partition.recover(folder, order.schema, disk.sizes(), disk.read, settings)
                upto = partition.mark()
                for _ in range(OPEN_ATTEMPTS):
                    if not partition.pending_bytes and partition.committed == partition.end:
                        break
                    commit(partition, disk, now_us())
                undo.pop_all()
        except OSError as error:
            text = f"the log in {self.path / folder} cannot be opened: {error}; mend the disk"
            return OpenFailed(folder, order.number, text)
        except RoveError as error:
            return OpenFailed(folder, order.number, str(error))
        self._folders[folder] = disk
        return Opened(folder, order.number, partition, upto)

    def _read(self, order: ReadLog) -> LogRead:
        if order.folder not in self._cursors:
            self._cursors[order.folder] = LogCursor(LogFolder(self._place(order.folder)), order.upto)
        read = self._cursors[order.folder].answer(order)
        if read.over:
            del self._cursors[order.folder]
        return read

    def _listed(self, order: ListFolders) -> Listed:
        try:
            places = {index.parent.relative_to(self.path) for index in (self.path / order.prefix).glob("*/*/*.index")}
        except OSError as error:
            return Listed(order.prefix, (), str(error))
        return Listed(order.prefix, tuple(sorted(place.as_posix() for place in places)))

    def _readers(self, folder: str) -> dict[str, Position]:
        """Who reads a folder from outside: each leaves a file that says how far it has come. O(files)."""
        found: dict[str, Position] = {}
        for file in self._place(folder).glob(f"{READER}*"):
            try:
                said = msgspec.json.decode(file.read_bytes(), type=dict[str, int])
                found[file.name.removeprefix(READER)] = Position(said["position"])
            except (OSError, msgspec.MsgspecError, KeyError):
                continue  # being replaced, or somebody else's
        return found

    # What the shell asks

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

    def done(self) -> Iterator[DiskAnswer]:
        """Answers since the last call. What the disk's thread raised and nobody meant is raised here."""
        while self._done:
            yield self._done.popleft()
        if self._bug is not None:
            raise self._bug

    @property
    def has_done(self) -> bool:
        return bool(self._done) or self._bug is not None

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

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception as error:
                self._bug = error
                self._bell.ring()

    def _finish(self, answer: DiskAnswer) -> None:
        self._done.append(answer)
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

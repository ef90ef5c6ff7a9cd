"""A node's disk: its partitions by folder, its remembered fragments, and the number of its start.

Law: one thread does all disk work, in the order of the requests, so that a slow disk delays acks but never heartbeats.
Every request is answered once.

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
    NOTHING,
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
from rove.data.log.segments.commands import Position
from rove.data.log.segments.disk_work.commit import carried_out, recovered
from rove.data.log.segments.disk_work.read_back import LogCursor, loaded
from rove.data.log.settings import LogSettings
from rove.model.disk_folders import READER, check_parts
from rove.model.errors import DiskError, NotWritable, RoveError
from rove.model.messages import Fragment, Learned, Peer
from rove.runtime.clock import now_us
from rove.runtime.disk.disk import FOLDERS, PRIVATE, LogFolder, make_private
from rove.runtime.network.bell import Bell

REMEMBERED_FILE = "remembered"
PLACES_FILE = "places"
STARTS_FILE = "starts"
DAMAGED = ".damaged"  # the suffix of a file that could not be used
KINDS = ("index", "arrows")  # the files of a segment, each of which is enough to read it
FORMAT = 1
CLOSE_S = 5.0
NOT_NOW = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)  # errors of a disk that may work again later


class _Remembered(msgspec.Struct, frozen=True, array_like=True):
    """The file `remembered`: the fragments that a node ran, the peers that it knew, and whose batches they may send."""

    fragments: tuple[Fragment, ...]
    peers: tuple[Peer, ...]
    plans: dict[str, bytes] = {}
    below: Learned = NOTHING


class _Sealed(msgspec.Struct, frozen=True, array_like=True):
    """Bytes with a checksum."""

    format: int
    crc: int
    body: bytes


class DiskShelf:
    """The disk of one node, below one folder. `bell` rings when `done` has an answer."""

    def __init__(self, path: str | Path, bell: Bell, settings: LogSettings | None = None) -> None:
        self.path, self._bell, self._settings = Path(path), bell, settings
        self._folders: dict[str, LogFolder] = {}  # that are open; the disk's thread alone looks at them
        self._cursors: dict[str, LogCursor] = {}  # of those that are read back
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._done: deque[DiskAnswer] = deque()
        self._bug: Exception | None = None
        self.trouble = ""  # why the last `remembered` could not be kept
        self.damaged: list[str] = []  # files that could not be used at this start, and what becomes of them
        self._own = LogFolder(self.path)
        with ExitStack() as undo:
            undo.callback(self._own.close)
            try:
                make_private(self.path)
                self._own.lock()
                self.start = self._next_start()
            except OSError as error:
                kind = NotWritable if error.errno in NOT_NOW else DiskError
                raise kind(f"{self.path} cannot be used: {error}; repair the disk or choose another folder") from error
            undo.pop_all()
        self._thread = threading.Thread(target=self._work, name=f"disk {self.path.name}", daemon=True)
        self._thread.start()

    # Requests of a worker

    def ask(self, order: DiskWork) -> None:
        """Begin disk work. `done` returns the answer later."""
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
        if not disk.path.is_dir():  # the folder was cleared
            self._folders.pop(order.folder).close()
        return done

    def _opened(self, order: Open) -> Opened | OpenFailed:
        """Open the partition on the disk, recovered; create it if there is none."""
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
                make_private(place, FOLDERS)
                if new:
                    _sync_up(place, self.path)
                disk.lock()
                partition, upto = recovered(folder, order.schema, disk, order.settings or self._settings, now_us())
                undo.pop_all()
        except OSError as error:
            text = f"the log in {self.path / folder} cannot be opened: {error}; repair the disk"
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
            files = [file for kind in KINDS for file in (self.path / order.prefix).glob(f"*/*/*.{kind}")]
            places = {file.parent.relative_to(self.path) for file in files}
        except OSError as error:
            return Listed(order.prefix, (), str(error))
        return Listed(order.prefix, tuple(sorted(place.as_posix() for place in places)))

    def _readers(self, folder: str) -> dict[str, Position]:
        """The outside readers of a folder. Each leaves a file that says how far it has read. O(files)."""
        found: dict[str, Position] = {}
        for file in self._place(folder).glob(f"{READER}*"):
            try:
                said = msgspec.json.decode(file.read_bytes(), type=dict[str, int])
                found[file.name.removeprefix(READER)] = Position(said["position"])
            except (OSError, msgspec.MsgspecError, KeyError):
                continue  # being replaced, or not ours
        return found

    # Calls of the shell

    def remember(self, kept: Remember) -> None:
        """Store what a node runs and which peers it knows, for its next start. It is stored when this returns, unless
        there is `trouble`. Deployments are rare, so the wait does not matter."""
        found = _Remembered(kept.fragments, kept.peers, dict(kept.plans), kept.below)
        self._keep(REMEMBERED_FILE, msgspec.msgpack.encode(found))

    def remembered(self) -> Remember | None:
        """What the last start stored; None if there is nothing, or if it cannot be used."""
        body = self._kept(REMEMBERED_FILE)
        if body is None:
            return None
        try:
            found = msgspec.msgpack.decode(body, type=_Remembered)
        except msgspec.MsgspecError as error:
            self._set_aside(REMEMBERED_FILE, f"is not of this version of rove ({error})")
            return None
        return Remember(found.fragments, found.peers, found.plans, found.below)

    def keep_places(self, body: bytes) -> None:
        """Store how far files of sources were read. It is stored when this returns, unless there is `trouble`."""
        self._keep(PLACES_FILE, body)

    def places(self) -> tuple[bytes | None, str]:
        """How far files of sources were read, and what is wrong with the file that says so, now or since an earlier
        start."""
        body = self._kept(PLACES_FILE)
        aside = self.path / f"{PLACES_FILE}{DAMAGED}"
        return body, f"{aside} is damaged" if body is None and aside.exists() else ""

    def forget_places(self) -> None:
        """Forget how far files of sources were read, so that they are read from their first row."""
        for name in (PLACES_FILE, f"{PLACES_FILE}{DAMAGED}"):
            (self.path / name).unlink(missing_ok=True)

    def done(self) -> Iterator[DiskAnswer]:
        """The answers since the last call. Unexpected exceptions of the disk's thread are raised here."""
        while self._done:
            yield self._done.popleft()
        if self._bug is not None:
            raise self._bug

    @property
    def has_done(self) -> bool:
        return bool(self._done) or self._bug is not None

    def settle(self) -> None:
        """Wait until all requests are done."""
        over = threading.Event()
        self._jobs.put(over.set)
        over.wait()

    def close(self) -> None:
        """Finish all requests, if the disk answers in time, and close the folders."""
        self._jobs.put(None)
        self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            for disk in (*self._folders.values(), self._own):
                disk.close()
        self._folders.clear()

    # Internals

    def _place(self, folder: str) -> Path:
        """The place of a folder. The worker has checked its name, and it is checked once more, last of all."""
        check_parts(folder)
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
            sealed = msgspec.msgpack.decode((self.path / file).read_bytes(), type=_Sealed)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DiskError(f"{self.path / file} cannot be read: {error}; repair the disk") from error
        except msgspec.MsgspecError:
            self._set_aside(file, "is damaged")
            return None
        if sealed.format == FORMAT and crc32(sealed.body) == sealed.crc:
            return sealed.body
        of_another = f"has format {sealed.format}, and this version of rove reads {FORMAT}"
        self._set_aside(file, "is damaged" if sealed.format == FORMAT else of_another)
        return None

    def _set_aside(self, file: str, why: str) -> None:
        """Go on without a file that cannot be used. The coordinator knows what a node runs, and the clock gives a new
        number for a start."""
        place = self.path / file
        place.replace(place.with_name(f"{file}{DAMAGED}"))
        self.damaged.append(f"{place} {why}; the node starts without it, and keeps it as {file}{DAMAGED}")

    def _next_start(self) -> int:
        """A number that no earlier start of this node had. It is on the disk before it is used."""
        body = self._kept(STARTS_FILE)
        last = int.from_bytes(body, "big") if body is not None else 0
        number = max(
            last + 1, time.time_ns()
        )  # from the clock, so that an emptied folder does not bring old numbers back
        keep_file(self.path / STARTS_FILE, _sealed(number.to_bytes(8, "big")))
        return number


def _sealed(body: bytes) -> bytes:
    return msgspec.msgpack.encode(_Sealed(FORMAT, crc32(body), body))


def keep_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: after a power cut it is the old one or the new one."""
    new = path.with_name(f"{path.name}.new")
    with open(new, "wb", opener=_private) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync_up(path, path.parent)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=PRIVATE)


def _sync_up(path: Path, top: Path) -> None:
    """Sync the names of new folders, up to one that existed."""
    for folder in path.parents:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if folder == top or not folder.is_relative_to(top):
            return

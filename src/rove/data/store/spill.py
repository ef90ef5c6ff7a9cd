"""The part of a store on the disk: batches that wait for long are there, and not in memory.

Law: a batch is written once, in the order of arrival, into one folder for each query and start of the node. Its rows
leave memory when they are safe on the disk, and are read when they are sent. Batches that a start left are sent by the
next start (`left_behind`). If the disk is full, slow or broken, the store goes on with memory alone. Batches for a
folder that is not open yet wait for it.

    store ─ waits ─► folder `retention/<start>/<query>` ─ safe ─► store, rows on the disk ─ acked or evicted ─► deleted

Files are deleted from the front, so the oldest batches on the disk are evicted first, whatever the policy. The few
batches that were sent and may not be evicted have a folder of their own, so that they do not block the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from rove.data.events import DiskDone, Listed, LogRead, OnDisk
from rove.data.log.folders import Folders
from rove.data.log.segments.commands import Clear, Group, Position
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.stored import stored
from rove.data.log.settings import LogSettings
from rove.data.store.kept_batch import KEPT_BYTES_MIN, KeptBatch
from rove.data.store.left_behind import NO_COLUMNS, Found, LeftBehind, is_of
from rove.data.store.store import Store
from rove.model.batch import HeaderKind
from rove.model.disk_folders import WaitingFolder
from rove.model.errors import RoveError
from rove.model.ids import Origin, QueryId

WAITS_US = 1_000_000  # batches that wait for longer are written
RETRY_US = 10_000_000  # between two attempts to use a disk that does not work
WRITING_BYTES_MAX = 4 * 1024 * 1024  # the most bytes that are being written at a time
SEGMENT_BYTES = (64 * 1024, 8 * 1024 * 1024)  # the least and the greatest size of a file
SEGMENTS = 32
FILES_MAX = 2  # files may take this many times the limit, with batches in them that are no longer needed
READER = "retention"
CLEARS = 0  # the token of a group of deletes
LOOK_MIN = 64


@dataclass(slots=True)
class _Folder:
    """A partition, its batches that are still needed, in order, and those that are being written. While it is not open,
    batches wait (`early`)."""

    partition: Partition | None
    early: deque[KeptBatch] = field(default_factory=deque)
    live: deque[tuple[Position, KeptBatch]] = field(default_factory=deque)
    writing: dict[Position, KeptBatch] = field(default_factory=dict)
    look_at: int = LOOK_MIN  # at this length, gone batches in the middle of the list are removed


class Spill:
    """A bounded number of bytes on the disk, beside a store's memory."""

    def __init__(self, store: Store, folders: Folders, limit_bytes: int, start: int) -> None:
        self._store, self._disk, self.limit_bytes = store, folders, limit_bytes
        self._start = start
        self._settings = LogSettings(
            segment_bytes=min(max(limit_bytes // SEGMENTS, SEGMENT_BYTES[0]), SEGMENT_BYTES[1]),
            segment_us=2**62,
            pending_bytes=2**62,
        )
        self.left_behind = LeftBehind(folders, self._settings, start)
        self._writing_max = min(WRITING_BYTES_MAX, max(store.limit_bytes // 4, 1))
        self._folders: dict[str, _Folder] = {}
        self._look_us = self._retry_us = 0
        self._files_bytes = 0  # when they were last measured, plus what was written since
        self._now = 0
        self.trouble = ""

    # Batches of earlier starts

    def listed(self, event: Listed, now: int) -> None:
        self.left_behind.listed(event, now)

    def read(self, event: LogRead, now: int) -> bool:
        """A part of a folder was read. Returns whether it was one of ours."""
        ours = self.left_behind.read(event, now)
        for name in self.left_behind.folders:
            self._folders.setdefault(name, _Folder(self._disk.get(name)))
        self.left_behind.folders.clear()
        return ours

    def adopt(self, batches: Iterable[tuple[Found, KeptBatch]]) -> None:
        """All batches of a query from earlier starts are in the store again, with their rows on the disk."""
        for found, entry in sorted(batches, key=lambda each: each[0].position):
            if found.rows is not None:
                self._store.spilled(entry, found.rows)
            self._folders[found.folder].live.append((found.position, entry))

    def origins(self) -> set[Origin]:
        """The origins of batches of earlier starts that are still here. O(batches of earlier starts)."""
        old = (folder for name, folder in self._folders.items() if not is_of(name, self._start))
        here = (e.header for folder in old for _, e in folder.live if self._needs(e))
        return {header.origin.unsided for header in (*self.left_behind.headers(), *here)}

    # Batches that wait now

    def press(self) -> None:
        """If there is no room in memory, write the oldest batches to the disk until it accepts no more. O(batches
        written)."""
        if self._store.room >= 0:
            return
        wanted = self._writing_max // 2  # one write should hold more than one batch
        while self._store.room < wanted and (entry := self._store.first_unwritten()) is not None:
            if not self._take(entry):
                return

    @property
    def evicts(self) -> bool:
        """Whether a batch on the disk must be evicted: the disk is full, or memory is full of its headers."""
        lacks = self.has_no_room or not any(self._store.in_memory.queries())
        return self._works and lacks and self._store.leaving_bytes < self._writing_max

    def tick(self, now: int) -> list[OnDisk]:
        """The disk work: write batches that have waited long enough, delete files that are not needed. O(batches of
        both)."""
        self._now = now
        commands: list[OnDisk] = []
        if now >= self._look_us:
            self._look_us = now + WAITS_US
            while (entry := self._store.first_unwritten()) is not None and now - entry.since >= WAITS_US:
                if not self._take(entry):
                    break
            commands += self._clean(now)
        return commands + self._flush(now)

    def write_all(self, now: int) -> list[OnDisk]:
        """Write all waiting batches, as many as the disk takes at once, however short they have waited."""
        self._now = now
        while (entry := self._store.first_unwritten()) is not None and self._take(entry):
            pass
        return self._flush(now)

    def _flush(self, now: int) -> list[OnDisk]:
        found = []
        for name, folder in self._folders.items():
            if folder.writing and folder.partition is not None and (group := folder.partition.flush(now)) is not None:
                found.append(OnDisk(name, group))
        return found

    def opened(self, name: str) -> None:
        """A folder is open. Batches that waited for it are written there."""
        folder = self._folders.get(name)
        if folder is None:
            return
        folder.partition = self._disk.get(name)
        for entry in folder.early:
            if self._store.holds(entry) and entry.in_memory is not None:
                self._append(folder, entry)
        folder.early.clear()

    def done(self, event: DiskDone) -> bool:
        """A group was executed, or failed. Returns whether it was one of ours."""
        folder = self._folders.get(event.folder)
        if folder is None:
            return False
        if event.token == CLEARS or folder.partition is None:
            return True
        if event.trouble:
            folder.partition.failed(event.token, event.trouble)
            self._fails(event.trouble)
            return True
        if event.unpublished:
            folder.partition.unpublished(event.token, event.unpublished)
        folder.partition.synced(event.token)
        self.trouble, self._look_us = "", 0  # there may be more to write
        for written in folder.partition.landed:
            entry = folder.writing.pop(written.position, None)
            if entry is not None and entry.payload is not None and self._store.holds(entry):
                self._store.spilled(entry, stored(event.folder, written))
                folder.live.append((written.position, entry))
        return True

    def _take(self, entry: KeptBatch) -> bool:
        """Write a batch. Returns whether the disk takes it."""
        size = entry.bytes - KEPT_BYTES_MIN
        if not self._works or self._full or self._store.leaving_bytes + size > max(self._writing_max, size):
            return False
        name = str(WaitingFolder(QueryId(entry.header.query), self._start, sent=not entry.untouched))
        folder = self._folder(name)
        if folder.partition is None and self._disk.trouble(name):
            return False
        try:
            if folder.partition is None:
                folder.early.append(entry)
            else:
                self._append(folder, entry)
        except RoveError as error:
            self._fails(str(error))
            return False
        self._store.leaves(entry)
        self._files_bytes += size
        return True

    def _append(self, folder: _Folder, entry: KeptBatch) -> None:
        if folder.partition is None:
            return
        header = replace(entry.header, kind=HeaderKind.SPILLED)
        position = folder.partition.append(header, entry.in_memory)
        if position is not None:
            folder.writing[position] = entry

    def _fails(self, why: str) -> None:
        self.trouble, self._retry_us = why, self._now + RETRY_US

    def _folder(self, name: str) -> _Folder:
        folder = self._folders.get(name)
        if folder is None:
            folder = self._folders[name] = _Folder(self._disk.want(name, NO_COLUMNS, self._settings))
        return folder

    def _clean(self, now: int) -> list[OnDisk]:
        """Delete what is not needed: files whose batches are all gone, and folders without batches."""
        commands: list[OnDisk] = []
        for name, folder in list(self._folders.items()):
            if folder.partition is None:
                continue
            while folder.live and not self._needs(folder.live[0][1]):
                folder.live.popleft()
            if len(folder.live) > folder.look_at:
                folder.live = deque(each for each in folder.live if self._needs(each[1]))
                folder.look_at = 2 * len(folder.live) + LOOK_MIN
            if folder.live:
                folder.partition.consumed(READER, folder.live[0][0])
                if deletes := folder.partition.retire(now):
                    commands.append(OnDisk(name, Group(CLEARS, tuple(deletes))))
            elif not folder.writing and not (self.left_behind.wants(name) and not is_of(name, self._start)):
                del self._folders[name]
                self._disk.forget(name)
                commands.append(OnDisk(name, Group(CLEARS, (Clear(),))))
        partitions = (folder.partition for folder in self._folders.values())
        self._files_bytes = sum(partition.file_bytes for partition in partitions if partition is not None)
        return commands

    def _needs(self, entry: KeptBatch) -> bool:
        """Whether the file of a batch must stay: for its rows; or, if they are damaged, because its header is still
        needed."""
        damaged = entry.payload is None and entry.header.lost > 0
        return (entry.disk_bytes > 0 or damaged) and self._store.holds(entry)

    @property
    def _works(self) -> bool:
        return not self.trouble or self._now >= self._retry_us > 0

    @property
    def has_no_room(self) -> bool:
        """Whether the needed batches on the disk, or being written, have reached the limit."""
        return self._store.disk_bytes + self._store.leaving_bytes >= self.limit_bytes

    @property
    def _full(self) -> bool:
        """Whether the disk takes no more, because of needed batches or of files that cannot be deleted yet."""
        return self.has_no_room or self._files_bytes >= FILES_MAX * self.limit_bytes

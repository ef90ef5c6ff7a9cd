"""The part of a store that is on the disk: what waits for long is there, and not in memory.

Law: a batch is written once, in the order in which batches came, in one folder a query and start of the node. Its rows
leave the memory when they are safe, and are read when they are sent. What a start has left behind is sent by the next
one; what cannot be read any more is counted and passed over. A disk that is full, slow or broken is done without.

    store ─ waits ─► folder `ring/<start>/<query>` ─ safe ─► store, rows on the disk ─ acked or evicted ─► deleted

Files are deleted from the front, where the oldest batches are: those go first, whatever the policy. Batches that were
sent and may not go are few, and have a folder of their own, so that they keep nothing behind them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from rove.data.ends.shelf import Shelf
from rove.data.events import DiskDone, Note, OnDisk
from rove.data.log.segments.commands import Clear, Group, Position
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.settings import LogSettings
from rove.data.log.segments.stored import Stored
from rove.data.store.kept_batch import KEPT_BYTES_MIN, KeptBatch
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.errors import RoveError
from rove.model.ids import QueryId, source_of

FOLDER = "ring"
WAITS_US = 1_000_000  # what waits for longer is written
RETRY_US = 10_000_000  # between two attempts to use a disk that cannot be used
WRITING_BYTES_MAX = 4 * 1024 * 1024  # on their way to the disk; more than it takes is not waited for
SEGMENT_BYTES = (64 * 1024, 8 * 1024 * 1024)  # a file: a part of the limit, within these
SEGMENTS = 32
FILES_MAX = 2  # times the limit: what files may be, with what is in them and needed no more
READER = "ring"
SENT = "-sent"  # behind a start: what may have arrived
NOBODY = ""  # the origin of all entries: they are numbered by the store
CLEARS = 0  # the token of a group that nobody waits for
LOOK_MIN = 64
NO_COLUMNS = pa.schema([])


class Found(NamedTuple):
    """A batch that an earlier start left behind."""

    header: Header
    rows: Stored
    folder: str
    position: Position


@dataclass(slots=True)
class _Folder:
    """A partition, which of its batches are still needed, in order, and which are on their way to it."""

    partition: Partition
    live: deque[tuple[Position, KeptBatch]] = field(default_factory=deque)
    writing: dict[Position, KeptBatch] = field(default_factory=dict)
    look_at: int = LOOK_MIN  # when so many are listed, those in the middle that have gone are forgotten


class Spill:
    """A bounded number of bytes on the disk behind a store. `damaged` counts batches that could not be read."""

    def __init__(self, store: Store, shelf: Shelf, limit_bytes: int, incarnation: int) -> None:
        self._store, self._shelf, self.limit_bytes = store, shelf, limit_bytes
        self._mine = f"{FOLDER}/{incarnation}"
        self._settings = LogSettings(
            segment_bytes=min(max(limit_bytes // SEGMENTS, SEGMENT_BYTES[0]), SEGMENT_BYTES[1]),
            segment_us=2**62,
            pending_bytes=2**62,
        )
        self._writing_max = min(WRITING_BYTES_MAX, max(store.limit_bytes // 4, 1))
        self._folders: dict[str, _Folder] = {}
        self._found: dict[QueryId, list[Found]] = {}
        self._look_us = self._retry_us = 0
        self._files_bytes = 0  # as of the last look at them, and what was written since
        self._now = 0
        self.trouble = ""
        self.damaged = 0
        self._notes: list[Note] = []
        self._recover()

    # What an earlier start left behind

    def _recover(self) -> None:
        for folder in sorted(self._shelf.folders(FOLDER)):
            if self._is_mine(folder) or not _start(folder).isdecimal():
                continue
            try:
                partition = self._shelf.open(folder, NO_COLUMNS, self._settings)
                self._folders[folder] = _Folder(partition)
                unread = self._find(folder, QueryId(folder.rpartition("/")[2]))
                self.damaged += max(unread, partition.damaged)  # which has found the same, but not looked at all rows
            except (RoveError, OSError) as error:
                self.damaged += 1
                self._notes.append(Note(f"what {folder} holds cannot be read: {error}"))
        for found in self._found.values():
            found.sort(key=lambda each: (int(_start(each.folder)), each.header.seq))

    def _find(self, folder: str, query: QueryId) -> int:
        """What a folder holds; how many of its batches cannot be read."""
        unread = 0
        for position, header, rows in self._shelf.lying(folder):
            try:
                rows.load()
                self._found.setdefault(query, []).append(Found(_as_it_was(header, query), rows, folder, position))
            except (ValueError, OSError) as error:
                unread += 1
                self._notes.append(Note(f"a batch in {folder} cannot be read: {error}"))
        return unread

    def left_behind(self, query: QueryId) -> Iterable[Found]:
        """Batches of a query that earlier starts have left, in the order of their numbers; each once."""
        return self._found.pop(query, ())

    def adopt(self, batches: Iterable[tuple[Found, KeptBatch]]) -> None:
        """All batches of a query that were left behind are in the store again, and their rows are on the disk."""
        for found, entry in sorted(batches, key=lambda each: each[0].position):
            self._store.spilled(entry, found.rows)
            self._folders[found.folder].live.append((found.position, entry))

    def headers(self) -> Iterator[Header]:
        """What was left behind and nobody has asked for yet."""
        return (found.header for left in self._found.values() for found in left)

    def origins(self) -> set[str]:
        """Who made the batches of earlier starts that are still here. O(batches of earlier starts)."""
        old = (folder for name, folder in self._folders.items() if not self._is_mine(name))
        here = (e.header for folder in old for _, e in folder.live if self._needs(e))
        return {source_of(header.origin) for header in (*self.headers(), *here)}

    def forget(self, query: QueryId) -> None:
        """A query is over: what an earlier start had left of it is not needed."""
        self._found.pop(query, None)

    # What waits now

    def press(self) -> None:
        """There is no room in memory: hand the oldest to the disk, as far as it takes them. O(batches handed over)."""
        if self._store.room >= 0:
            return
        wanted = self._writing_max // 2  # a write is worth more than one batch
        while self._store.room < wanted and (entry := self._store.first_unwritten()) is not None:
            if not self._take(entry):
                return

    @property
    def evicts(self) -> bool:
        """Whether a batch on the disk has to go: it is full, or memory is full of what is there."""
        lacks = self.has_no_room or not any(self._store.in_memory.queries())
        return self._works and lacks and self._store.leaving_bytes < self._writing_max

    def tick(self, now: int) -> list[OnDisk | Note]:
        """Disk work: what has waited long enough goes there, what is needed no more goes away. O(batches of both)."""
        self._now = now
        commands: list[OnDisk | Note] = [*self._notes]
        self._notes.clear()
        if now >= self._look_us:
            self._look_us = now + WAITS_US
            while (entry := self._store.first_unwritten()) is not None and now - entry.since >= WAITS_US:
                if not self._take(entry):
                    break
            commands += self._clean(now)
        return [*commands, *self._flush(now)]

    def write_all(self, now: int) -> list[OnDisk]:
        """Everything that waits, as much of it as the disk takes at once, however short it has waited."""
        self._now = now
        while (entry := self._store.first_unwritten()) is not None and self._take(entry):
            pass
        return self._flush(now)

    def _flush(self, now: int) -> list[OnDisk]:
        groups = ((name, f.partition.flush(now)) for name, f in self._folders.items() if f.writing)
        return [OnDisk(name, group) for name, group in groups if group is not None]

    def done(self, event: DiskDone) -> bool:
        """A group was carried out, or was not; whether it was one of ours."""
        folder = self._folders.get(event.folder)
        if folder is None:
            return False
        if event.token == CLEARS:
            return True
        if event.trouble:
            folder.partition.failed(event.token, event.trouble)
            self._fails(event.trouble)
            return True
        if event.unpublished:
            folder.partition.unpublished(event.token, event.unpublished)
        folder.partition.synced(event.token)
        self.trouble, self._look_us = "", 0  # there may be more to write
        try:
            for position, _, rows in self._shelf.lying(event.folder):
                # A folder that was cleared in vain holds more than was written to it now.
                entry = folder.writing.pop(position, None)
                if entry is not None and entry.payload is not None and self._store.holds(entry):
                    self._store.spilled(entry, rows)
                    folder.live.append((position, entry))
        except (RoveError, OSError) as error:  # what is there is found at the next start
            self._fails(str(error))
        return True

    def _take(self, entry: KeptBatch) -> bool:
        """Write a batch; whether the disk takes it."""
        size = entry.bytes - KEPT_BYTES_MIN
        if not self._works or self._full or self._store.leaving_bytes + size > max(self._writing_max, size):
            return False
        header, mine = entry.header, self._mine if entry.untouched else f"{self._mine}{SENT}"
        try:
            folder = self._folder(f"{mine}/{header.query}")
            number = folder.partition.end
            position = folder.partition.append(_as_written(header, number), entry.in_memory)
        except (RoveError, OSError) as error:
            self._fails(str(error))
            return False
        self._store.leaves(entry)
        self._files_bytes += size
        if position is not None:
            folder.writing[position] = entry
        return True

    def _fails(self, why: str) -> None:
        self.trouble, self._retry_us = why, self._now + RETRY_US

    def _folder(self, name: str) -> _Folder:
        folder = self._folders.get(name)
        if folder is None:
            opened = self._shelf.open(name, NO_COLUMNS, self._settings)
            folder = self._folders[name] = _Folder(opened)
        return folder

    def _clean(self, now: int) -> list[OnDisk]:
        """Delete what nobody needs: files whose batches have all gone, and folders without any."""
        commands: list[OnDisk] = []
        for name, folder in list(self._folders.items()):
            while folder.live and not self._needs(folder.live[0][1]):
                folder.live.popleft()
            if len(folder.live) > folder.look_at:
                folder.live = deque(each for each in folder.live if self._needs(each[1]))
                folder.look_at = 2 * len(folder.live) + LOOK_MIN
            if folder.live:
                folder.partition.consumed(READER, folder.live[0][0])
                if deletes := folder.partition.retire(now):
                    commands.append(OnDisk(name, Group(CLEARS, tuple(deletes))))
            elif not folder.writing and QueryId(name.rpartition("/")[2]) not in self._found:
                del self._folders[name]
                commands.append(OnDisk(name, Group(CLEARS, (Clear(),))))
        self._files_bytes = sum(folder.partition.file_bytes for folder in self._folders.values())
        return commands

    def _is_mine(self, folder: str) -> bool:
        """Whether a folder is of this start."""
        return folder.rpartition("/")[0] in (self._mine, f"{self._mine}{SENT}")

    def _needs(self, entry: KeptBatch) -> bool:
        return entry.disk_bytes > 0 and self._store.holds(entry)

    @property
    def _works(self) -> bool:
        return not self.trouble or self._now >= self._retry_us > 0

    @property
    def has_no_room(self) -> bool:
        """Whether what is on the disk, or on its way to it, and needed, is all that may be there."""
        return self._store.disk_bytes + self._store.leaving_bytes >= self.limit_bytes

    @property
    def _full(self) -> bool:
        """Whether the disk takes no more, for what is needed there or for files that cannot be deleted yet."""
        return self.has_no_room or self._files_bytes >= FILES_MAX * self.limit_bytes


def _start(folder: str) -> str:
    """Which start of the node a folder is of, if it is one of ours."""
    return folder.split("/")[1].removesuffix(SENT)


def _as_written(header: Header, number: int) -> Header:
    """A header as the ring's own numbers want it: whose batch it is stands where the query's name was."""
    return replace(header, origin=NOBODY, seq=number, through=number, query=f"{header.seq} {header.origin}")


def _as_it_was(header: Header, query: QueryId) -> Header:
    seq, _, origin = header.query.partition(" ")
    return replace(header, origin=origin, seq=int(seq), through=int(seq), query=query)

"""The input log of stateful operators, from which they are computed again after a crash.

Law: on a node with a disk, the input of stateful operators is written, acked, and only then computed. After a restart
the same batches come out under the same names, so their receivers drop the duplicates. A checkpoint says what operators
hold after the input before a position; input that two checkpoints cover is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace

from rove.data.ends.appending import Appending
from rove.data.ends.pending_input import PendingBatch
from rove.data.ends.wait_changes import changes_of
from rove.data.events import DiskDone, OnDisk
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.receipts import FrameReceipt
from rove.data.log.folders import Folders
from rove.data.log.segments.checkpoint import Checkpoint
from rove.data.log.segments.commands import Position
from rove.data.log.settings import LogSettings
from rove.model.batch import Header, HeaderKind, of_query
from rove.model.disk_folders import InputFolder, read_folder
from rove.model.errors import RoveError, must
from rove.model.events import Payload
from rove.model.ids import Origin, QueryId
from rove.model.spans import Spans, minus

NO_COLUMNS = pa.schema([])  # one folder holds rows of all stages
# Input is deleted when checkpoints cover it, and never because of its age or size. Segments are deleted whole, so they
# are small.
INPUT_SETTINGS = LogSettings(segment_bytes=8 * 1024 * 1024)


class InputLog:
    """The input of all stateful operators, one partition for each query."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._logs: dict[QueryId, Appending] = {}
        self._dirty: dict[QueryId, Appending] = {}
        self._of: dict[QueryId, str] = {}  # the folder of each query
        self.duplicates: dict[tuple[str, Origin], int] = {}  # by query and origin

    @property
    def pending_bytes(self) -> int:
        """The bytes that wait for the disk. O(queries that wait)."""
        return sum(log.partition.pending_bytes for log in self._dirty.values())

    def begin(self, query: QueryId, folder: str) -> bool:
        """Begin or go on with a query whose folder is open. Returns whether it is new here, so that its log must be
        read."""
        partition = self._folders.get(folder)
        if query in self._logs or partition is None:
            return False
        self._of[query] = folder
        self._logs[query] = self._dirty[query] = Appending(query, partition)
        return True

    def folder(self, query: QueryId) -> str:
        """The folder with the input of a query."""
        return self._of.get(query, str(InputFolder(query)))

    def append(
        self, running: RunningFragment, header: Header, rows: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Write a batch before operators compute it. Each stage has its own numbers."""
        query = running.fragment.query
        kind = HeaderKind.STATE if header.state else HeaderKind.INPUT
        if not self._log(query).append(replace(header, kind=kind), rows, receipt) and not header.state:
            key = (query, header.origin.unsided)
            self.duplicates[key] = self.duplicates.get(key, 0) + 1

    def expect(self, running: RunningFragment) -> None:
        """Write which origins the operators wait for, among the batches, so that a second run waits for the same
        origins at the same places."""
        log = self._log(running.fragment.query)
        for change in list(changes_of(running, log.partition.ledger.lanes)):
            log.append(change, None, None)

    def flush(self, now: int) -> list[OnDisk]:
        """The disk work for waiting batches. O(queries that wait)."""
        commands = []
        for query, log in list(self._dirty.items()):
            group = log.partition.flush(now)
            if group is not None:
                commands.append(OnDisk(self._of[query], group))
            elif log.idle:
                del self._dirty[query]
        return commands

    def done(self, event: DiskDone) -> list[PendingBatch] | None:
        """Handle a group that was executed, or failed. Returns the batches that are safe now, to be computed; None if
        it is not ours."""
        folder = read_folder(event.folder)
        log = self._logs.get(folder.query) if isinstance(folder, InputFolder) else None
        if log is None or folder is None or event.folder != self._of[query := folder.query]:
            return None
        safe = log.done(event)
        return [PendingBatch(query, each.header, each.rows, each.position) for each in safe if each.header is not None]

    def checkpoint(self, query: QueryId) -> Checkpoint | None:
        """The newest checkpoint that was on the disk when the log was opened. It is given out once."""
        checkpoints = self._logs[query].partition.checkpoints
        found, checkpoints.found = checkpoints.found, None
        return found

    def keep(self, query: QueryId, position: Position, body: bytes) -> bool:
        """Write a checkpoint of the input before a position. Returns whether it is small enough."""
        return self._log(query).partition.keep(position, body)

    def is_keeping(self, query: QueryId) -> bool:
        """Whether a checkpoint waits for the disk."""
        return self._logs[query].partition.keeps

    def trim(self, now: int) -> list[OnDisk]:
        """The deletes of input that two checkpoints cover. O(queries, and segments that go)."""
        groups = ((query, log.retire(now)) for query, log in self._logs.items() if log.partition.segments)
        return [OnDisk(self._of[query], group) for query, group in groups if group is not None]

    def unwritten(self) -> dict[QueryId, str]:
        """By query, why the disk does not accept its input. O(queries that wait)."""
        troubled = ((query, log.partition.trouble) for query, log in self._dirty.items())
        return {query: f"{self._of[query]}: {trouble}" for query, trouble in troubled if trouble}

    def took(self, query: QueryId, origin: Origin, seq: int) -> bool:
        """Whether a batch of a source is in the log of a query, or is being written to it."""
        log = self._logs.get(query)
        return log is not None and log.partition.ledger.took(origin, seq)

    def is_open(self, query: QueryId) -> bool:
        """Whether the log of a query is read or written here."""
        return query in self._logs

    def is_writing(self, query: QueryId) -> bool:
        """Whether input of a query waits for the disk."""
        log = self._logs.get(query)
        return log is not None and bool(log.waiting)

    def names(self) -> Iterator[tuple[str, Origin, Spans]]:
        """The batches on the disk, or on their way to it: the query, the origin, the batches. O(origins × queries, and
        damage)."""
        for query, log in self._logs.items():
            damaged = log.partition.damaged_names()
            for lane, spans in log.partition.ledger.lanes.spans():
                if lane.kind is HeaderKind.INPUT:
                    yield query, lane.origin.unsided, minus(spans, damaged.get(lane.origin, ()))

    def damage(self) -> dict[QueryId, str]:
        """By query, what is damaged in its input. O(queries)."""
        return {
            query: f"the input of its operators is damaged: {self._of[query]}/{text}"
            for query, log in self._logs.items()
            if (text := log.partition.damage)
        }

    def close(self, query: QueryId) -> list[Header]:
        """Close the log of a stopped query. Its folder stays, and no batch is added. Returns the headers of batches
        being written."""
        log = self._logs.pop(query, None)
        self._dirty.pop(query, None)
        self._folders.forget(self._of.pop(query, str(InputFolder(query))))
        return [] if log is None else [header for header in log.close() if header.kind is HeaderKind.INPUT]

    def waiting(self) -> Iterator[Header]:
        """The headers of batches that wait for the disk."""
        found = ((query, each.header) for query, log in self._logs.items() for each in log.waiting)
        return (of_query(header, query) for query, header in found if header is not None)

    def validate(self) -> None:
        """Every log, and who waits for it. O(queries, and batches that wait)."""
        for query, log in self._logs.items():
            log.validate()
            must(not log.waiting or query in self._dirty, "a log is flushed while batches wait for it", query)
        for query, log in self._dirty.items():
            must(self._logs.get(query) is log, "a log that is flushed is open", query)

    def _log(self, query: QueryId) -> Appending:
        log = self._logs.get(query)
        if log is None:
            raise RoveError(f"the input log of `{query}` is not open; deploy the query first")
        self._dirty[query] = log
        return log

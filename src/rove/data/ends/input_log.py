"""The log that feeds operators with memory again after a crash.

Law: on a node with a disk, the input of such operators is made safe, acked, and only then computed. A restart that
reads it again computes the same batches under the same names, and every one of them is known by its name where it ends.
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
from rove.model.batch import Header, HeaderKind
from rove.model.errors import RoveError
from rove.model.events import Payload
from rove.model.ids import Origin, QueryId

FOLDER = "memory"
NO_COLUMNS = pa.schema([])  # rows of all stages are in one folder


class InputLog:
    """The input of every query's operators with memory, a partition a query."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._logs: dict[QueryId, Appending] = {}
        self._dirty: dict[QueryId, Appending] = {}
        self.duplicates: dict[tuple[str, Origin], int] = {}  # by query and origin

    @property
    def pending_bytes(self) -> int:
        """What waits for the disk. O(queries that wait)."""
        return sum(log.partition.pending_bytes for log in self._dirty.values())

    def begin(self, query: QueryId) -> bool:
        """Go on with a query whose folder is open; whether it is new here, and may hold what is to be read again."""
        partition = self._folders.get(input_folder(query))
        if query in self._logs or partition is None:
            return False
        self._logs[query] = self._dirty[query] = Appending(query, partition)
        return True

    def append(
        self, running: RunningFragment, header: Header, rows: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Make a batch safe before the operators here compute with it. Stages number apart what they take."""
        query = running.fragment.query
        if not self._log(query).append(replace(header, kind=HeaderKind.INPUT), rows, receipt):
            key = (query, header.origin.unsided)
            self.duplicates[key] = self.duplicates.get(key, 0) + 1

    def expect(self, running: RunningFragment) -> None:
        """Keep whom the operators here wait for, and for whom no longer, at its place among the batches: a second run
        has to wait for the same origins at the same moments."""
        log = self._log(running.fragment.query)
        for change in list(changes_of(running, log.partition.ledger.lanes)):
            log.append(change, None, None)

    def flush(self, now: int) -> list[OnDisk]:
        """Disk work for what waits. O(queries that wait)."""
        commands = []
        for query, log in list(self._dirty.items()):
            group = log.partition.flush(now)
            if group is not None:
                commands.append(OnDisk(input_folder(query), group))
            elif log.idle:
                del self._dirty[query]
        return commands

    def done(self, event: DiskDone) -> list[PendingBatch] | None:
        """A group was carried out, or was not: what is safe now, to be computed. None if it is another's."""
        query = QueryId(event.folder.removeprefix(f"{FOLDER}/"))
        log = self._logs.get(query)
        if log is None or event.folder != input_folder(query):
            return None
        safe = log.done(event)
        return [PendingBatch(query, each.header, each.rows) for each in safe if each.header is not None]

    def took(self, query: QueryId, origin: Origin, seq: int) -> bool:
        """Whether a batch of a source is in the log of a query, on the disk or on its way to it."""
        log = self._logs.get(query)
        return log is not None and log.partition.ledger.took(origin, seq)

    def close(self, query: QueryId) -> list[Header]:
        """A query was stopped: its folder stays, nothing is added to it. What was on its way there."""
        log = self._logs.pop(query, None)
        self._dirty.pop(query, None)
        self._folders.forget(input_folder(query))
        return [] if log is None else [header for header in log.close() if header.kind is HeaderKind.INPUT]

    def waiting(self) -> Iterator[Header]:
        """Headers of batches that wait for the disk."""
        return (each.header for log in self._logs.values() for each in log.waiting if each.header is not None)

    def _log(self, query: QueryId) -> Appending:
        log = self._logs.get(query)
        if log is None:
            raise RoveError(f"the input log of `{query}` is not open; deploy the query first")
        self._dirty[query] = log
        return log


def input_folder(query: str) -> str:
    """Where the input of a query's operators with memory is kept, for the next start."""
    return f"{FOLDER}/{query}"

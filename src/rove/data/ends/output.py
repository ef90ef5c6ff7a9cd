"""Where batches end on a node: in partitions of its log, in folders of files, or nowhere.

Law: what ends on a disk is acked when it is on it. A stateful operator on a node with a disk is fed from the disk as
well: its input is made safe, acked, and only then computed, so a restart that reads it again computes the same batches
under the same names, and every one of them is known by its name where it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from rove.data.ends.low_watermark import LowWatermark, parted
from rove.data.ends.pending_input import PendingBatch
from rove.data.ends.shelf import Shelf
from rove.data.ends.wait_changes import is_word, to_say
from rove.data.events import DiskDone, OnDisk
from rove.data.fragment.frontier import Frontier
from rove.data.fragment.pipeline import Count
from rove.data.fragment.running_fragment import RunningFragment, encode_rows
from rove.data.link.receipts import FrameReceipt
from rove.data.log.segments.commands import Group, Position
from rove.data.log.segments.partition import Partition
from rove.model.batch import Header
from rove.model.errors import DiskError, SetupError
from rove.model.events import Payload
from rove.model.ids import QueryId, Stage, source_of
from rove.model.messages import Sink

DELETES = 0  # the token of a group of deletes; groups that are waited for count from 1
NOBODY = ""  # the origin of entries that only carry the low watermark on
OWN = ("log", "memory", "ring")  # folders that no sink of a user's may be in
FOLDED = "-folded"  # behind the name of a folder with late rows, if these are states of them
NO_COLUMNS = pa.schema([])


class _Waiting(NamedTuple):
    position: Position
    query: str
    header: Header | None  # None for a duplicate
    receipt: FrameReceipt | None
    replay: PendingBatch | None


@dataclass(slots=True)
class _Folder:
    query: QueryId
    partition: Partition
    waiting: deque[_Waiting] = field(default_factory=deque)
    watermark: LowWatermark | None = None  # of an output; what operators are fed from has none


class Sinks:
    """Every place on this node where batches end. Without a shelf only `discard` is one."""

    def __init__(self, shelf: Shelf | None) -> None:
        self._shelf = shelf
        self._folders: dict[str, _Folder] = {}
        self._dirty: dict[str, _Folder] = {}
        self._discarded: dict[tuple[str, Stage], Frontier] = {}
        self.counts: dict[tuple[str, str], Count] = {}  # by query and origin
        self.duplicates: dict[tuple[str, str], int] = {}
        self.watermarks: dict[tuple[str, str], int] = {}

    @property
    def durable(self) -> bool:
        return self._shelf is not None

    @property
    def pending_bytes(self) -> int:
        """What waits for the disk. O(folders that wait)."""
        return sum(f.partition.pending_bytes for f in self._dirty.values())

    def open(self, running: RunningFragment) -> Iterator[PendingBatch] | None:
        """Make ready for a query; what its operators here had taken before a restart, to be computed again. None if
        they are fed from no disk, or run already."""
        query = running.fragment.query
        known = any(folder.query == query for folder in self._folders.values())
        for stage, sink in running.fragment.sinks.items():
            if sink.kind == "discard":
                continue
            name = sink_folder(running, stage, sink)
            if sink.kind == "file" and name.split("/")[0] in OWN:
                raise DiskError(f"`{name}` is where a node keeps its own; choose another path for the sink")
            if name not in self._folders:
                if not known:  # it was given up before: what is on the disk is counted anew
                    self.counts = {key: count for key, count in self.counts.items() if key[0] != query}
                    known = True
                opened = self._folder(running, name, stage)
                opened.watermark = LowWatermark(sink, opened.partition.ledger)
                self._count_again(query, opened.partition)
                if sink.time:
                    self._count_again(query, self._folder(running, late_folder(running, stage), stage).partition)
            watermark = self._folders[name].watermark
            if watermark is not None:
                watermark.wait(running.pipeline.origins_at(stage, running.fragment.waits))
                self._dirty[name] = self._folders[name]
        folder = memory_folder(query)
        if running.remembers and self._shelf is not None and folder not in self._folders:
            self._folders[folder] = self._dirty[folder] = _Folder(query, self._shelf.open(folder, NO_COLUMNS))
            return (PendingBatch(query, header, rows) for header, rows in self._shelf.entries(folder))
        return None

    def take(
        self,
        running: RunningFragment,
        stage: Stage,
        sink: Sink,
        header: Header,
        rows: Payload | None,
        receipt: FrameReceipt | None,
    ) -> None:
        """A batch has come to its end."""
        if sink.kind == "discard":
            self._discard(running.fragment.query, stage, header)
        else:
            name = sink_folder(running, stage, sink)
            folder = self._folder(running, name, stage)
            if rows is not None and folder.watermark is not None and folder.watermark.may_be_late(header):
                header, rows = self._part(running, folder, stage, header, rows, receipt)
            self._append(running, name, stage, header, rows, receipt)
            if folder.watermark is not None:
                folder.watermark.heard(header.origin)

    def _part(
        self,
        running: RunningFragment,
        folder: _Folder,
        stage: Stage,
        header: Header,
        rows: Payload,
        receipt: FrameReceipt | None,
    ) -> tuple[Header, Payload | None]:
        """Set aside the rows of a batch that come too late for what reads them behind this sink; what is left."""
        known = folder.partition.ledger.frontier.has(header.origin, header.seq)
        batch = running.read(header, rows)
        late = None if known or folder.watermark is None else folder.watermark.late(batch.data)
        if late is None:
            return header, rows
        kept, aside = parted(header, batch.data, late)
        folder_aside = late_folder(running, stage)
        self._append(running, folder_aside, stage, aside.header, encode_rows(aside.data), receipt, counts=False)
        key = (running.fragment.query, source_of(header.origin))
        self.counts.setdefault(key, Count()).late += aside.rows
        return kept.header, encode_rows(kept.data)

    def take_late(
        self, running: RunningFragment, header: Header, rows: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Rows that came too late are kept beside the query's output, where there is a disk."""
        if self._shelf is None:
            return
        name = f"log/{running.fragment.query}/late-{header.stage}" + (FOLDED if header.folded else "")
        if name not in self._folders:
            opened = self._shelf.open(name, running.schema_of(header))
            self._folders[name] = self._dirty[name] = _Folder(running.fragment.query, opened)
        self._append(running, name, Stage(header.stage), header, rows, receipt, counts=False)

    def remember(
        self, running: RunningFragment, header: Header, rows: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Make a batch safe before the operators here compute with it. Stages number apart what they take."""
        kept = replace(header, origin=f"{header.stage} {header.origin}")
        folder = memory_folder(running.fragment.query)
        self._append(running, folder, Stage(header.stage), kept, rows, receipt, counts=False, replays=True)

    def expect(self, running: RunningFragment) -> None:
        """Keep whom the operators here wait for, and for whom no longer, at its place among the batches: a second run
        has to wait for the same origins at the same moments."""
        folder = memory_folder(running.fragment.query)
        said = self._folder(running, folder, Stage(0)).partition.ledger.frontier
        for word in list(to_say(running, said)):
            self._append(running, folder, Stage(word.stage), word, None, None, counts=False, replays=True)

    def flush(self, now: int) -> list[OnDisk]:
        """Disk work for what waits. O(folders that wait)."""
        commands = []
        for name, folder in list(self._dirty.items()):
            self._carry_on(folder)
            group = folder.partition.flush(now)
            if group is not None:
                commands.append(OnDisk(name, group))
            elif not folder.partition.pending_bytes and not folder.waiting and folder.partition.trouble is None:
                del self._dirty[name]  # with trouble, readers may still have to be told what is there
        return commands

    def _carry_on(self, folder: _Folder) -> None:
        """Tell readers how far event time has come, if it has, with an entry of nobody's."""
        ledger = folder.partition.ledger
        if folder.watermark is not None and folder.watermark.low > ledger.low:
            seq = ledger.frontier.next(NOBODY)
            folder.partition.append(Header(origin=NOBODY, seq=seq, through=seq), None, folder.watermark.low)

    def retire(self, now: int) -> list[OnDisk]:
        """Deletes of segments that may go. What operators are fed from is kept: they may have to read it again."""
        commands = []
        for name, folder in self._folders.items():
            if self._shelf is not None and name != memory_folder(folder.query):
                for reader, position in self._shelf.readers(name).items():
                    folder.partition.consumed(reader, Position(position))
            if name != memory_folder(folder.query) and (deletes := folder.partition.retire(now)):
                commands.append(OnDisk(name, Group(DELETES, tuple(deletes))))
        return commands

    def done(self, event: DiskDone) -> Iterator[PendingBatch]:
        """A group was carried out, or was not: release what is safe now."""
        folder = self._folders.get(event.folder)
        if folder is None:
            return
        if event.token == DELETES:
            if event.trouble:
                folder.partition.undeleted(event.trouble)
            return
        if event.trouble:
            folder.partition.failed(event.token, event.trouble)
            return
        if event.unpublished:
            folder.partition.unpublished(event.token, event.unpublished)
        folder.partition.synced(event.token)
        while folder.waiting and folder.waiting[0].position < folder.partition.committed:
            done = folder.waiting.popleft()
            if done.header is not None:
                self._delivered(done.query, done.header)
            if done.receipt is not None:
                done.receipt.release()
            if done.replay is not None:
                yield done.replay

    def took(self, query: str, origin: str, seq: int) -> bool:
        """Whether a batch of a source is in a folder of a query, on the disk or on its way to it."""
        frontiers = [f.partition.ledger.frontier for f in self._folders.values() if f.query == query]
        frontiers += [f for (q, _), f in self._discarded.items() if q == query]
        return any(f.has(name, seq) for f in frontiers for name in f.table() if source_of(name) == origin)

    def close(self, running: RunningFragment) -> list[Header]:
        """A query was stopped: its folders stay, nothing is added to them. What was on its way to them."""
        dropped: list[Header] = []
        for name in [n for n, folder in self._folders.items() if folder.query == running.fragment.query]:
            folder = self._folders.pop(name)
            self._dirty.pop(name, None)
            for waiting in folder.waiting:
                if waiting.receipt is not None:
                    waiting.receipt.release()
                if waiting.header is not None:
                    dropped.append(waiting.header)
                elif waiting.replay is not None and not is_word(waiting.replay.header.origin):
                    dropped.append(waiting.replay.header)
        return dropped

    def trouble(self) -> dict[str, str]:
        """What is wrong with which folder."""
        return {name: f.partition.trouble for name, f in self._folders.items() if f.partition.trouble}

    def waiting(self) -> Iterator[Header]:
        """Headers of batches that wait for the disk."""
        for folder in self._folders.values():
            for waiting in folder.waiting:
                if waiting.header is not None:
                    yield waiting.header
                elif waiting.replay is not None:
                    yield waiting.replay.header

    def _append(
        self,
        running: RunningFragment,
        name: str,
        stage: Stage,
        header: Header,
        rows: Payload | None,
        receipt: FrameReceipt | None,
        counts: bool = True,
        replays: bool = False,
    ) -> None:
        folder = self._folder(running, name, stage)
        partition, query = folder.partition, running.fragment.query
        position = partition.append(header, rows)
        new = position is not None
        if not new:
            if not is_word(header.origin):
                key = (query, source_of(header.origin))
                self.duplicates[key] = self.duplicates.get(key, 0) + 1
            if partition.committed >= partition.end:
                return
            position = Position(partition.end - 1)  # as safe as what was appended before it, and no safer
        if receipt is not None:
            receipt.hold()
        folder.waiting.append(
            _Waiting(
                position if position is not None else Position(0),
                query,
                header if new and counts else None,
                receipt,
                PendingBatch(query, header, rows) if new and replays else None,
            )
        )
        self._dirty[name] = folder

    def _folder(self, running: RunningFragment, name: str, stage: Stage) -> _Folder:
        folder = self._folders.get(name)
        if folder is None:
            if self._shelf is None:
                raise SetupError(f"query `{running.fragment.query}` ends here, on a node without a disk; give it one")
            opened = self._shelf.open(name, running.stages.operators[stage].schema)
            folder = self._folders[name] = self._dirty[name] = _Folder(running.fragment.query, opened)
        return folder

    def _discard(self, query: str, stage: Stage, header: Header) -> None:
        frontier = self._discarded.setdefault((query, stage), Frontier())
        if frontier.take(header.origin, header.seq, header.through):
            self._delivered(query, header)
        else:
            key = (query, header.origin)
            self.duplicates[key] = self.duplicates.get(key, 0) + 1

    def _delivered(self, query: str, header: Header) -> None:
        key = (query, header.origin.partition("|")[0])
        self.counts.setdefault(key, Count()).take(header)
        self.watermarks[key] = max(self.watermarks.get(key, header.watermark), header.watermark)

    def _count_again(self, query: str, partition: Partition) -> None:
        """What was delivered before a restart counts as delivered."""
        for origin, found in partition.ledger.counts().items():
            key = (query, origin.partition("|")[0])
            count = self.counts.setdefault(key, Count())
            count.delivered += found.born - found.late
            count.late += found.late
            count.evicted += found.evicted
            count.lost += found.lost


def sink_folder(running: RunningFragment, stage: Stage, sink: Sink) -> str:
    """Where an output of a query is kept."""
    if sink.kind == "file":
        return sink.path
    return f"log/{running.fragment.query}/{_output(running, stage)}"


def late_folder(running: RunningFragment, stage: Stage) -> str:
    """Where rows are kept that reached an output's end too late."""
    return f"log/{running.fragment.query}/late-{_output(running, stage)}"


def _output(running: RunningFragment, stage: Stage) -> str:
    return next(name for name, out in running.stages.outputs if out == stage)


def memory_folder(query: str) -> str:
    """Where the input of a query's stateful operators is kept, for the next start. Rows of all stages are in it."""
    return f"memory/{query}"

"""The outputs of a node: partitions of its log, folders of files, folders of late rows, or nothing.

Law: a batch that ends on a disk is acked when it is there. A query begins when the folders that it always needs are
open. A folder of late rows is opened when the first late rows come, and they wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

from rove.data.counts import Count
from rove.data.ends.appending import Appending
from rove.data.ends.low_watermark import LowWatermark, parted
from rove.data.events import AskReaders, DiskDone, OnDisk, Readers
from rove.data.fragment.frontier import Frontier
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.receipts import FrameReceipt
from rove.data.log.folders import Folders
from rove.data.log.segments.commands import Position
from rove.data.log.segments.partition import Partition, check_rows
from rove.data.rows import encode_rows
from rove.model.batch import Header, HeaderKind
from rove.model.disk_folders import AsideFolder, OutputFolder, checked_sink
from rove.model.errors import DiskError, SetupError, must
from rove.model.events import Payload
from rove.model.ids import NOBODY, Origin, QueryId, Stage, Taker
from rove.model.messages import Fragment, Sink
from rove.model.spans import Spans
from rove.plan.stages import Stages


class _Early(NamedTuple):
    """A late batch whose folder is not open yet."""

    query: QueryId
    header: Header
    rows: Payload | None
    receipt: FrameReceipt | None


class Output:
    """All places on this node where batches end. Without a disk, only `discard`."""

    def __init__(self, folders: Folders, durable: bool) -> None:
        self._folders, self.durable = folders, durable
        self._ends: dict[str, Appending] = {}
        self._watermarks: dict[str, LowWatermark] = {}  # by output; late rows have none
        self._dirty: dict[str, Appending] = {}
        self._early: dict[str, deque[_Early]] = {}
        self._early_bytes = 0
        self._again: dict[str, QueryId] = {}  # folders of an earlier start that are being opened
        self._discarded: dict[tuple[str, Stage], Frontier[Origin]] = {}
        self.counts: dict[tuple[str, Origin], Count] = {}  # by query and origin
        self.duplicates: dict[tuple[str, Origin], int] = {}
        self.watermarks: dict[tuple[str, Origin], int] = {}

    @property
    def pending_bytes(self) -> int:
        """The bytes that wait for the disk. O(folders that wait)."""
        return self._early_bytes + sum(end.partition.pending_bytes for end in self._dirty.values())

    def needs(self, fragment: Fragment, stages: Stages) -> dict[str, pa.Schema]:
        """The folders that a fragment's outputs need, with the columns of each."""
        found: dict[str, pa.Schema] = {}
        for stage, sink in fragment.sinks.items():
            if sink.kind == "discard":
                continue
            name = sink_folder(fragment.query, stages, stage, sink)
            if not self.durable:
                raise SetupError(f"query `{fragment.query}` ends here, on a node without a disk; give it one")
            if sink.kind == "file":
                checked_sink(name)
            known = self._ends.get(name)
            if known is not None and known.query != fragment.query:
                raise DiskError(f"query `{known.query}` ends in `{name}` already; choose another path for the sink")
            found[name] = stages.operators[stage].schema
            if sink.time:
                found[late_folder(fragment.query, stages, stage)] = stages.operators[stage].schema
        return found

    def begin(self, running: RunningFragment) -> None:
        """Start a query or a newer version, once its folders are open."""
        fragment = running.fragment
        new = {
            name: partition
            for name in self.needs(fragment, running.stages)
            if name not in self._ends and (partition := self._folders.get(name)) is not None
        }
        if new and not any(end.query == fragment.query for end in self._ends.values()):
            # The node left this query earlier, so delivered rows are counted from the disk.
            self.counts = {key: count for key, count in self.counts.items() if key[0] != fragment.query}
        for name, partition in new.items():
            self._add(name, fragment.query, partition)
            self._count_again(fragment.query, partition)
        for stage, sink in fragment.sinks.items():
            if sink.kind == "discard":
                continue
            name = sink_folder(fragment.query, running.stages, stage, sink)
            if name in new:
                self._watermarks[name] = LowWatermark(sink, new[name].ledger)
        self.wait(running)

    def wait(self, running: RunningFragment) -> None:
        """Wait for the origins that reach each output now. Who is waited for may have changed. O(origins)."""
        fragment = running.fragment
        for stage, sink in fragment.sinks.items():
            if sink.kind != "discard":
                name = sink_folder(fragment.query, running.stages, stage, sink)
                self._watermarks[name].wait(running.pipeline.origins_at(stage, fragment.waits))
                self._dirty[name] = self._ends[name]

    def take(
        self,
        running: RunningFragment,
        stage: Stage,
        sink: Sink,
        header: Header,
        rows: Payload | None,
        receipt: FrameReceipt | None,
    ) -> None:
        """Take a batch at its end."""
        if sink.kind == "discard":
            self._discard(running.fragment.query, stage, header)
            return
        name = sink_folder(running.fragment.query, running.stages, stage, sink)
        watermark = self._watermarks[name]
        if rows is not None and watermark.may_be_late(header):
            header, rows = self._part(running, name, stage, header, rows, receipt)
        self._append(name, header, rows, receipt)
        watermark.heard(header.origin)

    def _part(
        self,
        running: RunningFragment,
        name: str,
        stage: Stage,
        header: Header,
        rows: Payload,
        receipt: FrameReceipt | None,
    ) -> tuple[Header, Payload | None]:
        """Set late rows of a batch aside. Returns the rest."""
        known = self._ends[name].partition.ledger.frontier.has(header.origin, header.seq)
        batch = running.read(header, rows)
        late = None if known else self._watermarks[name].late(batch.data)
        if late is None:
            return header, rows
        query = running.fragment.query
        kept, aside = parted(header, batch.data, late)
        if self._append(late_folder(query, running.stages, stage), aside.header, encode_rows(aside.data), receipt):
            count = self.counts.setdefault((query, header.origin.unsided), Count())
            count.late += aside.rows
            count.delivered -= 0 if header.born else aside.rows
            count.saw(header)
        return kept.header, encode_rows(kept.data)

    def take_late(
        self, running: RunningFragment, header: Header, rows: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Keep late rows, and rows at fault, beside the query's output, if there is a disk."""
        if not self.durable:
            return
        query = running.fragment.query
        name = str(AsideFolder(query, str(header.stage), header.at_fault, header.folded))
        if name not in self._ends:
            partition = self._folders.want(name, running.schema_of(header))
            if partition is None:
                check_rows(header, rows)  # now, as if the folder were open: they may come from another node
                if receipt is not None:
                    receipt.hold()
                self._early.setdefault(name, deque()).append(_Early(query, header, rows, receipt))
                self._early_bytes += 0 if rows is None else len(rows)
                return
            self._add(name, query, partition)
        self._append(name, header, rows, receipt)

    def columns(self, query: QueryId) -> dict[str, pa.Schema]:
        """The folders of a query, with the columns of each. O(folders)."""
        return {name: end.partition.schema for name, end in self._ends.items() if end.query == query}

    def open_again(self, query: QueryId, folders: Mapping[str, pa.Schema]) -> None:
        """Open folders that an earlier start has written, although nothing new comes for them: readers may not have
        been told of all that is there."""
        for name, schema in folders.items():
            if name not in self._ends:
                self._again[name] = query
                if self._folders.want(name, schema) is not None:
                    self.opened(name)

    def opened(self, folder: str) -> None:
        """A folder is open. Late rows that waited for it are written there."""
        partition, again = self._folders.get(folder), self._again.pop(folder, None)
        if again is not None and partition is not None and folder not in self._ends:
            self._add(folder, again, partition)
        for query, header, rows, receipt in self._early.pop(folder, ()):
            self._early_bytes -= 0 if rows is None else len(rows)
            if folder not in self._ends and partition is not None:
                self._add(folder, query, partition)
            self._append(folder, header, rows, receipt)
            if receipt is not None:
                receipt.release()

    def flush(self, now: int) -> list[OnDisk]:
        """The disk work for waiting batches. O(folders that wait)."""
        commands = []
        for name, end in list(self._dirty.items()):
            self._carry_on(name, end.partition)
            group = end.partition.flush(now)
            if group is not None:
                commands.append(OnDisk(name, group))
            elif end.idle:
                del self._dirty[name]
        return commands

    def _carry_on(self, name: str, partition: Partition) -> None:
        """If the low watermark has advanced, append an entry that carries only the new watermark to readers."""
        watermark = self._watermarks.get(name)
        if watermark is not None and watermark.low > partition.ledger.low:
            header = Header(origin=NOBODY, seq=0, through=0, kind=HeaderKind.LOW_WATERMARK)
            partition.append(header, None, watermark.low)

    def retire(self) -> list[AskReaders]:
        """Ask who still reads the folders, before segments are deleted. O(folders)."""
        return [AskReaders(name) for name, end in self._ends.items() if end.partition.segments]

    def read_by(self, event: Readers, now: int) -> list[OnDisk]:
        """The deletes of segments that no reader needs."""
        end = self._ends.get(event.folder)
        if end is None:
            return []
        for reader, position in event.positions.items():
            end.partition.consumed(reader, position)
        group = end.retire(now)
        return [] if group is None else [OnDisk(event.folder, group)]

    def done(self, event: DiskDone) -> None:
        """A group was executed, or failed. Count the batches that are safe now."""
        end = self._ends.get(event.folder)
        if end is not None:
            for waiting in end.done(event):
                if waiting.header is not None and event.folder in self._watermarks:
                    self._delivered(end.query, waiting.header)

    def took(self, query: str, origin: Origin, seq: int) -> bool:
        """Whether a batch of a source is in a folder of a query, or is being written to it."""
        if any(end.partition.ledger.took(origin, seq) for end in self._ends.values() if end.query == query):
            return True
        frontiers = [f for (q, _), f in self._discarded.items() if q == query]
        return any(f.has(name, seq) for f in frontiers for name in f.table() if name.unsided == origin)

    def taken(self) -> Iterator[tuple[str, str, Origin, Spans]]:
        """The batches that each output has taken: the query, the output, the origin, the batches.
        O(origins × outputs)."""
        for name in self._watermarks:
            end = self._ends[name]
            for origin, spans in end.partition.ledger.frontier.spans():
                yield end.query, str(Taker(name, origin.side)), origin.unsided, spans
        for (query, stage), frontier in self._discarded.items():
            for origin, spans in frontier.spans():
                yield query, str(Taker(str(stage), origin.side)), origin.unsided, spans

    def reached(self, query: QueryId) -> dict[str, Position] | None:
        """How far each folder of a query goes, with what waits for the disk; None if a batch waits for a folder that is
        not open yet. O(folders)."""
        if any(early.query == query for waiting in self._early.values() for early in waiting):
            return None
        return {name: end.partition.end for name, end in self._ends.items() if end.query == query}

    def is_safe(self, reached: Mapping[str, Position]) -> bool:
        """Whether all that was `reached` is on the disk, in folders that are open. O(folders)."""
        ends = ((self._ends.get(name), upto) for name, upto in reached.items())
        return all(end is not None and end.partition.committed >= upto for end, upto in ends)

    def damage(self) -> dict[QueryId, str]:
        """What is damaged in the folders of which query. O(folders)."""
        found: dict[QueryId, list[str]] = {}
        for name, end in self._ends.items():
            if end.partition.damage:
                found.setdefault(end.query, []).append(f"{name}/{end.partition.damage}")
        return {query: f"its log is damaged: {'; '.join(texts)}" for query, texts in found.items()}

    def unwritten(self) -> dict[QueryId, str]:
        """Why the disk does not take the output of which query. O(folders that wait)."""
        return {
            end.query: f"{name}: {end.partition.trouble}" for name, end in self._dirty.items() if end.partition.trouble
        }

    def close(self, query: QueryId) -> list[Header]:
        """A query was stopped. Its folders stay, and nothing is added. Returns the headers of batches being written."""
        dropped: list[Header] = []
        for name in [n for n, end in self._ends.items() if end.query == query]:
            headers = self._ends.pop(name).close()
            dropped += headers if self._watermarks.pop(name, None) is not None else []
            self._dirty.pop(name, None)
            self._folders.forget(name)
        for name in [n for n, each in self._again.items() if each == query]:
            del self._again[name]
            self._folders.forget(name)
        for name in [n for n, early in self._early.items() if early[0].query == query]:
            for _, _, rows, receipt in self._early.pop(name):
                self._early_bytes -= 0 if rows is None else len(rows)
                if receipt is not None:
                    receipt.release()
            self._folders.forget(name)
        return dropped

    def validate(self) -> None:
        """Every folder, and who waits for it. O(folders, and batches that wait for them)."""
        for name, end in self._ends.items():
            end.validate()
            must(not end.waiting or name in self._dirty, "a folder is flushed while batches wait for it", name)
        for name, end in self._dirty.items():
            must(self._ends.get(name) is end, "a folder that is flushed is open", name)
        must(self._watermarks.keys() <= self._ends.keys(), "a low watermark is of an output that is open")
        early = sum(0 if each.rows is None else len(each.rows) for found in self._early.values() for each in found)
        must(self._early_bytes == early, "bytes of late rows that wait add up", self._early_bytes, early)
        for frontier in self._discarded.values():
            frontier.validate()

    def waiting(self) -> Iterator[Header]:
        """The headers of batches that wait for the disk, without late ones."""
        ends = (self._ends[name] for name in self._watermarks)
        return (each.header for end in ends for each in end.waiting if each.header is not None)

    def _add(self, name: str, query: QueryId, partition: Partition) -> None:
        self._ends[name] = self._dirty[name] = Appending(query, partition)

    def _append(self, name: str, header: Header, rows: Payload | None, receipt: FrameReceipt | None) -> bool:
        """Write a batch to the log of an end. Returns whether it is new there."""
        end = self._ends[name]
        self._dirty[name] = end
        if end.append(header, rows, receipt):
            return True
        key = (end.query, header.origin.unsided)
        self.duplicates[key] = self.duplicates.get(key, 0) + 1
        return False

    def _discard(self, query: str, stage: Stage, header: Header) -> None:
        frontier = self._discarded.setdefault((query, stage), Frontier())
        if frontier.take(header.origin, header.seq, header.through):
            self._delivered(query, header)
        else:
            key = (query, header.origin)
            self.duplicates[key] = self.duplicates.get(key, 0) + 1

    def _delivered(self, query: str, header: Header) -> None:
        key = (query, header.origin.unsided)
        self.counts.setdefault(key, Count()).take(header)
        self.watermarks[key] = max(self.watermarks.get(key, header.watermark), header.watermark)

    def _count_again(self, query: str, partition: Partition) -> None:
        """Count the rows that were delivered before a restart."""
        for origin, found in partition.ledger.counts().items():
            key = (query, origin.unsided)
            count = self.counts.setdefault(key, Count())
            count.delivered += found.born - found.late
            count.late += found.late + found.belated
            count.evicted += found.evicted
            count.lost += found.lost
            count.faulted += found.faulted
            count.seen = max(count.seen, partition.ledger.frontier.end(origin))


def sink_folder(query: QueryId, stages: Stages, stage: Stage, sink: Sink) -> str:
    """The folder of a query's output."""
    return sink.path if sink.kind == "file" else str(OutputFolder(query, _output(stages, stage)))


def late_folder(query: QueryId, stages: Stages, stage: Stage) -> str:
    """The folder of an output's late rows."""
    return str(AsideFolder(query, _output(stages, stage)))


def _output(stages: Stages, stage: Stage) -> str:
    return next(name for name, out in stages.outputs if out == stage)

"""A node's counts of rows, by query and origin.

Law: produced = delivered + evicted + late + lost + faulted + in flight, at every moment. Each node counts what happens
on it; the sum over all nodes is the account. It also reports which batches it has, so that rows in flight that no node
has are noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rove.data.counts import Count
from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.events import Note, Opened
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.link import Link
from rove.data.sources.positions import SourceAt
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.ids import Origin, QueryId
from rove.model.messages import Tally
from rove.model.spans import Coverage, Spans, bounded, union

LOST_MAX = 10_000  # batches that were counted as lost and are recognized when they come again
COUNTED = ("produced", "delivered", "evicted", "late", "lost", "faulted", "made", "seen", "open")


class Accounts:
    """Counts what this node's sources produced and what it refused. Other counts come from the parts that keep them."""

    def __init__(self) -> None:
        self.refused: dict[str, int] = {}  # refused messages, and damage on the disk, by reason
        self._produced: dict[tuple[str, Origin], Count] = {}
        self._gone: dict[tuple[str, Origin], Count] = {}
        self._stopped: dict[tuple[str, Origin], Count] = {}
        self._taken_before: dict[tuple[str, Origin], dict[str, Spans]] = {}  # batches of `_stopped`
        self._written_off: dict[tuple[str, Origin], Coverage] = {}  # the batches of `_gone`
        self._lost: dict[tuple[str, Origin, int, int], Header] = {}  # their headers, by query, origin, stage and seq

    def produced(self, query: str, header: Header, rows: int) -> None:
        """Count rows that a source made for a query, once for each place in the plan where they go."""
        self._produced.setdefault((query, header.origin), Count()).make(header, rows)

    def goes_on(self, at: SourceAt | None) -> None:
        """A source goes on from an earlier start. What that start has counted before the position is counted here."""
        if at is not None:
            for query, fed in at.fed.items():
                made = fed.next if fed.next > fed.first else 0
                self._produced[query, at.origin] = Count(produced=fed.produced, made=made)

    def refuse(self, why: str, times: int = 1) -> None:
        """Count a refused message or batch."""
        if times:
            self.refused[why] = self.refused.get(why, 0) + times

    def recovered(self, event: Opened, counts_damage: bool) -> list[Note]:
        """Count what was damaged in a folder that is open, and tell what was mended."""
        self.refuse("damaged", event.partition.damaged if counts_damage else 0)
        self.refuse("mended", len(event.partition.mended))
        return [Note(f"{event.folder}: {text}") for text in event.partition.mended]

    def lose(self, query: str, header: Header, why: str) -> None:
        """Count a batch that no node will take."""
        self.refuse(why)
        self.write_off(query, header)

    def write_off(self, query: str, header: Header) -> None:
        """Count the rows of a batch as lost, and rows that were evicted, lost, faulted or late earlier as such. A batch
        is lost once, however often it comes: a sender that has no ack yet, or computes again, sends it again."""
        name = (query, header.origin, header.stage, header.seq)
        if not header.late and name not in self._lost:
            self._lost[name] = header
            if len(self._lost) > LOST_MAX:
                del self._lost[next(iter(self._lost))]
            key = (query, header.origin.unsided)
            self._written_off.setdefault(key, Coverage()).add(header.seq, header.through)
            count = self._gone.setdefault(key, Count())
            count.lost += header.born + header.lost
            count.evicted += header.evicted
            count.faulted += header.faulted
            count.late += header.belated
            count.saw(header)

    def found(self, query: str, header: Header) -> None:
        """Note that a batch has arrived. If it was counted as lost before, it is not lost any more."""
        old = self._lost.pop((query, header.origin, header.stage, header.seq), None) if self._lost else None
        if old is not None and not header.late:
            key = (query, old.origin.unsided)
            self._written_off[key].add(old.seq, old.through, -1)
            count = self._gone[key]
            count.lost -= old.born + old.lost
            count.evicted -= old.evicted
            count.faulted -= old.faulted
            count.late -= old.belated

    def stopped(self, running: RunningFragment, output: Output) -> None:
        """Keep the counts of a query that stops here, and which batches were counted. The rows of its open windows are
        in no result."""
        query = running.fragment.query
        for origin, count in running.counts().items():
            self._stopped.setdefault((query, origin), Count()).add(replace(count, open=0))
        for key, takers in self._counted({query: running}, output).items():
            if key[0] == query:
                self._taken_before[key] = takers

    def tallies(
        self,
        running: Mapping[QueryId, RunningFragment],
        output: Output,
        input_log: InputLog,
        store: Store,
        links: Iterable[Link],
        waiting: Iterable[Header] = (),
    ) -> tuple[Tally, ...]:
        """One line for each query and origin this node has seen. Batches are `waiting` for the disk, to be computed, or
        since an earlier start. O(lines, and batches that wait)."""
        held = self._held(running, input_log, store, waiting)
        counted = self._counted(running, output)
        lines: dict[tuple[str, Origin], dict[str, int]] = {}
        counts: dict[tuple[str, Origin], Count] = {}

        def add(query: str, origin: Origin, what: str, number: int) -> None:
            if number:
                line = lines.setdefault((query, origin.unsided), {})
                line[what] = line.get(what, 0) + number

        def count(query: str, origin: Origin, more: Count) -> None:
            counts.setdefault((query, origin.unsided), Count()).add(more)

        for book in (self._produced, self._gone, self._stopped, output.counts):
            for (query, origin), found in book.items():
                count(query, origin, found)
        for (query, origin), found in self._gone.items():
            add(query, origin, "lost_here", found.lost)
            add(query, origin, "evicted_here", found.evicted)
            add(query, origin, "faulted_here", found.faulted)
            add(query, origin, "late_here", found.late)
        for query, each in running.items():
            for origin, found in each.counts().items():
                count(query, origin, found)
                # Of operators that have moved away. A start from the disk computes it again only if they still send.
                if not each.remembers and not each.sends_state:
                    add(query, origin, "produced_here", found.produced)
                    add(query, origin, "delivered_here", found.delivered)
                    add(query, origin, "late_here", found.late)
            for batch in each.pipeline.held():
                add(query, batch.header.origin, "buffered", batch.header.born)
        for (query, origin), rows in store.rows().items():
            add(query, origin, "buffered", rows)
        for (query, origin), number in (*output.duplicates.items(), *input_log.duplicates.items()):
            add(query, origin, "duplicates", number)
        for link in links:
            for (query, origin), rows in link.resent.items():
                add(query, origin, "resent", rows)
        for (query, origin), found in counts.items():
            for what in COUNTED:
                add(query, origin, what, getattr(found, what))
        return tuple(
            Tally(
                query=QueryId(key[0]),
                origin=key[1],
                watermark=output.watermarks.get(key),
                held=bounded(held[key]) if key in held else (),
                counted=tuple((taker, bounded(spans)) for taker, spans in sorted(counted.get(key, {}).items())),
                **lines.get(key, {}),
            )
            # A source that goes on has a line also before it has counted a row: its earlier start counts no longer.
            for key in sorted({*lines, *held, *counted, *self._produced})
        )

    def _held(
        self,
        running: Mapping[QueryId, RunningFragment],
        input_log: InputLog,
        store: Store,
        waiting: Iterable[Header],
    ) -> dict[tuple[str, Origin], Spans]:
        """The batches that this node has: in its store, in open windows, too early for an operator, or `waiting`; and
        those in an input log that was not computed again yet. What was computed has been passed on, and only a restart
        would bring it back. O(lines, and batches that are early or wait)."""
        found: dict[tuple[str, Origin], list[Spans]] = {}
        for (query, origin), names in store.names().items():
            found.setdefault((query, origin.unsided), []).append(names.spans())
        for query, origin, spans in input_log.names():
            if (each := running.get(QueryId(query))) is None or each.replays:
                found.setdefault((query, origin), []).append(spans)
        for query, each in running.items():
            for origin, names in each.pipeline.open_batches():
                found.setdefault((query, origin), []).append(names.spans())
        early = ((q, batch.header) for q, each in running.items() for batch in each.pipeline.held())
        others: dict[tuple[str, Origin], Coverage] = {}
        for query, header in (*early, *((header.query, header) for header in waiting)):
            others.setdefault((query, header.origin.unsided), Coverage()).add(header.seq, header.through)
        for key, names in others.items():
            found.setdefault(key, []).append(names.spans())
        return {key: spans[0] if len(spans) == 1 else union(spans) for key, spans in found.items()}

    def _counted(
        self, running: Mapping[QueryId, RunningFragment], output: Output
    ) -> dict[tuple[str, Origin], dict[str, Spans]]:
        """The batches that were counted here, by who took them. O(lines × operators and outputs)."""
        found = {key: dict(takers) for key, takers in self._taken_before.items()}

        def add(query: str, origin: Origin, taker: str, spans: Spans) -> None:
            takers = found.setdefault((query, origin), {})
            takers[taker] = union((takers[taker], spans)) if taker in takers else spans

        for (query, origin), names in self._written_off.items():
            add(query, origin, "", names.spans())
        for query, taker, origin, spans in output.taken():
            add(query, origin, taker, spans)
        for query, each in running.items():
            for taker, origin, spans in each.pipeline.taken():
                add(query, origin, taker, spans)
        return found

"""A node's counts of rows, by query and origin.

Law: produced = delivered + evicted + late + lost + in flight, at every moment. Each node counts what happens on it; the
sum over all nodes is the account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.fragment.pipeline import Count
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.link import Link
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.ids import Origin, QueryId
from rove.model.messages import Tally

COUNTED = ("produced", "delivered", "evicted", "late", "lost", "made", "seen")


class Accounts:
    """Counts what this node's sources produced and what it refused. Other counts come from the parts that keep them."""

    def __init__(self) -> None:
        self.refused: dict[str, int] = {}  # refused messages, and unreadable batches on the disk, by reason
        self._produced: dict[tuple[str, Origin], Count] = {}
        self._gone: dict[tuple[str, Origin], Count] = {}
        self._stopped: dict[tuple[str, Origin], Count] = {}

    def produced(self, query: str, header: Header, rows: int) -> None:
        """Count rows that a source made for a query, once for each place in the plan where they go."""
        self._produced.setdefault((query, header.origin), Count()).make(header, rows)

    def refuse(self, why: str) -> None:
        """Count a refused message or batch."""
        self.refused[why] = self.refused.get(why, 0) + 1

    def lose(self, query: str, header: Header, why: str) -> None:
        """Count a batch that no node will take."""
        self.refuse(why)
        self.write_off(query, header)

    def write_off(self, query: str, header: Header) -> None:
        """Count the rows of a batch as lost, and rows that were evicted or lost earlier as such."""
        if not header.late:
            count = self._gone.setdefault((query, header.origin.unsided), Count())
            count.lost += header.born + header.lost
            count.evicted += header.evicted
            count.saw(header)

    def stopped(self, query: str, counts: Mapping[Origin, Count]) -> None:
        """Keep the counts of a query that was stopped here."""
        for origin, count in counts.items():
            self._stopped.setdefault((query, origin), Count()).add(count)

    def tallies(
        self,
        running: Mapping[QueryId, RunningFragment],
        output: Output,
        input_log: InputLog,
        store: Store,
        links: Iterable[Link],
    ) -> tuple[Tally, ...]:
        """One line for each query and origin this node has seen. O(lines)."""
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
        for query, each in running.items():
            for origin, found in each.counts().items():
                count(query, origin, found)
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
            Tally(query=QueryId(q), origin=o, watermark=output.watermarks.get((q, o)), **line)
            for (q, o), line in sorted(lines.items())
        )

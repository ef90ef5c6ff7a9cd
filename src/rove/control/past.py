"""Counts of those who speak no more: nodes that left, and earlier starts of nodes that are there again.

Law: what was counted stays counted, also when the coordinator is started anew. An origin that is `gone` makes no rows
any more. Whoever is heard again under an old number was not gone after all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from rove.model.ids import NodeId, Origin
from rove.model.messages import Tally


class PastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a node that is over: what it had counted, and the origins that ended with it."""

    node: NodeId
    incarnation: int
    tallies: tuple[Tally, ...]
    gone: tuple[Origin, ...]

    @property
    def name(self) -> str:
        return f"{self.node} {self.incarnation}"


class Past:
    """Starts of nodes that are over. `gone` are the origins that ended with them."""

    def __init__(self) -> None:
        self._records: dict[tuple[NodeId, int], PastRecord] = {}
        self._news: dict[str, PastRecord | None] = {}
        self.gone: dict[Origin, None] = {}

    def restore(self, records: Iterable[PastRecord]) -> None:
        self._records = {(r.node, r.incarnation): r for r in records}
        self._settle()

    def over(
        self,
        node: NodeId,
        incarnation: int,
        tallies: Iterable[Tally],
        gone: Iterable[Origin],
        sources: Container[Origin] | None = None,
    ) -> None:
        """A start of a node is over. One with a disk counts again all but what its `sources` had made: what has an end
        there, and what its operators gave, for they compute it again."""
        before = self._records.get((node, incarnation))
        ended = dict.fromkeys((*(() if before is None else before.gone), *gone))
        if sources is not None:
            kept = [Tally(query=t.query, origin=t.origin, produced=t.produced) for t in tallies if t.origin in sources]
        else:
            kept = [replace(t, buffered=0) for t in tallies]
        record = PastRecord(node=node, incarnation=incarnation, tallies=tuple(kept), gone=tuple(ended))
        self._records[node, incarnation] = self._news[record.name] = record
        self.gone |= ended

    def ended(self, node: NodeId, incarnation: int, gone: Iterable[Origin]) -> None:
        """Origins ended while their node goes on."""
        self.over(node, incarnation, (), gone)

    def heard(self, node: NodeId, incarnation: int) -> None:
        """This one is there: what it counted it tells by itself. O(1) if it was not thought to be over."""
        record = self._records.pop((node, incarnation), None)
        if record is not None:
            self._news[record.name] = None
            self._settle()

    def tallies(self) -> Iterator[Tally]:
        return (tally for record in self._records.values() for tally in record.tallies)

    def news(self) -> dict[str, PastRecord | None]:
        """Records that have changed since the last call, by name; None for those that are no more."""
        found, self._news = self._news, {}
        return found

    def _settle(self) -> None:
        self.gone = {origin: None for record in self._records.values() for origin in record.gone}

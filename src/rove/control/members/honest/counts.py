"""What a node may count of rows.

Law: a device counts its own rows only; counts of another node's rows are a lie, and the whole report is refused. An
edge or a gateway counts what it was sent, and the sender may have lied: counts of rows that cannot have passed this
node are left out, and the rest of its report is taken. So are counts that cannot be: of queries that do not exist, of
streams that the query does not read, of operators that never ran there or below, and numbers that no node reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rove.control.members.honest.bounds import possible
from rove.model.errors import ProtocolError
from rove.model.ids import SOURCE, NodeId, Origin
from rove.model.messages import Report, Tally

if TYPE_CHECKING:
    from rove.control.deployment.deployments import Deployments
    from rove.control.members.below import Below
    from rove.control.members.membership import Member

OWN_LINES_MAX = 5_000  # counts of one device: a line for each query and stream of it, and for each start it has rows of
LINES_MAX = 2_000_000  # counts of another node: a line for each device and query, twice over


class CountsHere:
    """Judges the counts in one report of a node of some kind. `known` is the node as it was before."""

    def __init__(self, report: Report, known: Member | None, kind: str, deployments: Deployments, below: Below) -> None:
        self._report, self._kind, self._deployments, self._below = report, kind, deployments, below
        facts = report.facts
        self._durable = facts.durable if facts is not None else known is not None and known.record.durable
        self._before = {} if known is None else known.tallies
        sources = () if known is None else known.record.sources
        self._own = {source.origin for source in (*sources, *(report.facts.sources if report.facts else ()))}
        self._room = (OWN_LINES_MAX if kind == "device" else LINES_MAX) - (0 if report.whole else len(self._before))

    def honest(self) -> tuple[tuple[Tally, ...], str]:
        """The counts that the node may report, and why others are left out. O(counts), plus O(nodes above a maker) for
        each that is new."""
        kept: list[Tally] = []
        why = ""
        for tally in self._report.tallies:
            if tally.query not in self._deployments.queries:
                continue  # a node may run what a coordinator with another catalog had told it
            new = (tally.query, tally.origin) not in self._before
            lie = (self._new(tally) if new else "") or ("" if possible(tally) else "counts that cannot be")
            if not lie:
                kept.append(tally)
                self._room -= new
            elif not why:
                why = f"{lie} (`{str(tally.origin.unsided)[:200]}` of query `{tally.query[:200]}`)"
        return tuple(kept), why

    def _new(self, tally: Tally) -> str:
        """Why a node may not have a line; empty if it may."""
        node, origin, query = self._report.node, tally.origin, self._deployments.queries[tally.query]
        if origin.node not in ("", node) and self._kind == "device":
            raise ProtocolError("identity", f"`{node}` is a device and may not count rows of `{origin}`")
        if origin.side or not (origin.name in query.streams if origin.stage == SOURCE else origin.name == query.id):
            return "counts of rows that the query does not have"
        if self._room <= 0:
            return "more counts than it can have"
        if origin.node == node:
            return "" if self._is_own(origin) else "counts of a start that it never had"
        if not origin.node:
            return "" if self._ran_below(tally) else "counts of an operator whose rows never came to it"
        came = self._deployments.may_carry(tally.query, node, NodeId(origin.node))
        return "" if came else "counts of rows that never came to it"

    def _is_own(self, origin: Origin) -> bool:
        """Whether it is of this start of a node, of all its starts, of an earlier one with rows on its disk, or of any
        earlier one of a node that computes its input again from its disk."""
        if origin.stage != SOURCE or origin.start in (0, self._report.start) or origin in self._own:
            return True
        return self._durable and origin.start < self._report.start

    def _ran_below(self, tally: Tally) -> bool:
        """Whether a merging operator ever ran on the node or below it, or its rows end there."""
        deployment = self._deployments.queries[tally.query].deployment
        ends = deployment is not None and deployment.root == self._report.node
        maker = tally.origin.maker
        return self._below.has(self._report.node, maker) or (ends and self._below.knows(maker))

"""What holds a query up or costs it rows, from all that the coordinator knows, and since when.

Law: reading changes nothing. Times are kept where a trouble begins (`rollout`, `query`, `troubled`, `absence`,
`spark_side`); everything else is worked out here, for the queries that are asked for. O(troubles of the query), plus
O(its sources × height) if some of its nodes let no rows past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rove.control.asks.requests import Trouble
from rove.control.deployment.deployments import Deployments
from rove.control.deployment.query import Query
from rove.control.deployment.rollout import PartState
from rove.control.deployment.shares import shares
from rove.control.members.absence import Absence
from rove.control.members.membership import Membership
from rove.control.members.spark_side import SILENT_US, SparkSide
from rove.model.ids import NodeId
from rove.model.spans import text_of

SHOWN_MAX = 3  # troubles of one kind that are listed for a query; of others only the number is
TRIES_MAX = 3  # a query that has failed in Spark so often in a row does not recover by itself


class Troubles:
    """Reads the troubles of queries at one moment. `now` never runs backwards; `wall` is the wall clock."""

    def __init__(
        self,
        deployments: Deployments,
        membership: Membership,
        spark: SparkSide,
        absence: Absence,
        *,
        now: int,
        wall: int,
    ) -> None:
        self.deployments, self.membership, self.spark, self._absence = deployments, membership, spark, absence
        self.now, self.wall = now, wall

    def of(self, query: Query) -> tuple[Trouble, ...]:
        """The troubles of a query, by kind, the oldest of each kind first."""
        if query.stopped:
            why = query.record.stopped_by
            return (self._trouble(why, self.now, final=True),) if why else ()
        away = self._causes(query)
        full = (node for node, here, _ in self.membership.troubled.of_query(query.id) if here.holds)
        holding = _Holding(query, dict.fromkeys((*away, *full)))
        kinds = (
            self._waits(query),
            self._misfits(query),
            self._unplaced(query),
            self._on_nodes(query, holding),
            self._pending(query),
            self._away(query, away, holding),
            self._missing(query),
            self._in_spark(query),
        )
        return tuple(trouble for kind in kinds for trouble in _shown(kind))

    def of_placing(self) -> list[tuple[str, str]]:
        """What the coordinator itself cannot do for queries now, as query and sentence. O(queries without a place, or
        with sources without one)."""
        found: list[tuple[str, str]] = []
        for id in self.deployments.unsettled():
            query = self.deployments.queries[id]
            for kind in (self._waits(query), self._unplaced(query)):
                found += [(id, trouble.reason) for trouble in _shown(kind)]
        return found

    def _trouble(self, reason: str, since: int, who: str = "", holds: bool = False, final: bool = False) -> Trouble:
        ago = max(0, self.now - since)
        return Trouble(reason=reason, who=who, since_us=self.wall - ago, for_ms=ago // 1_000, holds=holds, final=final)

    def _waits(self, query: Query) -> Iterator[Trouble]:
        if query.waits_for:
            yield self._trouble(query.waits_for, query.waits_since_us, holds=True)

    def _misfits(self, query: Query) -> Iterator[Trouble]:
        """Devices that bring a stream of the query with other columns."""
        for stream in query.streams:
            for node, reason, since in self.membership.troubled.of_stream(stream):
                yield self._trouble(reason, since, node)

    def _unplaced(self, query: Query) -> Iterator[Trouble]:
        for each in query.unplaced.values():
            yield self._trouble(each.reason, each.since_us, each.node)

    def _on_nodes(self, query: Query, holding: _Holding) -> Iterator[Trouble]:
        for node, here, since in self.membership.troubled.of_query(query.id):
            yield self._trouble(here.text, since, node, here.holds and holding.by(node), here.final)

    def _pending(self, query: Query) -> Iterator[Trouble]:
        """Nodes that do not run their part yet. A node that is away, or says by itself why it does not, is listed for
        that; a node that waits for such a node is not the cause."""
        explained = {node for node, _, _ in self.membership.troubled.of_query(query.id)}
        explained |= self._absence.away.get(query.id, {}).keys()
        for node, since in query.rollout.pending.items():
            member = self.membership.members.get(node)
            if node in explained:
                continue
            if member is None:
                yield self._trouble("the query needs this node, and it was removed; start it", since, node)
            elif member.conn is None:
                yield self._trouble("has not reported since the coordinator started; start it", since, node)
            elif query.rollout.states.get(node) is PartState.TOLD:
                yield self._trouble("was told its part, and has not answered yet that it runs it", since, node)

    def _causes(self, query: Query) -> dict[NodeId, int]:
        """The nodes that are silent, or have no working link to the next node, and since when. Nodes behind them are
        left out."""
        away, deployment, found = self._absence.away.get(query.id, {}), query.deployment, dict[NodeId, int]()
        for node, since in away.items():
            if deployment is None or node not in deployment.tree:
                continue
            above = deployment.tree.parts[node].next
            if self._silent(node) or (above is not None and not self.membership.topology.works(node, above)):
                found[node] = since
        return found

    def _silent(self, node: NodeId) -> bool:
        member = self.membership.members.get(node)
        return member is None or member.state(self.now) != "up"

    def _away(self, query: Query, away: dict[NodeId, int], holding: _Holding) -> Iterator[Trouble]:
        for node, since in away.items():
            what = "does not report" if self._silent(node) else "reaches none of its parents"
            if node in holding.given_up:
                then = "event time goes on without it, and its rows will be late"
            elif holding.timed:
                then = f"event time waits for it, for {query.patience_us(node) / 1_000_000:g} s at most (returnTimeout)"
            else:
                then = "rows wait there and below it"
            if (verdict := self._absence.deaths.verdicts.get((query.id, node))) is not None:
                then = f"{then}; {verdict.why}"
            if query.deployment is not None and shares.waits_for(query.deployment, node):
                then = f"{then}; rows of devices that have left it wait at `{query.deployment.root}` until it reports"
            yield self._trouble(f"{what}: {then}. Start it, or bring it into reach", since, node, holding.by(node))

    def _missing(self, query: Query) -> Iterator[Trouble]:
        for origin, doubt in self.membership.missing.lines(query.id):
            reason = (
                f"batches {text_of(doubt.batches)} of `{origin}` are missing: no node has them, and they did not "
                f"arrive; see rove status {query.id}"
            )
            yield self._trouble(reason, doubt.since_us, final=True)

    def _in_spark(self, query: Query) -> Iterator[Trouble]:
        last, since = self.spark.last(query.id), self.spark.failing_since(query.id)
        if query.record.cloud is None or query.deployment is None:
            return
        if last is not None and since is not None:
            tries = f" ({last.failures} failures in a row; it is tried again)" if last.failures else ""
            refuses = " (it is not tried again; stop the query, and submit it again when this is mended)"
            reason = f"{last.trouble}{refuses if last.final else tries}"
            final = last.final or last.failures >= TRIES_MAX
            yield self._trouble(reason, since, "Spark", holds=True, final=final)
        listens = self._absence.since
        asked = self.spark.asked_us if self.spark.asked_us is not None else listens
        if asked is not None and self.now - (silent := max(asked, query.placed_us)) > SILENT_US:
            reason = "does not ask for queries, and rows wait in the log of the gateway; start it: rove cloud"
            yield self._trouble(reason, silent, "Spark", holds=True)


class _Holding:
    """Whether nodes that let no rows past hold a whole query up: if no source has another route, or if event time
    waits for them."""

    def __init__(self, query: Query, stuck: dict[NodeId, None]) -> None:
        deployment = query.deployment
        self.given_up: dict[NodeId, None] = {} if deployment is None else deployment.absent
        self.timed = bool(stuck) and deployment is not None and deployment.terms.timed
        self._flows = deployment is None or any(
            not any(node in stuck for node in deployment.tree.route(source)) for source in deployment.sourced
        )

    def by(self, node: NodeId) -> bool:
        return not self._flows or (self.timed and node not in self.given_up)


def _shown(kind: Iterable[Trouble]) -> Iterator[Trouble]:
    """The oldest troubles of a kind, and how many more there are."""
    found = sorted(kind, key=lambda trouble: (trouble.since_us, trouble.who))
    yield from found[:SHOWN_MAX]
    if rest := found[SHOWN_MAX:]:
        yield Trouble(
            reason=f"and {len(rest):,} more of this kind",
            since_us=rest[0].since_us,
            for_ms=rest[0].for_ms,
            holds=any(trouble.holds for trouble in rest),
            final=any(trouble.final for trouble in rest),
        )

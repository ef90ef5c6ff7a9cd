"""Redeploys whole queries when routes change: the baselines HSQD and HCQD of ISQD, section 7.1, for comparison.

Law: changes are queued and taken in batches. Every query with a source whose route is broken, and could be better, is
redeployed whole: all its nodes are told that the sources hold (it is undeployed), it is placed anew with all its
sources, and all its nodes are told their parts (it is deployed). One query follows the other (HSQD), or all begin at
once (HCQD); then the next batch follows. Nodes, links, stores and frontiers work as with other strategies. A node with
sources keeps its rows meanwhile and sends them on later, so none is lost. Operators with memory stay where they are.

A node that does not answer is waited for as long as it is up, and for a limited time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from rove.control.deployment.change_set import ChangeSet
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.query import Query
from rove.control.deployment.touched import Touched
from rove.control.members.membership import Membership
from rove.control.placement import Load, Request, strategy
from rove.control.topology.topology import Topology
from rove.model.errors import RoveError
from rove.model.ids import NodeId, QueryId, Stage

if TYPE_CHECKING:
    from rove.control.deployment.deployments import Deployments

# "state_transfer" is incremental, and an operator that moves takes rows only when its whole state has arrived.
Redeploy: TypeAlias = Literal["incremental", "state_transfer", "holistic_serial", "holistic_concurrent"]
WAIT_US_MAX = 10_000_000  # for the nodes of one query, to hold or to run their parts


@dataclass(slots=True)
class _Step:
    """A query that is being redeployed: it `holds`, or is deployed."""

    touched: Touched
    since_us: int
    holds: bool = True


class Holistic:
    """The queries that wait for their redeployment (`waiting`), those of the present batch, and those under way."""

    def __init__(self, deployments: Deployments, membership: Membership, at_once: bool) -> None:
        self._deployments, self._membership, self._at_once = deployments, membership, at_once
        self.waiting: dict[QueryId, Touched] = {}
        self._batch: dict[QueryId, Touched] = {}
        self._under_way: dict[QueryId, _Step] = {}

    def __bool__(self) -> bool:
        """Whether there is something to do."""
        return bool(self.waiting or self._batch or self._under_way)

    def queue(self, query: QueryId, touched: Touched) -> None:
        """Queue a query that changes of the topology affect."""
        known = self.waiting.get(query)
        self.waiting[query] = touched if known is None else known.with_other(touched)

    def steps(self, now: int) -> Iterator[tuple[Query, ChangeSet]]:
        """Do what can be done now. Returns the change sets of queries that hold, or are deployed. O(queries under way),
        plus O(nodes × stages × height) for each of these."""
        for id, step in list(self._under_way.items()):
            query = self._deployments.queries[id]
            if query.stopped or query.deployment is None:
                del self._under_way[id]
            elif not self._answered(query, step, now):
                continue
            elif step.holds:
                self._under_way[id] = _Step(step.touched, now, holds=False)
                yield query, self._deployments.redeploy(query, query.deployment, step.touched)
            else:
                del self._under_way[id]
        if not self._under_way and not self._batch:
            self._batch, self.waiting = self.waiting, {}
        while self._batch and (self._at_once or not self._under_way):
            id = next(iter(self._batch))
            touched, query = self._batch.pop(id), self._deployments.queries[id]
            if query.deployment is not None and not query.stopped:
                self._under_way[id] = _Step(touched, now)
                yield query, self._deployments.hold(query, query.deployment)

    def _answered(self, query: Query, step: _Step, now: int) -> bool:
        """Whether all nodes of a query that are up have done what they were told."""
        return now - step.since_us >= WAIT_US_MAX or not any(self._is_up(node, now) for node in query.rollout.pending)

    def _is_up(self, node: NodeId, now: int) -> bool:
        member = self._membership.members.get(node)
        return member is not None and member.state(now) == "up"


def place_anew(query: Query, deployment: Deployment, request: Request, topology: Topology, load: Load) -> None:
    """Place a query from nothing, with the operators of Spark left to Spark. It stays as it is if a source has no
    route, or an operator has memory. O(sources × stages × height)."""
    placed = {origin for node in deployment.sourced for _, origin in deployment.placed(node)}
    reaching = {source.origin for sources in request.sources.values() for source in sources}
    if deployment.terms.in_order or not placed <= reaching:
        return
    spark = (Stage(n) for n in range(len(request.stages.operators)) if n not in deployment.terms.split.numbers)
    whole = replace(request, hints={**request.hints, **dict.fromkeys(spark, "cloud")})
    position = deployment.journal.position
    deployment.put(dict.fromkeys(deployment.tree.parts))
    try:
        deployment.place(strategy(query.record.strategy)(whole, topology, load), whole.sources)
    except RoveError:
        deployment.roll_back(position)

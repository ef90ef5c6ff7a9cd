"""One query as the coordinator knows it: the request, its state, and its deployment.

Law: the request is stored once. The deployment is stored node by node (`part`), and changes by change sets.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from rove.control.asks.requests import PATIENCE_US, CloudSink, Submit
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.fragments import Terms, ends_of
from rove.control.deployment.rollout import Rollout
from rove.control.deployment.split import Split, split
from rove.control.placement import Load, Placement, Request, SourceAt
from rove.control.placement.demands import sites_of
from rove.model.errors import must
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.lifecycle import Machine, Table
from rove.model.messages import Fragment, Sink, plan_digest
from rove.model.schema import schema_text
from rove.plan.codec import decode
from rove.plan.operators import Map, Source
from rove.plan.sites import Site
from rove.plan.stages import Stages
from rove.plan.user_functions import Unread, function_key, unread

_ASKED = {
    "plan": "plan",
    "sink": "sink",
    "strategy": "strategy",
    "cloud": "sink in Spark",
    "patience_us": "returnTimeout",
    "patience_of": "returnTimeout of a stream",
    "replace_us": "replaceTimeout",
    "replication": "replication",
    "copies": "use of routes",
    "thins": "degrade",
    "folds": "degrade by folding",
    "stops_at_fault": "onFault",
}


class QueryState(Enum):
    """The state of a query."""

    WAITING = "waiting"  # not placed: a stream has no source, or there is no gateway
    DEPLOYING = "deploying"  # placed, but some nodes do not run their part yet
    RUNNING = "running"
    STOPPED = "stopped"


class QueryEvent(Enum):
    CHANGE = "change"  # some parts have changed
    COMPLETE = "complete"  # all nodes run their parts
    STOP = "stop"


_S, _E = QueryState, QueryEvent
QUERIES: Table[QueryState, QueryEvent] = {
    _S.WAITING: {_E.CHANGE: _S.DEPLOYING, _E.STOP: _S.STOPPED},
    _S.DEPLOYING: {_E.CHANGE: _S.DEPLOYING, _E.COMPLETE: _S.RUNNING, _E.STOP: _S.STOPPED},
    _S.RUNNING: {_E.CHANGE: _S.DEPLOYING, _E.STOP: _S.STOPPED},
    _S.STOPPED: {},
}


class QueryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a query: the request, and what was decided once when it was placed."""

    query: QueryId
    plan: str  # the digest of its plan
    sink: Sink
    strategy: str
    cloud: CloudSink | None = None
    patience_us: int = PATIENCE_US
    patience_of: dict[str, int] = {}  # by stream, where it differs
    replace_us: int | None = None  # how long a node may be silent before its operators start elsewhere
    replication: int = 1  # routes that share no node, for each source
    copies: bool = True  # kept batches are sent over all routes; else over the best
    thins: int = 0  # keep every n-th row of batches that devices have no room for
    folds: bool = False  # fold rows that devices have no room for into partial aggregates
    stops_at_fault: bool = False
    stopped_by: str = ""  # why it was stopped, if no user did it
    stopped: bool = False
    gateway: NodeId | None = None  # None if it was not placed yet
    spark: tuple[Stage, ...] = ()
    why: dict[Stage, str] = {}

    @classmethod
    def of(cls, asked: Submit) -> QueryRecord:
        """The record of a query that is not placed yet."""
        return cls(
            query=QueryId(asked.name),
            plan=plan_digest(asked.plan),
            sink=asked.sink,
            strategy=asked.strategy,
            cloud=asked.cloud,
            patience_us=asked.patience_us,
            patience_of=asked.patience_of,
            replace_us=asked.replace_us,
            replication=asked.replication,
            copies=asked.copies,
            thins=asked.thins,
            folds=asked.folds,
            stops_at_fault=asked.stops_at_fault,
        )

    def asked_otherwise(self, other: QueryRecord) -> list[str]:
        """The names of the options in which two requests differ."""
        return [word for name, word in _ASKED.items() if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A source that has no place: its node, the reason, and since when."""

    node: NodeId
    reason: str
    since_us: int


@dataclass(slots=True)
class Query:
    """A query and its deployment. Without a deployment, or without a source, it waits; `waits_for` is the reason. Each
    reason is kept with the time since when it holds."""

    record: QueryRecord
    plan: bytes
    stages: Stages
    rollout: Rollout
    machine: Machine[QueryState, QueryEvent]
    deployment: Deployment | None = None
    amended: int = 0  # the first version with its plan, if the coordinator has seen it amended
    waits_for: str = ""
    waits_since_us: int = 0
    placed_us: int = 0
    sites: tuple[Site, ...] = ()  # where each operator can run
    whole_states: bool = False  # whether operators that move wait for their whole state
    streams: dict[str, Stage] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)  # the columns of its streams
    functions: dict[Stage, str] = field(default_factory=dict)  # the keys of users' functions (plan/user_functions)
    unplaced: dict[Origin, Unplaced] = field(default_factory=dict)
    cut: dict[NodeId, int] = field(default_factory=dict)  # nodes with sources whose route is broken, since when
    drained: dict[NodeId, str] = field(default_factory=dict)  # nodes that are being drained, and what holds them up
    dead: dict[NodeId, str] = field(default_factory=dict)  # dead nodes, and why their operators cannot start elsewhere
    # By state: the nodes that have reported that all of it has moved.
    moved: dict[Origin, dict[NodeId, None]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: QueryRecord, plan: bytes, rollout: Rollout, whole_states: bool = False) -> Query:
        stages, machine = decode(plan, unread), Machine(QUERIES, QueryState.WAITING, f"query `{record.query}`")
        found = cls(record, plan, stages, rollout, machine, sites=sites_of(stages), whole_states=whole_states)
        for stage in stages.sources():
            operator = stages.operators[stage]
            if isinstance(operator, Source):
                found.streams[operator.stream] = stage
                found.columns[operator.stream] = schema_text(operator.schema)
        for n, operator in enumerate(stages.operators):
            if isinstance(operator, Map) and isinstance(operator.function, Unread):
                found.functions[Stage(n)] = function_key(operator.function.word)
        if record.stopped:
            found.step(QueryEvent.STOP)
        return found

    @property
    def id(self) -> QueryId:
        return self.record.query

    @property
    def stopped(self) -> bool:
        return self.machine.state is QueryState.STOPPED

    @property
    def state(self) -> QueryState:
        return self.machine.state

    @property
    def fragments(self) -> Mapping[NodeId, Fragment]:
        """The fragment that each node should run."""
        return {} if self.deployment is None else self.deployment.fragments

    @property
    def version(self) -> int:
        return 0 if self.deployment is None else self.deployment.version

    @property
    def unsettled(self) -> bool:
        """Whether more routes or more room could improve its placement."""
        return bool(self.deployment is None or self.unplaced or self.cut or self.drained or self.dead)

    def wait(self, reason: str, now: int) -> None:
        """Wait for something; an empty reason ends the wait. The time of a wait that goes on does not change."""
        if reason != self.waits_for:
            self.waits_for, self.waits_since_us = reason, now

    def leave_out(self, origin: Origin, node: NodeId, reason: str, now: int) -> None:
        """Note that a source has no place. The time of a reason that goes on does not change."""
        known = self.unplaced.get(origin)
        if known is None or (known.node, known.reason) != (node, reason):
            self.unplaced[origin] = Unplaced(node, reason, now)

    def restored(self, nodes: Iterable[NodeId], now: int) -> None:
        """Its records, of these nodes, were read. No node has reported yet."""
        self.rollout.restored(nodes, self.fragments, now)
        if self.deployment is not None:
            self.step(QueryEvent.CHANGE)
            if not self.rollout.pending:  # all of its nodes were removed
                self.step(QueryEvent.COMPLETE)

    def step(self, event: QueryEvent) -> None:
        self.machine.step(event)

    def patience_us(self, node: NodeId | None = None) -> int:
        """How long to wait for a node: the longest return timeout of its streams; without streams, the longest of
        all."""
        record = self.record
        if not record.patience_of:
            return record.patience_us
        placed = () if self.deployment is None or node is None else self.deployment.placed(node)
        stages = {stage for stage, _ in placed}
        streams = [stream for stream, stage in self.streams.items() if stage in stages]
        return max(record.patience_of.get(stream, record.patience_us) for stream in streams or self.streams)

    def end(self, gateway: NodeId) -> NodeId | None:
        """The node of its sink; None means the cloud behind this gateway."""
        sink = self.record.sink
        return None if sink.kind == "log" and sink.node in (None, gateway) else sink.node or gateway

    def request(
        self,
        gateway: NodeId,
        sources: Mapping[Stage, tuple[SourceAt, ...]],
        lacking: Callable[[NodeId], Container[str]],
    ) -> Request:
        """The request for a placement with these sources. `lacking` gives the functions that a node cannot load."""
        functions = self.functions
        return Request(
            query=self.id,
            stages=self.stages,
            sources=sources,
            gateway=gateway,
            sink=self.end(gateway),
            hints=dict(self.stages.hints),
            sites=self.sites,
            lacks=(lambda stage, node: functions.get(stage) in lacking(node)) if functions else None,
        )

    def split(self) -> Split | None:
        """The parts for workers and for Spark; None while it is not placed."""
        return None if self.deployment is None else self.deployment.terms.split

    def deploy(self, gateway: NodeId, load: Load, starts: Mapping[NodeId, int]) -> Deployment:
        """An empty deployment on this gateway, by the decisions in the record."""
        return Deployment(self._terms(gateway), self.end(gateway) or gateway, load, starts)

    def amend(self, plan: bytes, stages: Stages) -> None:
        """Go on with an amended plan (plan/rules/amend), from the next version on. O(nodes)."""
        self.record = msgspec.structs.replace(self.record, plan=plan_digest(plan))
        self.plan, self.stages, self.sites = plan, stages, sites_of(stages)
        if self.deployment is not None:
            self.amended = self.version + 1
            self.deployment.amend(self._terms(self.record.gateway or self.deployment.root))

    def lacks_plan(self, node: NodeId) -> bool:
        """Whether a node that runs the query may not have its plan."""
        runs = self.rollout.runs(node)
        return runs is None or runs < self.amended or self.rollout.told_before(node)

    def _terms(self, gateway: NodeId) -> Terms:
        record, end = self.record, self.end(gateway)
        parts = split(self.stages, record.spark)
        sinks = {} if end is None else dict.fromkeys(_outputs(self.stages), record.sink)
        return Terms(
            query=self.id,
            stages=self.stages,
            split=parts,
            ends=ends_of(self.id, parts, sinks, end),
            copies=record.copies,
            thins=record.thins,
            folds=record.folds,
            whole=self.whole_states,
        )

    def placement(self) -> Placement | None:
        """Its deployment as a placement. O(nodes × stages)."""
        return None if self.deployment is None else self.deployment.placement(self.record.why)

    def validate(self, whole: bool = True) -> None:
        """Raise if its parts contradict each other. O(nodes × stages × height); O(nodes) if it is not `whole`: then
        what follows from the deployment's parts is not worked out again."""
        must(self.stopped == self.record.stopped, "a query is stopped if its record says so", self.id, self.state)
        self.rollout.validate({} if self.stopped else self.fragments)
        if self.stopped:
            return
        waits = self.state is QueryState.WAITING
        must(waits == (self.deployment is None), "a query waits until it is deployed", self.id, self.state)
        must((self.record.gateway is None) == waits, "a query that is deployed has a gateway", self.id)
        # A node that ran its part and has started again is pending too, and the query runs on.
        deploying = self.state is QueryState.DEPLOYING
        must(not deploying or bool(self.rollout.pending), "a query deploys while a part is pending", self.id)
        if self.deployment is not None and whole:
            self.deployment.validate()


def _outputs(stages: Stages) -> list[str]:
    return ["out"] if len(stages.outputs) == 1 else [name for name, _ in stages.outputs]

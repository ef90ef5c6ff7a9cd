"""One query as the coordinator knows it: what was asked, and where it runs.

Law: what was asked is kept once. Where it runs is kept node by node (`part`), and follows the world by change sets.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.messages import Fragment, Sink, plan_digest
from rove.model.schema import schema_text
from rove.model.states import Table, advanced
from rove.plan.codec import decode
from rove.plan.operators import Source
from rove.plan.sites import Site
from rove.plan.stages import Stages
from rove.plan.user_functions import unread

_ASKED = {
    "plan": "plan",
    "sink": "sink",
    "strategy": "strategy",
    "cloud": "sink in Spark",
    "patience_us": "returnTimeout",
    "patience_of": "returnTimeout of a stream",
    "replication": "replication",
    "copies": "use of routes",
    "thins": "degrade",
    "folds": "degrade by folding",
}
REASONS_SHOWN = 3  # of sources that have no place


class QueryState(Enum):
    """How far a query has come."""

    WAITING = "waiting"  # it has no place: a stream has no source, or there is no gateway
    DEPLOYING = "deploying"  # it has a place, and some nodes do not run their part yet
    RUNNING = "running"
    STOPPED = "stopped"


class QueryEvent(Enum):
    CHANGE = "change"  # parts of it are new
    COMPLETE = "complete"  # everyone runs its part
    STOP = "stop"


_S, _E = QueryState, QueryEvent
QUERIES: Table[QueryState, QueryEvent] = {
    _S.WAITING: {_E.CHANGE: _S.DEPLOYING, _E.STOP: _S.STOPPED},
    _S.DEPLOYING: {_E.CHANGE: _S.DEPLOYING, _E.COMPLETE: _S.RUNNING, _E.STOP: _S.STOPPED},
    _S.RUNNING: {_E.CHANGE: _S.DEPLOYING, _E.STOP: _S.STOPPED},
    _S.STOPPED: {},
}


class QueryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a query: what was asked, and what was decided once and for all when it was placed."""

    query: QueryId
    plan: str  # its digest
    sink: Sink
    strategy: str
    cloud: CloudSink | None = None
    patience_us: int = PATIENCE_US
    patience_of: dict[str, int] = {}  # with some streams it is another
    replication: int = 1  # routes that share no node, for each source
    copies: bool = True  # whether what was kept goes over all of them, or over the best
    thins: int = 0  # of rows that devices have no room for, keep every n-th
    folds: bool = False  # or fold them into partial aggregates
    stopped: bool = False
    gateway: NodeId | None = None  # None: it was not placed yet
    spark: tuple[Stage, ...] = ()
    why: dict[Stage, str] = {}

    @classmethod
    def of(cls, asked: Submit) -> QueryRecord:
        """A query that was not placed yet."""
        return cls(
            query=QueryId(asked.name),
            plan=plan_digest(asked.plan),
            sink=asked.sink,
            strategy=asked.strategy,
            cloud=asked.cloud,
            patience_us=asked.patience_us,
            patience_of=asked.patience_of,
            replication=asked.replication,
            copies=asked.copies,
            thins=asked.thins,
            folds=asked.folds,
        )

    def asked_otherwise(self, other: QueryRecord) -> list[str]:
        """What was asked for differently in the other, in words."""
        return [word for name, word in _ASKED.items() if getattr(self, name) != getattr(other, name)]


@dataclass(slots=True)
class Query:
    """A query and its deployment. Without one it waits, and `waits_for` says for what."""

    record: QueryRecord
    plan: bytes
    stages: Stages
    rollout: Rollout
    state: QueryState = QueryState.WAITING
    deployment: Deployment | None = None
    waits_for: str = ""
    sites: tuple[Site, ...] = ()  # where each operator can run
    streams: dict[str, Stage] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)  # of its streams
    # Sources that it should read and that have no place, with the node and the reason.
    unplaced: dict[Origin, tuple[NodeId, str]] = field(default_factory=dict)
    cut: dict[NodeId, None] = field(default_factory=dict)  # nodes with sources whose route is broken

    @classmethod
    def of(cls, record: QueryRecord, plan: bytes, rollout: Rollout) -> Query:
        stages = decode(plan, unread)
        found = cls(record, plan, stages, rollout, sites=sites_of(stages))
        for stage in stages.sources():
            operator = stages.operators[stage]
            if isinstance(operator, Source):
                found.streams[operator.stream] = stage
                found.columns[operator.stream] = schema_text(operator.schema)
        if record.stopped:
            found.step(QueryEvent.STOP)
        return found

    @property
    def id(self) -> QueryId:
        return self.record.query

    @property
    def stopped(self) -> bool:
        return self.state is QueryState.STOPPED

    @property
    def fragments(self) -> Mapping[NodeId, Fragment]:
        """What each node should run."""
        return {} if self.deployment is None else self.deployment.fragments

    @property
    def version(self) -> int:
        return 0 if self.deployment is None else self.deployment.version

    @property
    def trouble(self) -> str:
        """What keeps it from running as asked."""
        reasons = [reason for _, reason in self.unplaced.values()]
        more = [f"and {len(reasons) - REASONS_SHOWN} more"] if len(reasons) > REASONS_SHOWN else []
        return "; ".join([*([self.waits_for] if self.waits_for else []), *reasons[:REASONS_SHOWN], *more])

    @property
    def unsettled(self) -> bool:
        """Whether it would be placed better in a world with more routes or more room."""
        return bool(self.deployment is None or self.unplaced or self.cut)

    def step(self, event: QueryEvent) -> None:
        self.state = advanced(QUERIES, self.state, event, f"query `{self.id}`")

    def patience_us(self, node: NodeId | None = None) -> int:
        """How long a node is waited for: as long as for any stream that it has; for one without, as long as for any."""
        record = self.record
        if not record.patience_of:
            return record.patience_us
        placed = () if self.deployment is None or node is None else self.deployment.placed(node)
        stages = {stage for stage, _ in placed}
        streams = [stream for stream, stage in self.streams.items() if stage in stages]
        return max(record.patience_of.get(stream, record.patience_us) for stream in streams or self.streams)

    def end(self, gateway: NodeId) -> NodeId | None:
        """The node where its rows are wanted, with this gateway; None is the cloud."""
        sink = self.record.sink
        return None if sink.kind == "log" and sink.node in (None, gateway) else sink.node or gateway

    def request(self, gateway: NodeId, sources: Mapping[Stage, tuple[SourceAt, ...]]) -> Request:
        """What is to be placed, for these sources."""
        return Request(
            query=self.id,
            stages=self.stages,
            sources=sources,
            gateway=gateway,
            sink=self.end(gateway),
            hints=dict(self.stages.hints),
            sites=self.sites,
        )

    def split(self) -> Split | None:
        """What workers run and what Spark runs; None while it has no place."""
        return None if self.deployment is None else self.deployment.terms.split

    def deploy(self, gateway: NodeId, load: Load, starts: Mapping[NodeId, int]) -> Deployment:
        """An empty deployment on this gateway, with what the record says was decided."""
        record, end = self.record, self.end(gateway)
        parts = split(self.stages, record.spark)
        sinks = {} if end is None else dict.fromkeys(_outputs(self.stages), record.sink)
        terms = Terms(
            query=self.id,
            stages=self.stages,
            split=parts,
            ends=ends_of(self.id, parts, sinks, end),
            copies=record.copies,
            thins=record.thins,
            folds=record.folds,
        )
        return Deployment(terms, end or gateway, load, starts)

    def placement(self) -> Placement | None:
        """Where it runs, as a strategy would say it. O(nodes × stages)."""
        return None if self.deployment is None else self.deployment.placement(self.record.why)

    def validate(self) -> None:
        """Raise if its parts do not fit together. O(nodes × stages × height)."""
        if self.deployment is not None and not self.stopped:
            self.deployment.validate()
            self.rollout.validate(self.deployment)


def _outputs(stages: Stages) -> list[str]:
    return ["out"] if len(stages.outputs) == 1 else [name for name, _ in stages.outputs]

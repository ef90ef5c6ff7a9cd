"""A running plan, or several that share their beginnings: batches in at the sources, batches out at the sinks.

Law: a batch is pushed through one step after the other and is never held except in an operator's state. Runs of
stateless steps touch the rows only; a new header is made once, behind the last of them.

A stateful step waits for the origins its plan reads and for nobody else; it hears the lowest of their promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest

import msgspec
import pyarrow as pa

from rove.data.operators.count_window import CountWindowConfig
from rove.data.operators.filter import FilterConfig
from rove.data.operators.join import LEFT, JoinConfig, JoinLogic
from rove.data.operators.logic import NOTHING, Logic, Output, Stateless, stepped
from rove.data.operators.map import MapConfig
from rove.data.operators.project import ProjectConfig
from rove.data.operators.scan import ScanConfig
from rove.data.operators.watermark import WatermarkConfig, WatermarkLogic
from rove.data.operators.window import WindowConfig
from rove.data.watermarks import Watermarks
from rove.model.batch import Batch
from rove.model.errors import DataError, EdgeRefusal, PlanError, StateError, UnknownOrigin
from rove.model.schema import conformed, schema_text
from rove.model.state import Snapshot
from rove.plan.explain import describe
from rove.plan.expressions.tree import columns_of
from rove.plan.operators import (
    Aggregate,
    CountWindow,
    Filter,
    Join,
    Map,
    Operator,
    Project,
    Received,
    Scan,
    Source,
    Union,
    Watermark,
    walk,
)
from rove.plan.rules.share_beginnings import share_beginnings
from rove.plan.rules.split_aggregates import merge_aggregates
from rove.plan.sites import site

END = 2**62  # a watermark past every event time, microseconds: nothing follows


@dataclass(frozen=True, slots=True)
class Emitted:
    """A batch that left the pipeline, at which sink; `late` if by the side door.

    With a `fault` it is the batch whose rows could not be computed for this sink: other sinks got theirs.
    """

    sink: str
    batch: Batch
    late: bool = False
    fault: DataError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The state of one stateful step: of which operator, what it remembers, and the promises it has heard."""

    of: str
    state: Snapshot
    marks: dict[str, int]
    low: int


@dataclass(slots=True, eq=False)
class _Node:
    """One step and who reads it. `side` of an edge says which input of a join it feeds."""

    operator: Operator
    run: list[Operator] = field(default_factory=list)  # stateless operators, one after the other
    steps: list[Stateless] = field(default_factory=list)  # the run, compiled
    logic: Logic | None = None
    waits: Watermarks | None = None
    origin: str = ""
    sides_alike: bool = False  # a union whose inputs read one source: the same batch comes in on several sides
    readers: list[tuple[_Node, int]] = field(default_factory=list)
    sinks: list[str] = field(default_factory=list)


class Pipeline:
    """`plans` by sink; `origins` are those each stream will have. `name` tells apart who computes the same plan."""

    def __init__(
        self, plans: Mapping[str, Operator], origins: Mapping[str, Iterable[str]], name: str = "local"
    ) -> None:
        self._origins = {stream: tuple(found) for stream, found in origins.items()}
        _refuse_shared(self._origins)
        self._name = name
        self._nodes: dict[int, _Node] = {}
        self._kept: list[Operator] = []  # nodes are known by identity, so what they stand for must live on
        self._sources: dict[str, _Node] = {}
        self._stateful: list[_Node] = []
        self.rejected = 0  # batches that did not fit their stream
        self.faults = 0  # batches whose rows could not be computed for some sink
        shared = share_beginnings({sink: merge_aggregates(plan) for sink, plan in plans.items()})
        for sink, plan in shared.items():
            if not site(plan).edge:
                raise EdgeRefusal(f"`{describe(plan)}` cannot run at the edge: {site(plan).why}")
            self._node(plan).sinks.append(sink)
        for node in self._nodes.values():
            _fuse(node)
            node.steps = _compiled(node.run)

    def process(self, stream: str, batch: Batch) -> list[Emitted]:
        """Take a batch of a source. A batch that does not fit its stream raises, is counted, and changes nothing."""
        node = self._sources.get(stream)
        if node is None:
            raise PlanError(f"no query here reads the stream `{stream}`; streams: {', '.join(sorted(self._sources))}")
        try:
            if batch.header.origin not in self._origins.get(stream, ()):
                raise UnknownOrigin(
                    f"nobody waits for origin `{batch.header.origin}` of stream `{stream}`; declare it first"
                )
            if batch.data is not None:
                fitting = conformed(batch.data, node.operator.schema, f"stream `{stream}`")
                batch = batch if fitting is batch.data else Batch(batch.header, fitting)
        except DataError:
            self.rejected += 1
            raise
        emitted: list[Emitted] = []
        self._deliver(node, batch, emitted)
        return emitted

    def finish(self) -> list[Emitted]:
        """No rows follow from anyone: close every window."""
        emitted: list[Emitted] = []
        for node in self._stateful:
            if node.logic is not None and node.waits is not None:
                self._pass_on(node, node.logic.watermark(END), emitted)
        return emitted

    def snapshot(self) -> list[Saved]:
        """The state of every stateful step, with the promises it has heard."""
        return [
            Saved(
                of=_fingerprint(node.operator),
                state=node.logic.snapshot(),
                marks=node.waits.table() if node.waits else {},
                low=node.waits.low if node.waits else 0,
            )
            for node in self._stateful
            if node.logic is not None
        ]

    def restore(self, saved: list[Saved]) -> None:
        """Go on where another pipeline of the same plans stopped. Nothing is loaded unless all of it fits."""
        if [s.of for s in saved] != [_fingerprint(node.operator) for node in self._stateful]:
            raise StateError("this snapshot is of other queries; restore it into a pipeline of the same plans")
        for node, each in zip(self._stateful, saved, strict=True):
            if node.logic is not None:
                node.logic.restore(each.state)
            if node.waits is not None:
                node.waits.load(each.marks, each.low)

    # Running

    def _deliver(self, node: _Node, batch: Batch, emitted: list[Emitted], side: int = LEFT) -> None:
        try:
            if node.logic is None:
                if node.steps:
                    batch = _through(node.steps, batch)
                elif node.sides_alike:
                    batch = _on_side(batch, side)
            else:
                self._compute(node, node.logic, batch, emitted, side)
                return
        except DataError as fault:
            self.faults += 1
            emitted.extend(Emitted(sink, batch, fault=fault) for sink in self._sinks_above(node))
            return
        self._send(node, batch, emitted)

    def _compute(self, node: _Node, logic: Logic, batch: Batch, emitted: list[Emitted], side: int) -> None:
        origin = batch.header.origin
        if isinstance(logic, JoinLogic):
            output = logic.process(batch, side)
            origin = _sided(origin, side)
        else:
            output = logic.process(batch)
        if output is not NOTHING:
            self._pass_on(node, output, emitted)
        waits = node.waits
        if waits is not None and waits.heard(origin, batch.header.watermark):
            self._pass_on(node, logic.watermark(waits.low), emitted)

    def _pass_on(self, node: _Node, output: Output, emitted: list[Emitted]) -> None:
        for batch in output.batches:
            self._send(node, batch, emitted)
        for batch in output.late:
            emitted.extend(Emitted(sink, batch, late=True) for sink in self._sinks_above(node))
        for batch, fault in output.faults:
            self.faults += 1
            emitted.extend(Emitted(sink, batch, fault=fault) for sink in self._sinks_above(node))
            for reader, side in node.readers:  # the name goes on, so that numbers above have no gap
                self._deliver(reader, batch, emitted, side)

    def _send(self, node: _Node, batch: Batch, emitted: list[Emitted]) -> None:
        for sink in node.sinks:
            emitted.append(Emitted(sink, batch))
        for reader, side in node.readers:
            self._deliver(reader, batch, emitted, side)

    def _sinks_above(self, node: _Node) -> list[str]:
        found = list(node.sinks)
        for reader, _ in node.readers:
            found += [s for s in self._sinks_above(reader) if s not in found]
        return found

    # Building

    def _node(self, operator: Operator) -> _Node:
        if (known := self._nodes.get(id(operator))) is not None:
            return known
        node = self._nodes[id(operator)] = _Node(operator)
        self._kept.append(operator)
        match operator:
            case Source(stream=stream) | Received(stream=stream):
                if stream in self._sources:
                    raise PlanError(f"stream `{stream}` is read with two schemas")
                self._sources[stream] = node
            case Filter() | Project() | Map():
                node.run.append(operator)
            case Union(members=members):
                streams = [s.stream for m in members for s in walk(m) if isinstance(s, Source | Received)]
                node.sides_alike = len(set(streams)) < len(streams)
            case Watermark(column=column, delay_us=delay):
                node.logic = WatermarkConfig(column, delay, operator.schema, operator.replaces).build()
            case Aggregate() | Join() | Scan() | CountWindow():
                # Named by what it computes: the same whatever else runs here, and on every node that runs it.
                node.origin = f"{self._name}/{_fingerprint(operator)}"
                node.logic = _config(operator).build(node.origin)
            case _:
                raise EdgeRefusal(f"`{describe(operator)}` runs in Spark only")
        for i, below in enumerate(operator.inputs):
            self._node(below).readers.append((node, i))
        if node.logic is not None:
            if not isinstance(node.logic, WatermarkLogic):
                node.waits = Watermarks(self._origins_below(operator))
            self._stateful.append(node)
        return node

    def _origins_below(self, operator: Operator) -> list[str]:
        """Who a stateful step hears from: sources' origins, or the stateful steps right below it."""
        found: list[str] = []
        for side, below in enumerate(operator.inputs):
            node = self._nodes[id(below)]
            if isinstance(below, Source | Received):
                origins = list(self._origins.get(below.stream, ()))
            else:
                origins = [node.origin] if node.origin else self._origins_below(below)
            sided = isinstance(operator, Join) or self._nodes[id(operator)].sides_alike
            found += [_sided(o, side) for o in origins] if sided else origins
        return found


def _fingerprint(operator: Operator) -> str:
    """A short name for what a plan computes, from its whole text."""
    text = "\n".join(f"{describe(o)} -> {schema_text(o.schema)}" for o in walk(operator))
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _refuse_shared(origins: Mapping[str, Iterable[str]]) -> None:
    """An origin belongs to one stream, or its numbers would not name its batches."""
    owners: dict[str, str] = {}
    for stream, found in origins.items():
        for origin in found:
            if owners.setdefault(origin, stream) != stream:
                raise PlanError(
                    f"origin `{origin}` is declared for `{owners[origin]}` and `{stream}`; name it after its stream "
                    f"too, as in `{stream}/{origin}`"
                )


def _sided(origin: str, side: int) -> str:
    """An origin as one side of a union or join hears it: there, one source may speak on several sides."""
    return f"{origin}|{side}"


def _on_side(batch: Batch, side: int) -> Batch:
    return Batch(msgspec.structs.replace(batch.header, origin=_sided(batch.header.origin, side)), batch.data)


def _config(operator: Operator) -> WindowConfig | JoinConfig | ScanConfig | CountWindowConfig:
    match operator:
        case Aggregate():
            return WindowConfig(operator)
        case Join():
            return JoinConfig(operator)
        case Scan():
            return ScanConfig(operator)
        case CountWindow():
            return CountWindowConfig(operator)
    raise PlanError(f"`{describe(operator)}` keeps no state")


def _through(steps: list[Stateless], batch: Batch) -> Batch:
    """Rows through a run of stateless steps; an empty batch stays a header."""
    data: pa.RecordBatch | None = batch.data
    for step in steps:
        if data is None or not data.num_rows:
            break
        data = step.apply(data)
    return stepped(batch.header, data, len(steps))


def _fuse(node: _Node) -> None:
    """Pull stateless single readers into this node, so that a run of them is one hop."""
    while node.run and not node.sinks and len(node.readers) == 1:
        reader, _ = node.readers[0]
        if not reader.run:
            return
        node.run, node.readers, node.sinks = node.run + reader.run, reader.readers, reader.sinks


def _compiled(run: list[Operator]) -> list[Stateless]:
    """A run of stateless operators as steps; a filter copies only what the projection behind it reads."""
    steps: list[Stateless] = []
    schema = run[0].inputs[0].schema if run else None
    for operator, following in zip_longest(run, run[1:]):
        match operator:
            case Filter(condition=condition):
                step = FilterConfig(condition, schema, _read_by(following, schema))
                schema = step.schema
                steps.append(step.build())
            case Project(columns=columns):
                steps.append(ProjectConfig(columns, schema, operator.schema).build())
                schema = operator.schema
            case Map(function=function, columns=columns):
                steps.append(MapConfig(function, columns).build())
                schema = operator.schema
    return steps


def _read_by(following: Operator | None, schema: pa.Schema) -> tuple[str, ...]:
    """The columns a projection reads, one at least, for the number of rows; anyone else reads all."""
    if not isinstance(following, Project):
        return tuple(schema.names)
    read = {name for _, e in following.columns for name in columns_of(e)}
    return tuple(n for n in schema.names if n in read) or (schema.names[0],)

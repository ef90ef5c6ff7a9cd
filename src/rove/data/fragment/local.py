"""Runs plans in this process, over given rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa

from rove.data.fragment.emitted import Emitted
from rove.data.fragment.pipeline import Pipeline
from rove.data.fragment.saved import SavedPipeline
from rove.data.rows import decode_rows
from rove.model.batch import Batch, Header, named
from rove.model.errors import DataError, PlanError, UnknownOrigin
from rove.model.events import Payload
from rove.model.ids import Origin, Stage
from rove.model.schema import conformed, schema_text
from rove.plan.explain import describe
from rove.plan.operators import Operator, Received, Source, walk
from rove.plan.rules.split_aggregates import merge_aggregates
from rove.plan.stages import Stages, stateful

Rows = Mapping[str, Mapping[Origin, list[pa.RecordBatch]]]  # stream → origin → batches in order


@dataclass(frozen=True, slots=True)
class Collected:
    """The output of one sink."""

    rows: pa.Table
    late: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """A batch at a sink. `late` if its rows are late; with a `fault` if its rows could not be computed."""

    sink: str
    batch: Batch
    late: bool = False
    fault: DataError | None = None


class LocalPipeline:
    """Whole plans by sink, in one place. `origins` are the origins of each stream; `name` is the name of the place."""

    def __init__(
        self, plans: Mapping[str, Operator], origins: Mapping[str, Iterable[Origin]], name: str = "local"
    ) -> None:
        self._origins = {stream: tuple(found) for stream, found in origins.items()}
        _refuse_shared(self._origins)
        stages = Stages.of({sink: merge_aggregates(plan) for sink, plan in plans.items()})
        self._sources = _sources(stages)
        # A stateful operator is named by what it computes, so its name does not depend on what else runs here.
        makes = {
            Stage(n): Origin(_fingerprint(op), name, stage=0) for n, op in enumerate(stages.operators) if stateful(op)
        }
        waits = {stage: self._origins.get(stream, ()) for stream, (stage, _) in self._sources.items()}
        self._stages = stages
        self._pipeline = Pipeline(stages, waits, makes)
        self._sinks = _sinks_above(stages)
        self._outputs: dict[Stage, list[str]] = {}
        for sink, stage in stages.outputs:
            self._outputs.setdefault(stage, []).append(sink)
        self.rejected = 0  # batches that did not fit their stream

    @property
    def faults(self) -> int:
        return self._pipeline.faults

    def process(self, stream: str, batch: Batch) -> list[Arrival]:
        """Process a batch of a source. A batch that does not fit its stream raises, is counted, and changes nothing."""
        if stream not in self._sources:
            raise PlanError(f"no query here reads the stream `{stream}`; streams: {', '.join(sorted(self._sources))}")
        stage, schema = self._sources[stream]
        try:
            if batch.header.origin not in self._origins.get(stream, ()):
                raise UnknownOrigin(
                    f"origin `{batch.header.origin}` of stream `{stream}` is not declared; declare it first"
                )
            if batch.data is not None:
                fitting = conformed(batch.data, schema, f"stream `{stream}`")
                batch = batch if fitting is batch.data else Batch(batch.header, fitting)
        except DataError:
            self.rejected += 1
            raise
        return self._at_sinks(self._pipeline.process(stage, batch))

    def finish(self) -> list[Arrival]:
        """Close every window, because no more rows follow. Raises if batches still wait for earlier ones."""
        held = sorted({(b.header.origin, b.header.seq) for b in self._pipeline.held()})
        if held:
            origin, seq = held[0]
            raise DataError(
                f"{len(held)} batches wait for earlier ones that did not come; the first is number {seq} of origin "
                f"`{origin}`. Number the batches of each origin 0, 1, 2 … and give all of them before the end"
            )
        return self._at_sinks(self._pipeline.finish())

    def snapshot(self) -> SavedPipeline:
        return self._pipeline.saving.save()

    def restore(self, saved: SavedPipeline) -> None:
        self._pipeline.saving.restore(saved, self._read)

    def _read(self, header: Header, rows: Payload | None) -> Batch:
        data = None if rows is None else decode_rows(rows, self._stages.operators[header.stage].schema, header.rows)
        return Batch(header, data)

    def _at_sinks(self, emitted: list[Emitted]) -> list[Arrival]:
        for each in emitted:
            if each.passes:
                raise UnknownOrigin(f"no operator here waits for origin `{each.batch.header.origin}`")
        return [
            Arrival(sink, each.batch, each.late, each.fault)
            for each in emitted
            for sink in (self._sinks if each.late or each.fault else self._outputs).get(each.stage, ())
        ]


def run(plans: Mapping[str, Operator], data: Rows, name: str = "local") -> dict[str, Collected]:
    """Run every plan over all rows to the end; origins take turns. The first batch that cannot be computed raises."""
    pipeline = LocalPipeline(plans, {stream: list(origins) for stream, origins in data.items()}, name)
    out: dict[str, list[pa.RecordBatch]] = {sink: [] for sink in plans}
    late = dict.fromkeys(plans, 0)

    def take(arrivals: list[Arrival]) -> None:
        for each in arrivals:
            if each.fault is not None:
                raise each.fault
            if each.late:
                late[each.sink] += each.batch.rows
            elif each.batch.data is not None:
                out[each.sink].append(each.batch.data)

    for stream, batch in in_turns(data):
        take(pipeline.process(stream, batch))
    take(pipeline.finish())
    return {sink: Collected(pa.Table.from_batches(out[sink], plans[sink].schema), late[sink]) for sink in plans}


def in_turns(data: Rows) -> Iterator[tuple[str, Batch]]:
    """One batch of each origin after the other, numbered from 0 by its origin."""
    queues = [(stream, origin, list(batches)) for stream, found in data.items() for origin, batches in found.items()]
    for seq in range(max((len(b) for _, _, b in queues), default=0)):
        for stream, origin, batches in queues:
            if seq < len(batches):
                yield stream, named(origin, seq, batches[seq])


def _sources(stages: Stages) -> dict[str, tuple[Stage, pa.Schema]]:
    found: dict[str, tuple[Stage, pa.Schema]] = {}
    for stage in stages.sources():
        operator = stages.operators[stage]
        if isinstance(operator, Source | Received):
            if operator.stream in found:
                raise PlanError(f"stream `{operator.stream}` is read with two schemas")
            found[operator.stream] = (stage, operator.schema)
    return found


def _sinks_above(stages: Stages) -> dict[Stage, list[str]]:
    """The outputs that the rows of each stage contribute to."""
    found: dict[Stage, list[str]] = {Stage(n): [] for n in range(len(stages.operators))}
    for sink, last in stages.outputs:
        below = [last]
        while below:
            stage = below.pop()
            if sink not in found[stage]:
                found[stage].append(sink)
                below += stages.inputs[stage]
    return found


def _fingerprint(operator: Operator) -> str:
    """A short name for what a plan computes, from its whole text."""
    text = "\n".join(f"{describe(o)} -> {schema_text(o.schema)}" for o in walk(operator))
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _refuse_shared(origins: Mapping[str, Iterable[Origin]]) -> None:
    """Refuse an origin in two streams: its numbers would not name its batches."""
    owners: dict[Origin, str] = {}
    for stream, found in origins.items():
        for origin in found:
            if owners.setdefault(origin, stream) != stream:
                raise PlanError(
                    f"origin `{origin}` is declared for `{owners[origin]}` and `{stream}`; name it after its stream"
                )

"""Plans that fork, cut in two at every place: each row is taken once, below or above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import chain, combinations

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.pipeline import Pipeline
from rove.model.batch import Batch, Header
from rove.model.ids import Origin, Stage
from rove.model.schema import parse_schema
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages, ordered, stateful, stateless

COLUMNS = "key string, ts timestamp, value bigint"
ORIGIN = Origin("s", "device")


def stream() -> Stream:
    return rove.Session.local().stream("s", schema=COLUMNS).withWatermark("ts", "1 second")


def counted(rows: Stream) -> Stream:
    return rows.groupBy(F.window("ts", "5 seconds"), "key").count()


QUERIES = {
    "a union with itself": {"out": stream().union(stream().where("value > 1"))},
    "a window over it": {"out": counted(stream().union(stream().where("value > 1")))},
    "two outputs": {"all": stream().where("value > 0"), "large": stream().where("value > 0").where("value > 2")},
    "rows, and a window": {"rows": stream().selectExpr("key", "value"), "windows": counted(stream())},
    "two branches to one window": {"out": counted(stream().where("value > 1").union(stream().where("value < 3")))},
}


def below(stages: Stages) -> list[tuple[Stage, ...]]:
    """What may be done on a node below: operators that read a source, or another one there. What takes batches in order
    has all that it reads there."""

    def reads_there(n: Stage, here: Collection[Stage], all_of_it: bool) -> bool:
        found = [not stages.inputs[i] or (i in here and reads_there(i, here, all_of_it)) for i in stages.inputs[n]]
        return all(found) if all_of_it else any(found)

    all_of_them = [Stage(n) for n in range(len(stages.operators)) if stages.inputs[n]]
    subsets = chain.from_iterable(combinations(all_of_them, n) for n in range(len(all_of_them) + 1))
    return [s for s in subsets if all(reads_there(n, s, ordered(stages.operators[n])) for n in s)]


def pipeline(stages: Stages, runs: Collection[Stage], goes_on: bool) -> Pipeline:
    makes = {n: Origin("q", stage=n) for n in runs if stateful(stages.operators[n])}
    elsewhere = {
        Stage(n): (Origin("q", stage=n),)
        for n, op in enumerate(stages.operators)
        if stateful(op) and Stage(n) not in runs
    }
    return Pipeline(stages, {stages.sources()[0]: (ORIGIN,), **elsewhere}, makes, runs, goes_on=goes_on)


def arrived(stages: Stages, lower: Collection[Stage]) -> tuple[Counter[tuple[object, ...]], Counter[object]]:
    """The rows that come out at the end, and the batches that come to an output, by its stage and their names."""
    upper = [
        Stage(n)
        for n, op in enumerate(stages.operators)
        if stages.inputs[n] and (stateless(op) or Stage(n) not in lower)
    ]
    device, gateway = pipeline(stages, lower, goes_on=True), pipeline(stages, upper, goes_on=False)
    ends = {stage for _, stage in stages.outputs}
    rows, names = Counter[tuple[object, ...]](), Counter[object]()

    def end(emitted: list[Emitted]) -> None:
        for each in emitted:
            assert each.fault is None
            if each.stage in ends:
                names[each.stage, each.batch.header.origin, each.batch.header.seq] += 1
                found = [] if each.batch.data is None else each.batch.data.to_pylist()
                rows.update((each.stage, *map(str, row.values())) for row in found)

    for seq in range(4):
        at = pa.array([10_000_000 * seq + n for n in range(5)], pa.timestamp("us", "UTC"))
        data = pa.record_batch([pa.array("abcab"), at, pa.array(range(5), pa.int64())], schema=parse_schema(COLUMNS))
        header = Header(query="q", origin=ORIGIN, seq=seq, through=seq, rows=5, born=5)
        for each in device.process(stages.sources()[0], Batch(header, data)):
            end(gateway.process(each.stage, each.batch))
    assert device.duplicates == gateway.duplicates == 0, "nothing comes to an operator twice"
    return rows, names


@pytest.mark.parametrize("name", QUERIES)
def test_a_row_takes_each_way_once_wherever_the_plan_is_cut(name: str) -> None:
    stages = Stages.of({out: optimize(query.plan) for out, query in QUERIES[name].items()})
    assert any(len(readers) > 1 for readers in stages.readers), "it forks"
    whole, _ = arrived(stages, ())
    assert whole
    for lower in below(stages):
        rows, names = arrived(stages, lower)
        assert rows == whole, f"with {lower} below"
        assert set(names.values()) == {1}, f"with {lower} below, a batch came to its end twice"

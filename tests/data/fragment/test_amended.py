"""A fragment goes on with an amended plan: windows keep their rows, and number their output as before."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import rove
from rove import functions as F
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.running_fragment import RunningFragment
from rove.model.batch import Batch, Header
from rove.model.clock import END
from rove.model.ids import Origin, QueryId, Stage, Version
from rove.model.messages import Fragment, Sink
from rove.model.schema import parse_schema
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages, stateful
from tests.data.plans import named, plans_of

COLUMNS = "key string, ts timestamp, value bigint"
START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = Origin("s", "device")
Rows = list[tuple[int, int]]  # second, value
ROWS = st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=6), min_size=1, max_size=8)


@cache
def fragment(condition: str, version: int, length: str = "5 seconds") -> Fragment:
    """The whole query on one node: it counts the rows of a condition in windows."""
    stream = rove.Session.local().stream("s", schema=COLUMNS).where(condition).withWatermark("ts", "60 seconds")
    counted = stream.groupBy(F.window("ts", length), "key").count()
    stages = Stages.of({"out": optimize(counted.plan)})
    runs = tuple(Stage(n) for n in range(1, len(stages.operators)))
    return Fragment(
        query=QueryId("q"),
        version=Version(version),
        plan=named(codec.encode(stages)),
        runs=runs,
        makes={n: Origin("q", stage=n) for n in runs if stateful(stages.operators[n])},
        waits={Stage(0): (SOURCE,)},
        next=None,
        sinks={runs[-1]: Sink(kind="discard")},
    )


def running(condition: str) -> RunningFragment:
    first = fragment(condition, 1)
    found = RunningFragment(first, plans_of(first)[first.plan])
    found.expect(first.waits)
    return found


def batch(seq: int, rows: Rows, last: bool) -> Batch:
    header = Header(origin=SOURCE, seq=seq, through=seq, rows=len(rows), born=len(rows), query=QueryId("q"))
    header = replace(header, watermark=END) if last else header
    data = [{"key": "k", "ts": START + timedelta(seconds=s), "value": v} for s, v in rows]
    return Batch(header, pa.RecordBatch.from_pylist(data, schema=parse_schema(COLUMNS)) if data else None)


def results(emitted: list[Emitted]) -> Counter[int]:
    """The count of each window, by its number of five seconds."""
    rows = [row for each in emitted if each.batch.data is not None for row in each.batch.data.to_pylist()]
    return Counter({int((r["window"]["start"] - START).total_seconds()) // 5: r["count"] for r in rows})


@given(ROWS, st.integers(0, 8))
def test_each_batch_is_computed_with_the_text_of_its_moment_and_windows_keep_their_rows(
    batches: list[Rows], upto: int
) -> None:
    here, emitted = running("value > 2"), list[Emitted]()
    for seq, rows in enumerate(batches):
        if seq == upto:
            newer = fragment("value > 6", 2)
            here = here.update(newer, plans_of(newer)[newer.plan])
        emitted += here.process(Stage(0), batch(seq, rows, last=seq == len(batches) - 1))
        here.validate()
    expected = Counter(
        second // 5 for seq, rows in enumerate(batches) for second, value in rows if value > (6 if seq >= upto else 2)
    )
    assert results(emitted) == expected
    assert here.counts()[SOURCE].delivered == sum(map(len, batches)), "every row is counted, whichever text judged it"


@given(ROWS)
def test_a_window_has_the_same_number_whatever_its_rows_are(batches: list[Rows]) -> None:
    """A node that computes again what it had taken, with a newer text, gives its output the same names."""
    numbers: dict[int, set[int]] = {}
    for condition in ("value > 2", "value > 6", "value < 9"):
        here = running(condition)
        for seq, rows in enumerate(batches):
            for each in here.process(Stage(0), batch(seq, rows, last=seq == len(batches) - 1)):
                for window in results([each]):
                    numbers.setdefault(each.batch.header.seq, set()).add(window)
                    assert each.batch.header.origin == Origin("q", stage=each.stage)
    assert all(len(windows) == 1 for windows in numbers.values()), numbers


def test_an_operator_waits_for_the_same_origins_after_an_update() -> None:
    """The final half of a window, whose partial half runs on nodes below."""
    old, new = fragment("value > 2", 1), fragment("value > 6", 2)
    last, below = old.runs[-1], old.runs[-2]
    waits = {below: (Origin("q", "edge", stage=below),)}
    old, new = (replace(each, runs=(last,), waits=waits) for each in (old, new))
    here = RunningFragment(old, plans_of(old)[old.plan])
    here.expect(waits)
    before = here.pipeline.waited()
    assert here.update(new, plans_of(new)[new.plan]).pipeline.waited() == before


def test_operators_of_other_windows_do_not_go_on() -> None:
    here, new = running("value > 2"), fragment("value > 6", 2)
    assert here.goes_on_with(new, plans_of(new)[new.plan])
    other = fragment("value > 2", 2, "9 seconds")
    assert not here.goes_on_with(other, plans_of(other)[other.plan])

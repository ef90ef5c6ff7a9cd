"""Rows are open as long as a window that holds them is."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rove
from rove import functions as F
from rove.api.stream import Stream
from rove.data.fragment.local import LocalPipeline
from rove.data.operators.open_rows import OpenRows
from rove.model.batch import Header, named
from rove.model.ids import Origin
from rove.plan.optimizer import optimize

ORIGIN = Origin("s", "van-7")
SECOND = 1_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])


@pytest.mark.parametrize(("slide", "closes_s"), [("4 seconds", 12), ("2 seconds", 12), ("3 seconds", 13)])
def test_a_batch_is_open_until_the_last_of_its_windows_closes(slide: str, closes_s: int) -> None:
    """Windows of 4 seconds. A row at second 9 is in those that begin at 8, or at 9 if they begin every 3 seconds."""
    stream = rove.Session.local().stream("s", schema="ts timestamp, n bigint").withWatermark("ts", "0 seconds")
    plan = stream.groupBy(F.window("ts", "4 seconds", slide)).agg(F.sum("n").alias("n")).plan
    pipeline = LocalPipeline({"out": optimize(plan)}, {"s": [ORIGIN]})
    count = pipeline._pipeline.count(ORIGIN)
    for seq, second in enumerate((9, closes_s - 1)):
        rows = pa.record_batch([[second * SECOND], [1]], schema=SCHEMA)
        pipeline.process("s", named(ORIGIN, seq, rows))
        assert (count.open, count.delivered) == (seq + 1, 0)
        assert next(coverage.spans() for _, coverage in pipeline._pipeline.open_batches())[0] == 0
    pipeline.process("s", named(ORIGIN, 2, pa.record_batch([[closes_s * SECOND], [1]], schema=SCHEMA)))
    assert count.delivered >= 1
    assert 0 not in {coverage.spans()[0] for _, coverage in pipeline._pipeline.open_batches()}
    pipeline.finish()
    assert (count.open, count.delivered) == (0, 3)
    pipeline._pipeline.validate()


def timed() -> Stream:
    return rove.Session.local().stream("s", schema="ts timestamp, n bigint").withWatermark("ts", "0 seconds")


@pytest.mark.parametrize(
    "stream",
    [
        timed().scan(F.sum("n").alias("sum"), every="4 seconds"),
        timed().countWindow(1, every="4 seconds").agg(F.sum("n")),
    ],
    ids=["scan", "count window"],
)
def test_rows_that_wait_for_their_place_in_the_order_are_open(stream: Stream) -> None:
    pipeline = LocalPipeline({"out": optimize(stream.plan)}, {"s": [ORIGIN]})
    count = pipeline._pipeline.count(ORIGIN)
    for seq, (second, expected) in enumerate([(9, (1, 0)), (11, (2, 0)), (12, (1, 2))]):
        pipeline.process("s", named(ORIGIN, seq, pa.record_batch([[second * SECOND], [1]], schema=SCHEMA)))
        assert (count.open, count.delivered) == expected
        pipeline._pipeline.validate()


def test_rows_of_both_sides_of_a_join_are_open_until_their_window_closes() -> None:
    session = rove.Session.local()
    sides = [
        session.stream(name, schema=f"ts timestamp, {name} bigint")
        .withWatermark("ts", "0 seconds")
        .select(F.window("ts", "4 seconds").alias("w"), name)
        for name in ("s", "t")
    ]
    origins = {name: Origin(name, "van-7") for name in ("s", "t")}
    plan = optimize(sides[0].join(sides[1], "w").plan)
    pipeline = LocalPipeline({"out": plan}, {name: [origin] for name, origin in origins.items()})

    def rows_at(second: int, seq: int) -> list[tuple[int, int]]:
        for name, origin in origins.items():
            rows = pa.record_batch([[second * SECOND], [1]], schema=SCHEMA.set(1, pa.field(name, pa.int64())))
            pipeline.process(name, named(origin, seq, rows))
        pipeline._pipeline.validate()
        counts = [pipeline._pipeline.count(origin) for origin in origins.values()]
        return [(count.open, count.delivered) for count in counts]

    assert rows_at(9, 0) == [(1, 0), (1, 0)]
    assert rows_at(12, 1) == [(1, 1), (1, 1)]


def test_batches_that_close_together_take_no_memory_of_their_own() -> None:
    found = OpenRows()
    for seq in range(1_000):
        found.take(Header(origin=ORIGIN, seq=seq, through=seq), 2, until=10)
    assert [(origin, batches.spans()) for origin, batches in found.batches()] == [(ORIGIN, (0, 1_000))]
    assert found.rows() == {ORIGIN: 2_000}
    assert list(found.close(9)) == []
    assert list(found.close(10)) == [(ORIGIN, 2_000)]
    assert found.rows() == {}


STEPS = st.one_of(
    st.tuples(st.just("take"), st.integers(0, 2), st.integers(0, 9), st.integers(1, 6)),
    st.tuples(st.just("put"), st.integers(0, 2), st.integers(0, 9), st.integers(1, 6)),
    st.tuples(st.just("close"), st.just(0), st.just(0), st.integers(1, 6)),
)


@given(st.lists(STEPS, max_size=30))
def test_sums_are_those_of_what_is_open(steps: list[tuple[str, int, int, int]]) -> None:
    """Both sides of a join may take the same batch, so a batch may be open twice, and until different times."""
    found, model = OpenRows(), dict[int, dict[Origin, list[int]]]()
    for what, van, seq, until in steps:
        origin = Origin("s", f"van-{van}")
        if what == "close":
            closed = [(o, len(model[end][o])) for end in sorted(model) if end <= until for o in model[end]]
            assert sorted(found.close(until)) == sorted(closed)
            model = {end: origins for end, origins in model.items() if end > until}
        elif what == "take":
            found.take(Header(origin=origin, seq=seq, through=seq), 1, until)
            model.setdefault(until, {}).setdefault(origin, []).append(seq)
        elif origin not in model.get(until, {}):  # a state comes before the rows that follow it
            found.put(origin, [(until, 1, (seq, seq + 1))])
            model.setdefault(until, {})[origin] = [seq]
        found.validate()
        open_: dict[Origin, list[int]] = {}
        for origins in model.values():
            for each, seqs in origins.items():
                open_.setdefault(each, []).extend(seqs)
        assert found.rows() == {each: len(seqs) for each, seqs in open_.items()}
        numbers = {
            each: {n for a, b in zip(c.spans()[::2], c.spans()[1::2], strict=True) for n in range(a, b)}
            for each, c in found.batches()
        }
        assert numbers == {each: set(seqs) for each, seqs in open_.items()}
        assert found.last() == max(model, default=None)

"""Counts of rows: each account for itself, and sums of two counts in all of them."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa
from msgspec.structs import replace

from rove.data.counts import Count
from rove.data.fragment.pipeline import Pipeline
from rove.model.batch import Header, named
from rove.model.ids import Origin, Stage
from rove.plan.operators import Watermark
from rove.plan.rules.split_aggregates import merge_aggregates
from rove.plan.stages import Stages, stateful
from tests.data.streams import SCHEMA, START_US, plan_of, tumbling


def test_a_batch_is_counted_in_every_account() -> None:
    count = Count()
    for seq in (3, 1):
        header = Header(origin=Origin("s", "d"), seq=seq, through=seq + 1, rows=1, born=4, evicted=2, lost=3, faulted=1)
        count.take(replace(header, belated=5))
    counted = (count.delivered, count.evicted, count.lost, count.late, count.faulted, count.seen)
    assert counted == (8, 4, 6, 10, 2, 5)
    count.make(Header(origin=Origin("s", "d"), seq=6, through=8), 10)
    assert (count.produced, count.made, count.seen) == (10, 9, 5)


def test_a_sum_forgets_no_account_and_covers_what_either_covers() -> None:
    one = Count(produced=1, delivered=2, evicted=3, late=4, lost=5, made=6, seen=70, open=8, faulted=9)
    other = Count(produced=10, delivered=20, evicted=30, late=40, lost=50, made=60, seen=7, open=80, faulted=90)
    one.add(other)
    assert asdict(one) == {
        "produced": 11,
        "delivered": 22,
        "evicted": 33,
        "late": 44,
        "lost": 55,
        "made": 60,
        "seen": 70,
        "open": 88,
        "faulted": 99,
    }


def test_rows_that_are_late_for_a_watermark_are_counted_once_however_many_starts_of_its_node_compute_them() -> None:
    stages = Stages.of({"out": merge_aggregates(plan_of(tumbling))})
    origin, source = Origin("a", "0"), stages.sources()[0]
    (watermark,) = [Stage(n) for n, op in enumerate(stages.operators) if isinstance(op, Watermark)]
    makes = {Stage(n): Origin("q", stage=n) for n, op in enumerate(stages.operators) if stateful(op)}
    taker = Pipeline(stages, {source: [origin]}, makes)
    moments = ([START_US + 9_000_000], [START_US + 9_500_000, START_US, START_US + 1])
    batches = [
        named(origin, seq, pa.RecordBatch.from_pylist([{"ts": at} for at in found], SCHEMA))
        for seq, found in enumerate(moments)
    ]
    for _ in range(2):
        start = Pipeline(stages, {source: [origin]}, makes, [watermark], forgets=True, goes_on=True)
        emitted = [each for batch in batches for each in start.process(source, batch)]
        assert [(each.batch.header.seq, each.batch.rows, each.late) for each in emitted] == [
            (0, 1, False),
            (1, 1, False),
            (1, 2, True),
        ]
        assert start.counts == {}
        for each in emitted:
            if not each.late:
                taker.process(each.stage, each.batch)
    count = taker.counts[origin]
    assert (count.late, count.delivered + count.open) == (2, 2)

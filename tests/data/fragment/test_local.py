"""Plans run in one process: rows come out, or the end says why they do not."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.data.fragment.local import LocalPipeline
from rove.model.batch import named
from rove.model.errors import DataError
from rove.model.ids import Origin

SECOND = 1_000_000


def counting() -> tuple[LocalPipeline, list[pa.RecordBatch]]:
    """A window over the streams `a` and `b`, and three batches of a row each."""
    session = rove.Session.local()
    a, b = (session.stream(name, schema="ts timestamp").withWatermark("ts", "0 seconds") for name in "ab")
    plan = a.union(b).groupBy(F.window("ts", "5 seconds")).count().plan
    rows = [pa.record_batch([pa.array([n * SECOND], a.schema.field(0).type)], schema=a.schema) for n in range(3)]
    return LocalPipeline({"out": plan}, {"a": [Origin("a")], "b": [Origin("b")]}), rows


def test_the_end_refuses_batches_that_wait_for_one_that_did_not_come() -> None:
    pipeline, rows = counting()
    pipeline.process("a", named(Origin("a"), 0, rows[0]))
    pipeline.process("b", named(Origin("b"), 1, rows[1]))
    pipeline.process("b", named(Origin("b"), 2, rows[2]))
    with pytest.raises(DataError, match=r"2 batches wait for earlier ones .* the first is number 1 of origin `b`"):
        pipeline.finish()


def test_the_end_may_be_said_again_when_the_missing_batch_has_come() -> None:
    pipeline, rows = counting()
    pipeline.process("a", named(Origin("a"), 1, rows[1]))
    with pytest.raises(DataError):
        pipeline.finish()
    pipeline.process("a", named(Origin("a"), 0, rows[0]))
    counts = [each.batch.data for each in pipeline.finish() if each.batch.data is not None]
    assert [batch.column("count").to_pylist() for batch in counts] == [[2]]

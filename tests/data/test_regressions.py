"""Mistakes once made, each as the smallest story that shows it."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.data.fragment.local import Arrival, LocalPipeline
from rove.model.batch import named
from rove.model.errors import ArithmeticFault, PlanError, StateError, UnknownOrigin
from rove.model.ids import Origin
from rove.model.schema import parse_schema

SCHEMA = parse_schema("key string, ts timestamp, value bigint")
SECOND = 1_000_000


def rows(*items: tuple[Any, ...]) -> pa.RecordBatch:
    columns = zip(*items, strict=True) if items else [()] * 3
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def stream(name: str = "s", data: Any = None) -> Any:
    return rove.Session.local().stream(name, schema=SCHEMA, data=data)


def timed(source: Any = None) -> Any:
    return (source or stream()).withWatermark("ts", "0 seconds")


def results(emitted: list[Arrival]) -> list[dict[str, Any]]:
    return [r for e in emitted if e.batch.data is not None and not e.late for r in e.batch.data.to_pylist()]


def test_an_expression_keeps_its_parentheses_inside_a_larger_one() -> None:
    table = pa.Table.from_batches([rows(("a", 0, 3))])
    s = stream(data=table)
    assert s.select((F.expr("value + 1") * 2).alias("x")).toArrow()["x"].to_pylist() == [8]
    assert s.select((~F.expr("false or true")).alias("x")).toArrow()["x"].to_pylist() == [False]


def test_a_case_may_hold_another_case() -> None:
    inner = F.when(F.col("value") > 1, 1).otherwise(2)
    nested = F.when(F.col("key") == "a", inner).when(F.col("key") == "b", "7").otherwise(3)
    assert nested.text.count("CASE") == 2
    table = pa.Table.from_batches([rows(("a", 0, 5), ("a", 0, 0), ("z", 0, 0))])
    column = F.when(F.col("key") == "a", inner).otherwise(3).alias("x")
    assert stream(data=table).select(column).toArrow()["x"].to_pylist() == [1, 2, 3]


def test_a_field_in_a_join_condition_is_not_the_column_of_the_same_name() -> None:
    session = rove.Session.local()
    left = session.stream("l", schema="id int, place struct<id: int>")
    right = session.stream("r", schema="other int")
    plan = left.join(right, on=F.expr("place.id = other")).plan
    assert plan.left_keys == ()


def test_a_window_is_of_the_event_time_or_refused() -> None:
    session = rove.Session.local()
    s = session.stream("s", schema="ts timestamp, other timestamp").withWatermark("ts", "1 second")
    with pytest.raises(PlanError, match="event time is `ts` here"):
        s.groupBy(F.window("other", "1 second")).count()


def test_event_time_is_forgotten_by_a_function_over_batches() -> None:
    s = timed().mapInArrow(lambda batches: batches, SCHEMA)
    with pytest.raises(PlanError, match="withWatermark"):
        s.groupBy(F.window("ts", "1 second")).count()


def test_a_new_watermark_replaces_the_promises_of_an_older_column() -> None:
    session = rove.Session.local()
    source = session.stream("s", schema="ts timestamp, other timestamp")
    plan = (
        source.withWatermark("ts", "0 seconds")
        .withWatermark("other", "0 seconds")
        .groupBy(F.window("other", "1 second"))
        .count()
        .plan
    )
    pipeline = LocalPipeline({"out": plan}, {"s": [Origin("s", "o")]})
    schema = source.schema
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([100 * SECOND, 101 * SECOND], schema.field(0).type),
            pa.array([SECOND, 2 * SECOND], schema.field(1).type),
        ],
        schema=schema,
    )
    emitted = pipeline.process("s", named(Origin("s", "o"), 0, batch)) + pipeline.finish()
    assert not [e for e in emitted if e.late]
    assert [r["count"] for r in results(emitted)] == [1, 1]


def test_an_origin_belongs_to_one_stream() -> None:
    session = rove.Session.local()
    both = session.stream("a", schema=SCHEMA).union(session.stream("b", schema=SCHEMA))
    with pytest.raises(PlanError, match="origin `train-1` is declared for `a` and `b`"):
        LocalPipeline({"out": both.plan}, {"a": [Origin("train-1")], "b": [Origin("train-1")]})


def test_one_device_may_feed_two_streams_of_a_session() -> None:
    session = rove.Session.local()
    parts = {"train-1": [rows(("x", SECOND, 1), ("x", 9 * SECOND, 1))]}
    a, b = (session.stream(n, schema=SCHEMA, data=parts) for n in ("a", "b"))
    counts = timed(a.union(b)).groupBy(F.window("ts", "5 seconds")).count().toArrow()
    assert counts["count"].to_pylist() == [2, 2]


def test_a_batch_of_an_origin_nobody_waits_for_is_refused_and_counted() -> None:
    pipeline = LocalPipeline({"out": stream().plan}, {"s": [Origin("s", "o")]})
    with pytest.raises(UnknownOrigin, match="origin `s/p` of stream `s` is not declared"):
        pipeline.process("s", named(Origin("s", "p"), 0, rows(("a", 0, 1))))
    assert pipeline.rejected == 1


def test_the_two_zeroes_are_two_constants_and_nan_is_one() -> None:
    s = stream()
    zero, minus = (s.select(F.lit(v).alias("x")).plan for v in (0.0, -0.0))
    assert zero != minus
    assert s.select(F.lit(math.nan).alias("x")).plan == s.select(F.lit(math.nan).alias("x")).plan


def test_the_end_closes_windows_in_the_last_year_and_after_it() -> None:
    last = 253_402_300_799 * SECOND
    plan = timed().groupBy(F.window("ts", "30 seconds", "10 seconds")).count().plan
    pipeline = LocalPipeline({"out": plan}, {"s": [Origin("s", "o")]})
    emitted = pipeline.process("s", named(Origin("s", "o"), 0, rows(("a", last, 1), ("a", last + 86_400 * SECOND, 1))))
    assert sum(e.batch.rows for e in emitted + pipeline.finish()) == 6


def test_rows_without_a_time_leave_a_scan_by_the_side_door_whatever_their_batch() -> None:
    pipeline = LocalPipeline({"out": timed().scan(F.count("*").alias("n")).plan}, {"s": [Origin("s", "o")]})
    mixed = pipeline.process("s", named(Origin("s", "o"), 0, rows(("a", SECOND, 1), ("b", None, 1))))
    alone = pipeline.process("s", named(Origin("s", "o"), 1, rows(("c", None, 1))))
    assert [e.batch.rows for e in (*mixed, *alone) if e.late] == [1, 1]


def test_late_rows_are_not_passed_over_in_silence() -> None:
    parts = [rows(("a", 10 * SECOND, 1)), rows(("a", SECOND, 1))]
    s = timed(stream(data=parts)).groupBy(F.window("ts", "5 seconds")).count()
    with pytest.warns(UserWarning, match="1 rows came too late"):
        assert s.toArrow().num_rows == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        timed(stream(data=parts[:1])).groupBy(F.window("ts", "5 seconds")).count().toArrow()


def test_a_window_that_cannot_be_computed_is_a_fault_and_the_others_come_out() -> None:
    plan = timed().groupBy(F.window("ts", "10 seconds")).agg(F.sum("value").alias("total")).plan
    pipeline = LocalPipeline({"out": plan}, {"s": [Origin("s", "o")]})
    huge = 2**63 - 1
    first = rows(("a", SECOND, 1), ("a", 11 * SECOND, huge), ("a", 12 * SECOND, huge), ("a", 21 * SECOND, 3))
    emitted = pipeline.process("s", named(Origin("s", "o"), 0, first))
    emitted += pipeline.process("s", named(Origin("s", "o"), 1, rows(("a", 45 * SECOND, 4)))) + pipeline.finish()
    assert [r["total"] for r in results(emitted)] == [1, 3, 4]
    (fault,) = (e for e in emitted if e.fault is not None)
    assert isinstance(fault.fault, ArithmeticFault)
    seqs = sorted((e.batch.header.seq, e.batch.header.through) for e in emitted if e.fault is None)
    assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(seqs))


def test_a_batch_that_cannot_be_lifted_leaves_nothing_behind() -> None:
    plan = timed().groupBy(F.window("ts", "1 second")).agg(F.sum(F.expr("10 div value")).alias("total")).plan
    pipeline = LocalPipeline({"out": plan}, {"s": [Origin("s", "o")]})
    bad = pipeline.process("s", named(Origin("s", "o"), 0, rows(("a", SECOND, 1), ("a", 3 * SECOND, 0))))
    assert [type(e.fault) for e in bad if e.fault is not None] == [ArithmeticFault]
    pipeline.process("s", named(Origin("s", "o"), 1, rows(("a", SECOND * 3, 2))))
    assert [r["total"] for r in results(pipeline.finish())] == [5]


def test_a_restored_pipeline_waits_for_origins_that_are_new() -> None:
    plan = timed().groupBy(F.window("ts", "1 second")).count().plan
    before = LocalPipeline({"out": plan}, {"s": [Origin("s", "o")]})
    before.process("s", named(Origin("s", "o"), 0, rows(("a", SECOND, 1))))
    after = LocalPipeline({"out": plan}, {"s": [Origin("s", "o"), Origin("s", "p")]})
    after.restore(before.snapshot())
    assert not results(after.process("s", named(Origin("s", "o"), 1, rows(("a", 9 * SECOND, 1)))))


def test_a_snapshot_of_another_query_is_refused_before_anything_is_loaded() -> None:
    ten, seven = (timed().groupBy(F.window("ts", f"{n} seconds")).count().plan for n in (10, 7))
    snapshot = LocalPipeline({"out": ten}, {"s": [Origin("s", "o")]}).snapshot()
    with pytest.raises(StateError, match="of other queries"):
        LocalPipeline({"out": seven}, {"s": [Origin("s", "o")]}).restore(snapshot)


def test_stateful_steps_are_named_by_what_they_compute() -> None:
    one, two = (timed().groupBy(F.window("ts", f"{n} seconds")).count().plan for n in (1, 2))

    def origins(plans: dict[str, Any]) -> dict[str, str]:
        pipeline = LocalPipeline(plans, {"s": [Origin("s", "o")]})
        pipeline.process("s", named(Origin("s", "o"), 0, rows(("a", SECOND, 1))))
        return {e.sink: e.batch.header.origin for e in pipeline.finish()}

    assert origins({"x": one, "y": two}) == origins({"y": two, "x": one})
    assert len(set(origins({"x": one, "y": two}).values())) == 2


def test_an_empty_batch_goes_all_the_way_as_a_header() -> None:
    pipeline = LocalPipeline({"out": stream().where("value > 1").plan}, {"s": [Origin("s", "o")]})
    (emitted,) = pipeline.process("s", named(Origin("s", "o"), 0, None))
    assert (emitted.sink, emitted.batch) == ("out", named(Origin("s", "o"), 0, None))


def test_columns_that_may_not_be_null_are_columns_all_the_same() -> None:
    strict = pa.schema([f.with_nullable(False) for f in SCHEMA])
    batch = pa.RecordBatch.from_arrays(rows(("a", SECOND, 1)).columns, schema=strict)
    assert stream(data=pa.Table.from_batches([batch])).where("value > 0").toArrow().num_rows == 1


def test_a_function_that_cannot_be_hashed_is_a_function_all_the_same() -> None:
    @dataclass
    class Same:
        def __call__(self, batches: Any) -> Any:
            return batches

    table = pa.Table.from_batches([rows(("a", SECOND, 1))])
    assert stream(data=table).mapInArrow(Same(), SCHEMA).toArrow().num_rows == 1


def test_a_key_may_be_written_in_any_case() -> None:
    table = pa.Table.from_batches([rows(("a", SECOND, 1))])
    assert timed(stream(data=table)).scan(F.max("VALUE").alias("m"), by="KEY").toArrow()["m"].to_pylist() == [1]


def test_a_scan_of_no_aggregate_is_refused() -> None:
    with pytest.raises(PlanError, match="is not an aggregate"):
        timed().scan(F.col("value"))


def test_names_of_states_do_not_meet_names_of_keys() -> None:
    table = pa.Table.from_batches([rows(("a", SECOND, 1))])
    keyed = timed(stream(data=table)).withColumnRenamed("key", "n__n")
    out = keyed.groupBy(F.window("ts", "1 second"), "n__n").agg(F.count("*").alias("n"), F.max("value").alias("a`b"))
    assert out.toArrow().select(["n__n", "n", "a`b"]).to_pylist() == [{"n__n": "a", "n": 1, "a`b": 1}]


def test_the_spread_of_huge_numbers_beside_nulls_is_a_number() -> None:
    session = rove.Session.local()
    schema = parse_schema("ts timestamp, x double")
    data = pa.table([pa.array([1, 2], schema.field(0).type), pa.array([1e200, None])], schema=schema)
    s = session.stream("s", schema=schema, data=data).withWatermark("ts", "1 second")
    assert s.groupBy(F.window("ts", "1 second")).agg(F.var_pop("x").alias("v")).toArrow()["v"].to_pylist() == [0.0]
    assert s.scan(F.var_pop("x").alias("v")).toArrow()["v"].to_pylist() == [0.0, 0.0]


def test_declaring_a_stream_again_forgets_its_data() -> None:
    session = rove.Session.local()
    session.stream("s", schema=SCHEMA, data=pa.Table.from_batches([rows(("a", 1, 1))]))
    with pytest.raises(PlanError, match="has no data"):
        session.stream("s", schema=SCHEMA).toArrow()


def test_a_schema_with_odd_names_goes_there_and_back() -> None:
    from rove.model.schema import schema_text

    schema = parse_schema("`a b` int, `select` struct<`x y`: int>")
    assert parse_schema(schema_text(schema)) == schema

"""Single operators, driven by hand: event in, batches out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.data.fragment.local import LocalPipeline
from rove.data.operators.filter import FilterConfig
from rove.data.operators.join import LEFT, RIGHT, JoinConfig
from rove.data.operators.logic import StatelessLogic
from rove.data.operators.map import MapConfig
from rove.data.operators.project import ProjectConfig
from rove.data.operators.scan import ScanConfig
from rove.data.operators.watermark import WatermarkConfig
from rove.data.operators.window import WindowConfig
from rove.model.batch import named
from rove.model.clock import END
from rove.model.errors import ArithmeticFault, EdgeRefusal, PlanError, SchemaMismatch, StateError, UdfError
from rove.model.ids import Origin
from rove.model.schema import parse_schema
from rove.model.state import Snapshot, decode, encode
from rove.plan.expressions.bind import bind
from rove.plan.operators import Aggregate, Join, Scan

SCHEMA = parse_schema("key string, ts timestamp, value double")


def rows(*items: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = list(zip(*items, strict=True)) or [()] * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def seconds(*numbers: float) -> list[int]:
    return [int(n * 1_000_000) for n in numbers]


def stream() -> Any:
    return rove.Session.local().stream("s", schema=SCHEMA)


def window_plan() -> Aggregate:
    plan = stream().withWatermark("ts", "1 second").groupBy(F.window("ts", "10 seconds"), "key").count().plan
    assert isinstance(plan, Aggregate)
    return plan


def test_a_filter_keeps_the_name_and_counts_the_step() -> None:
    logic = StatelessLogic(FilterConfig(bind("value > 1", SCHEMA), SCHEMA, tuple(SCHEMA.names)).build())
    (out,) = logic.process(named(Origin("s", "o"), 7, rows(("a", 1, 0.5), ("b", 2, 1.5)))).batches
    assert (out.header.origin, out.header.seq, out.header.rows) == (Origin("s", "o"), 7, 1)
    assert out.data is not None
    assert out.data["key"].to_pylist() == ["b"]


def test_a_batch_that_loses_all_rows_travels_as_a_header() -> None:
    logic = StatelessLogic(FilterConfig(bind("value > 9", SCHEMA), SCHEMA, tuple(SCHEMA.names)).build())
    (out,) = logic.process(named(Origin("s", "o"), 7, rows(("a", 1, 0.5)))).batches
    assert out.data is None
    assert (out.header.seq, out.header.rows) == (7, 0)


def test_a_projection_computes_over_empty_and_sliced_batches() -> None:
    columns = (("twice", bind("value * 2", SCHEMA)), ("one", bind("1", SCHEMA)), ("key", bind("key", SCHEMA)))
    out_schema = parse_schema("twice double, one int, key string")
    step = ProjectConfig(columns, SCHEMA, out_schema).build()
    assert step.apply(rows()).num_rows == 0
    sliced = rows(("a", 1, 1.0), ("b", 2, 2.0), ("c", 3, None)).slice(1)
    assert step.apply(sliced).to_pydict() == {"twice": [4.0, None], "one": [1, 1], "key": ["b", "c"]}


def test_lateness_is_decided_by_the_origins_own_clock() -> None:
    logic = WatermarkConfig("ts", 1_000_000, SCHEMA).build()
    first, later = seconds(10, 8.9)
    logic.process(named(Origin("s", "a"), 0, rows(("x", first, 1.0))))
    late = logic.process(named(Origin("s", "a"), 1, rows(("x", later, 1.0), ("x", first, 2.0))))
    other = logic.process(named(Origin("s", "b"), 0, rows(("x", later, 1.0))))
    assert [b.rows for b in late.batches] == [1]
    assert [b.rows for b in late.late] == [1]
    assert late.batches[0].header.watermark == 9_000_000
    assert not other.late


def test_a_watermark_never_falls() -> None:
    logic = WatermarkConfig("ts", 0, SCHEMA).build()
    marks = []
    for seq, second in enumerate((5, 9, 7, 9)):
        (out,) = logic.process(named(Origin("s", "a"), seq, rows(("x", second * 1_000_000, 1.0)))).batches
        marks.append(out.header.watermark)
    assert marks == sorted(marks)


def test_a_window_closes_when_the_watermark_reaches_its_end_and_not_before() -> None:
    logic = WindowConfig(window_plan()).build(Origin("w", stage=1))
    logic.process(named(Origin("s", "a"), 0, rows(("x", 1_000_000, 1.0), ("y", 2_000_000, 1.0), ("x", 3_000_000, 1.0))))
    assert all(b.data is None for b in logic.watermark(9_999_999).batches)
    *_, out = logic.watermark(10_000_000).batches
    assert out.data is not None
    assert out.data.select(["key", "count"]).to_pydict() == {"key": ["x", "y"], "count": [2, 1]}


def test_rows_for_a_closed_window_leave_by_the_side_door() -> None:
    logic = WindowConfig(window_plan()).build(Origin("w", stage=1))
    logic.watermark(20_000_000)
    output = logic.process(named(Origin("s", "a"), 0, rows(("x", 1_000_000, 1.0), ("x", 25_000_000, 1.0))))
    assert [b.rows for b in output.late] == [1]
    (out,) = (b for b in logic.watermark(30_000_000).batches if b.data is not None)
    assert out.data is not None
    assert out.data["count"].to_pylist() == [1]


def test_a_join_emits_matches_of_one_window_and_sends_the_late_away() -> None:
    window = F.window("ts", "10 seconds").alias("w")
    left = stream().withWatermark("ts", "1 second").select(window, "key", "value")
    right = left.withColumnRenamed("value", "other")
    plan = left.join(right, on=["w", "key"]).plan
    assert isinstance(plan, Join)
    logic = JoinConfig(plan).build(Origin("j", stage=1))
    schema = plan.left.schema
    frame = [{"start": 0, "end": 10_000_000}]
    one = pa.RecordBatch.from_arrays(
        [pa.array(frame, schema.field(0).type), pa.array(["x"]), pa.array([1.5])], schema=schema
    )
    logic.process(named(Origin("s", "l"), 0, one), LEFT)
    logic.process(named(Origin("s", "r"), 0, one.rename_columns(["w", "key", "other"])), RIGHT)
    (out,) = (b for b in logic.watermark(10_000_000).batches if b.data is not None)
    assert out.data is not None
    assert out.data.select(["key", "value", "other"]).to_pylist() == [{"key": "x", "value": 1.5, "other": 1.5}]
    assert [b.rows for b in logic.process(named(Origin("s", "l"), 1, one), LEFT).late] == [1]


def test_a_scan_runs_in_event_time_order_whatever_came_first() -> None:
    plan = stream().withWatermark("ts", "5 seconds").scan(F.sum("value").alias("total"), by="key").plan
    assert isinstance(plan, Scan)
    logic = ScanConfig(plan).build(Origin("s", stage=1))
    logic.process(
        named(Origin("s", "a"), 0, rows(("x", 3_000_000, 3.0), ("x", 1_000_000, 1.0), ("y", 2_000_000, 10.0)))
    )
    logic.process(named(Origin("s", "b"), 0, rows(("x", 2_000_000, 2.0))))
    out = [r for b in logic.watermark(END).batches if b.data is not None for r in b.data.to_pylist()]
    assert [(r["key"], r["value"], r["total"]) for r in out] == [
        ("x", 1.0, 1.0),
        ("y", 10.0, 10.0),
        ("x", 2.0, 3.0),
        ("x", 3.0, 6.0),
    ]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, PlanError])
def test_a_function_that_raises_is_named_and_does_not_take_the_process_down(error: type[BaseException]) -> None:
    def broken(batches: Any) -> Any:
        for _ in batches:
            raise error("no such sensor")
        yield

    step = MapConfig(broken, SCHEMA).build()
    with pytest.raises(UdfError, match=rf"`broken` raised {error.__name__}: no such sensor"):
        step.apply(rows(("a", 1, 1.0)))


@pytest.mark.parametrize(
    ("garbage", "complaint"),
    [
        ([1, 2], "yielded a int"),
        ([pa.table({"key": ["a"]})], "yielded a Table"),
        ([pa.record_batch({"key": ["a"]})], "missing: ts, value"),
        ([pa.record_batch({"key": [1], "ts": [2], "value": [3.0]})], "`key` is bigint, not string"),
        (None, "raised TypeError"),
    ],
)
def test_a_function_that_returns_garbage_is_named(garbage: Any, complaint: str) -> None:
    step = MapConfig(lambda batches: garbage, SCHEMA).build()
    with pytest.raises(UdfError, match=complaint):
        step.apply(rows(("a", 1, 1.0)))


def test_a_function_may_yield_nothing_or_several_batches() -> None:
    assert MapConfig(lambda batches: iter(()), SCHEMA).build().apply(rows(("a", 1, 1.0))).num_rows == 0
    twice = MapConfig(lambda batches: (b for batch in batches for b in (batch, batch)), SCHEMA).build()
    assert twice.apply(rows(("a", 1, 1.0))).num_rows == 2


def test_a_fault_in_one_query_does_not_touch_the_other() -> None:
    s = stream()
    plans = {"good": s.where("value > 0").plan, "bad": s.selectExpr("1 / value AS inverse").plan}
    pipeline = LocalPipeline(plans, {"s": [Origin("s", "o")]})
    emitted = pipeline.process("s", named(Origin("s", "o"), 0, rows(("a", 1, 0.0), ("b", 2, 2.0))))
    assert [(e.sink, type(e.fault)) for e in emitted if e.fault] == [("bad", ArithmeticFault)]
    gone_on = {e.sink: e.batch.header for e in emitted if not e.fault}
    assert [(h.rows, h.born, h.faulted) for h in (gone_on["good"], gone_on["bad"])] == [(1, 2, 0), (1, 1, 1)]
    assert pipeline.faults == 1
    assert {
        e.sink for e in pipeline.process("s", named(Origin("s", "o"), 1, rows(("b", 2, 2.0)))) if e.fault is None
    } == {
        "good",
        "bad",
    }


def test_queries_that_begin_alike_share_their_beginning() -> None:
    calls = []

    def spy(batches: Any) -> Any:
        for batch in batches:
            calls.append(batch.num_rows)
            yield batch

    s = stream()
    common = s.where("value > 0").mapInArrow(spy, SCHEMA)
    again = s.where("value > 0").mapInArrow(spy, SCHEMA)
    pipeline = LocalPipeline({"a": common.select("key").plan, "b": again.select("ts").plan}, {"s": [Origin("s", "o")]})
    emitted = pipeline.process("s", named(Origin("s", "o"), 0, rows(("a", 1, 1.0))))
    assert sorted(e.sink for e in emitted) == ["a", "b"]
    assert calls == [1]


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (pa.record_batch({"other": [1]}), "missing: key, ts, value; not in the schema: other"),
        (rows(("a", 1, 1.0)).select(["key", "ts"]), "missing: value"),
        (rows(("a", 1, 1.0)).append_column("more", pa.array([1])), "not in the schema: more"),
        (rows(("a", 1, 1.0)).select(["ts", "key", "value"]), "another order: ts, key, value"),
        (rows(("a", 1, 1.0)).set_column(2, "value", pa.array([1])), "`value` is bigint, not double"),
    ],
    ids=["another schema", "a missing column", "an extra column", "reordered columns", "a wrong type"],
)
def test_a_batch_that_does_not_fit_its_stream_is_refused_counted_and_changes_nothing(
    batch: pa.RecordBatch, complaint: str
) -> None:
    pipeline = LocalPipeline({"out": stream().where("value > 0").plan}, {"s": [Origin("s", "o")]})
    with pytest.raises(SchemaMismatch, match=complaint):
        pipeline.process("s", named(Origin("s", "o"), 0, batch))
    assert pipeline.rejected == 1
    assert pipeline.process("s", named(Origin("s", "o"), 0, rows(("a", 1, 1.0))))[0].batch.rows == 1


def test_an_unknown_stream_is_refused() -> None:
    pipeline = LocalPipeline({"out": stream().plan}, {"s": [Origin("s", "o")]})
    with pytest.raises(PlanError, match="no query here reads the stream `t`; streams: s"):
        pipeline.process("t", named(Origin("s", "o"), 0, rows()))


def test_a_plan_that_needs_spark_is_refused_with_the_reason() -> None:
    with pytest.raises(EdgeRefusal, match="`soundex` runs in Spark only"):
        LocalPipeline({"out": stream().selectExpr("soundex(key) AS s").plan}, {"s": [Origin("s", "o")]})


def test_an_empty_batch_is_taken_by_every_operator() -> None:
    plan = stream().where("value > 0").withWatermark("ts", "1 second").groupBy(F.window("ts", "1 second")).count().plan
    pipeline = LocalPipeline({"out": plan}, {"s": [Origin("s", "o")]})
    assert pipeline.process("s", named(Origin("s", "o"), 0, rows())) == []
    assert pipeline.process("s", named(Origin("s", "o"), 1, None)) == []


def test_a_snapshot_of_another_operator_is_refused() -> None:
    with pytest.raises(StateError, match="a snapshot of scan, not of window"):
        WindowConfig(window_plan()).build(Origin("w", stage=1)).restore(Snapshot("scan"))
    with pytest.raises(StateError, match="not a snapshot"):
        decode(b"garbage", {})
    table = pa.table({"a": [1]})
    found = Snapshot("x", {"n": 1}, {"t": table})
    assert decode(encode(found), found.schemas) == found

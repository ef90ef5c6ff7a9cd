"""Rows that cannot be computed are set aside, and no others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rove
from rove import functions as F
from rove.data.fragment.local import Arrival, LocalPipeline
from rove.data.operators import faulted
from rove.data.operators.faulted import OPERATOR, REASON, fault_schema, rows_outside, try_parts
from rove.model.batch import named
from rove.model.errors import ArithmeticFault, DataError, UdfError
from rove.model.ids import Origin
from rove.plan.operators import Operator
from rove.plan.optimizer import optimize

ORIGIN = Origin("t", "van-7")
SECOND = 1_000_000
SCHEMA = pa.schema([("id", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("fuel", pa.int32())])


def numbers(values: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def fails_at(bad: set[int], calls: list[int], error: type[DataError] = ArithmeticFault) -> object:
    def compute(data: pa.RecordBatch) -> list[int]:
        found: list[int] = data["n"].to_pylist()
        calls.append(len(found))
        if wrong := [n for n in found if n in bad]:
            raise error(f"{wrong[0]} is bad")
        return found

    return compute


@given(st.integers(1, 70), st.data())
def test_exactly_the_rows_at_fault_are_found(rows: int, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(0, rows - 1), min_size=1))
    batch, calls = numbers(list(range(rows))), list[int]()
    compute = fails_at(bad, calls)
    tried = try_parts(compute, batch, ArithmeticFault(f"{min(bad)} is bad"))  # type: ignore[arg-type]
    assert [n for part in tried.results for n in part] == [n for n in range(rows) if n not in bad]  # type: ignore[attr-defined]
    assert [(f.start, f.end, str(f.error)) for f in tried.faults] == [(n, n + 1, f"{n} is bad") for n in sorted(bad)]
    rest = rows_outside(batch, tried.faults)
    assert ([] if rest is None else rest["n"].to_pylist()) == [n for n in range(rows) if n not in bad]
    assert len(calls) <= 2 * len(bad) * rows.bit_length()


def test_an_error_that_is_not_of_single_rows_takes_the_whole_batch() -> None:
    calls = list[int]()
    tried = try_parts(fails_at({3}, calls), numbers(list(range(8))), DataError("no"))  # type: ignore[arg-type]
    assert [(f.start, f.end) for f in tried.faults] == [(0, 8)]
    assert calls == []


def test_tries_have_a_bound_and_what_was_not_tried_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faulted, "TRIES_MAX", 6)
    calls = list[int]()
    rows = set(range(64))
    tried = try_parts(fails_at(rows, calls), numbers(sorted(rows)), ArithmeticFault("0 is bad"))  # type: ignore[arg-type]
    assert len(calls) == 6
    assert sum(f.end - f.start for f in tried.faults) == 64
    few = list[int]()
    try_parts(fails_at(set(range(4_000)), few, UdfError), numbers(list(range(4_000))), UdfError("no"))  # type: ignore[arg-type]
    monkeypatch.undo()
    assert len(few) <= UdfError.tries_max


def test_columns_of_the_user_keep_their_names() -> None:
    names = fault_schema(pa.schema([("a", pa.int32()), (REASON, pa.string())])).names
    assert names == ["a", REASON, f"_{REASON}", OPERATOR]


def stream() -> object:
    return rove.Session.local().stream("t", schema="id int, ts timestamp, fuel int")


def fuel(*values: int) -> pa.RecordBatch:
    ids, times = range(len(values)), [10 * SECOND] * len(values)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip((ids, times, values), SCHEMA, strict=True)], SCHEMA)


def run(plan: Operator, *batches: pa.RecordBatch) -> tuple[list[Arrival], LocalPipeline]:
    pipeline = LocalPipeline({"out": optimize(plan)}, {"t": [ORIGIN]})
    found = [a for n, b in enumerate(batches) for a in pipeline.process("t", named(ORIGIN, n, b))]
    return [*found, *pipeline.finish()], pipeline


def test_a_division_by_zero_takes_its_own_row_alone() -> None:
    plan = stream().where("id <> 1").selectExpr("id", "100 / (fuel - 80) AS x").plan  # type: ignore[attr-defined]
    (aside, rest), _ = run(plan, fuel(79, 80, 81, 80, 82))
    assert rest.batch.data.to_pylist() == [{"id": 0, "x": -100.0}, {"id": 2, "x": 100.0}, {"id": 4, "x": 50.0}]
    assert (rest.batch.header.born, rest.batch.header.faulted, rest.batch.header.lost) == (4, 1, 0)
    (row,) = aside.batch.data.to_pylist()
    assert (row["id"], row["fuel"]) == (3, 80)
    assert "division by zero" in row[REASON]
    assert "100" in row[OPERATOR]
    assert aside.batch.header.at_fault
    assert isinstance(aside.fault, ArithmeticFault)


def test_a_batch_of_which_no_row_can_be_computed_goes_on_as_a_header() -> None:
    (aside, rest), _ = run(stream().selectExpr("100 / (fuel - 80) AS x").plan, fuel(80, 80))  # type: ignore[attr-defined]
    assert aside.batch.rows == 2
    assert (rest.batch.data, rest.batch.header.born, rest.batch.header.faulted) == (None, 0, 2)


def test_a_window_takes_the_rows_that_it_can_compute() -> None:
    counted = (
        stream().withWatermark("ts", "1 second")  # type: ignore[attr-defined]
        .groupBy(F.window("ts", "1 minute")).agg(F.count("*").alias("n"), F.sum(F.expr("100 / (fuel - 80)")).alias("s"))
    )  # fmt: skip
    found, pipeline = run(counted.plan, fuel(79, 80, 81), fuel(80, 80), fuel(90))
    results = [row for a in found if not a.late and a.batch.data is not None for row in a.batch.data.to_pylist()]
    assert [(row["n"], row["s"]) for row in results] == [(3, 10.0)]
    assert [a.batch.rows for a in found if a.late] == [1, 2]
    count = pipeline._pipeline.count(ORIGIN)
    assert (count.delivered, count.faulted, count.open, count.lost) == (3, 3, 0, 0)


@pytest.mark.parametrize("verb", ["scan", "countWindow"])
def test_an_operator_in_the_order_of_time_takes_the_rows_that_it_can_compute(verb: str) -> None:
    quotient = F.sum(F.expr("100 / (fuel - 80)")).alias("s")
    timed = stream().withWatermark("ts", "1 second")  # type: ignore[attr-defined]
    ordered = timed.scan(quotient) if verb == "scan" else timed.countWindow(1).agg(quotient)
    found, pipeline = run(ordered.plan, fuel(79, 80, 81), fuel(80, 80), fuel(90))
    results = [row["s"] for a in found if not a.late and a.batch.data is not None for row in a.batch.data.to_pylist()]
    assert results == ([-100.0, 0.0, 10.0] if verb == "scan" else [-100.0, 100.0, 10.0])
    assert [a.batch.rows for a in found if a.late] == [1, 2]
    count = pipeline._pipeline.count(ORIGIN)
    assert (count.delivered, count.faulted, count.open, count.lost) == (3, 3, 0, 0)


def test_a_pair_of_a_join_that_cannot_be_computed_goes_alone() -> None:
    left = stream().withWatermark("ts", "1 second").select(F.window("ts", "1 minute").alias("w"), "id", "fuel")  # type: ignore[attr-defined]
    right = left.select("w", F.col("id").alias("other"))
    joined = left.join(right.withColumnRenamed("w", "v"), F.expr("w = v AND id = other AND 100 / (fuel - 80) > 0"))
    found, pipeline = run(joined.select("id").plan, fuel(79, 80, 81, 90))
    results = [row["id"] for a in found if not a.late and a.batch.data is not None for row in a.batch.data.to_pylist()]
    assert results == [2, 3]
    (aside,) = [a for a in found if a.late]
    assert [(row["id"], row["fuel"]) for row in aside.batch.data.to_pylist()] == [(1, 80)]
    count = pipeline._pipeline.count(aside.batch.header.origin)
    assert count.produced == 4


def test_a_function_that_raises_takes_the_rows_it_raised_for() -> None:
    def picky(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            if 80 in batch["fuel"].to_pylist():
                raise ValueError("eighty")
            yield batch.select(["id"])

    (aside, rest), _ = run(stream().mapInArrow(picky, "id int").plan, fuel(79, 80, 81))  # type: ignore[attr-defined]
    assert rest.batch.data.to_pylist() == [{"id": 0}, {"id": 2}]
    assert [row["id"] for row in aside.batch.data.to_pylist()] == [1]

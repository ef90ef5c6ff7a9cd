"""Bytes that are not a valid plan are refused with a PlanError, however they are damaged."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rove.model.errors import BadName, PlanError, UnknownColumn, UnknownFunction
from rove.model.schema import TIMESTAMP
from rove.plan import wire
from rove.plan.codec import decode, encode
from rove.plan.expressions.codec import write_schema
from rove.plan.operators import Project, Source
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from tests.plan.test_codec import no_value
from tests.plan.test_codec_expressions import LITERALS
from tests.portable.queries import QUERIES, plan_of
from tests.portable.random_plans import compiled, source


def packed(*operators: wire.Operator, outputs: Any = (), hints: Any = (), version: int = wire.FORMAT) -> bytes:
    plan = msgspec.msgpack.encode(wire.Plan(operators, outputs, hints))
    return msgspec.msgpack.encode(wire.Envelope(version, msgspec.Raw(plan)))


A = wire.Source("s", write_schema(pa.schema([("a", pa.int32()), ("ts", TIMESTAMP)])))
TEN = wire.Window(10, 10, 0)
A_HOLE = write_schema(pa.schema([("__0", pa.bool_())]))
BAD: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "not a plan"),
    ("rubbish", b"\xc1\x00", "not a plan"),
    ("another version", packed(A, version=2), "format 2, this node reads 1"),
    ("a later version of unknown shape", msgspec.msgpack.encode([3, {"new": True}]), "format 3"),
    ("an operator of no kind", msgspec.msgpack.encode([1, [[[99, "s"]], [], []]]), "not a plan"),
    ("a field too many", msgspec.msgpack.encode([1, [[[1, "s", b"", 1]], [], []]]), "not a plan"),
    ("a schema of rubbish", packed(wire.Source("s", b"rubbish")), "not a plan"),
    ("an input of its own", packed(wire.Filter(0, wire.Text("true"))), "does not come before it"),
    ("inputs in a ring", packed(wire.Filter(1, wire.Text("true")), wire.Filter(0, wire.Text("true"))), "come before"),
    ("a negative input", packed(A, wire.Union((-1,))), "not a plan"),
    ("a union of nothing", packed(wire.Union(())), "not a plan"),
    ("an output that is not there", packed(A, outputs=(("out", 1),)), "names a stage"),
    ("two outputs of one name", packed(A, outputs=(("out", 0), ("out", 0))), "two outputs"),
    ("a hint on no stage", packed(A, hints=((7, "edge"),)), "names a stage"),
    ("an unknown column", packed(A, wire.Project(0, (("x", wire.Name("b")),))), "no column `b`"),
    ("an unknown column in text", packed(A, wire.Filter(0, wire.Text("b > 1"))), "no column `b`"),
    ("an unknown column only Spark reads", packed(A, wire.Filter(0, wire.Foreign(b"", "b", ("b",), ""))), "not a plan"),
    ("an unknown function", packed(A, wire.Filter(0, wire.Text("nonesuch(a)"))), "no function `nonesuch`"),
    ("text that is not SQL", packed(A, wire.Filter(0, wire.Text("a >"))), "not Spark SQL"),
    ("a condition that is not boolean", packed(A, wire.Filter(0, wire.Name("a"))), "must be boolean"),
    (
        "an aggregate without time",
        packed(A, wire.Aggregate(0, TEN, wire.Name("ts"), (), (), None, "whole", "w")),
        "withWatermark",
    ),
    (
        "an aggregate of no mode",
        packed(A, wire.Aggregate(0, TEN, wire.Name("ts"), (), (), None, "half", "w")),
        "not a plan",
    ),
    (
        "a final of nothing",
        packed(A, wire.Watermark(0, "ts", 0), wire.Aggregate(1, TEN, wire.Name("ts"), (), None, None, "final", "w")),
        "no partial aggregate below it",
    ),
    ("a join of no kind", packed(A, wire.Join(0, 0, "sideways", ("a",), ("a",), True, None)), "not a plan"),
    (
        "a join on other numbers of keys",
        packed(A, wire.Join(0, 0, "left_semi", ("a",), (), True, None)),
        "the same number of keys",
    ),
    ("a join on no such key", packed(A, wire.Join(0, 0, "left_semi", ("z",), ("z",), True, None)), "not a plan"),
    (
        "a window that skips",
        packed(A, wire.Received("r", A.columns, "ts", 0, (("w", wire.Window(1, 2, 0)),))),
        "skip rows",
    ),
    (
        "a part of another type",
        packed(A, wire.Filter(0, wire.Filled("__0", A_HOLE, (wire.Name("a"),)))),
        "not of the types",
    ),
    ("too many operators", packed(*[A] * (wire.OPERATORS_MAX + 1)), "not a plan"),
    ("too many bytes", packed(wire.Source("s" * wire.PLAN_BYTES_MAX, A.columns)), "the most is"),
]


@pytest.mark.parametrize(("data", "complaint"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bytes_that_are_no_plan_are_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        decode(data)


def test_unknown_names_keep_their_own_errors() -> None:
    with pytest.raises(UnknownColumn):
        decode(packed(A, wire.Project(0, (("x", wire.Name("b")),))))
    with pytest.raises(UnknownFunction):
        decode(packed(A, wire.Filter(0, wire.Text("nonesuch(a)"))))


@cache
def samples() -> list[bytes]:
    chosen = [plan_of(q) for q in QUERIES[::6]] + [plan_of(compiled(source(seed))) for seed in (2, 5, 7)]
    plans = [optimize(p) for p in chosen]
    odd = [Project(Source("s", pa.schema([("x", pa.int8())])), (("y", e),)) for _, e in LITERALS[-8:]]
    return [encode(Stages.of({"out": p}), pickled=no_value) for p in (*plans, *odd)]


def taken_or_refused(data: bytes) -> None:
    try:
        decode(data)
    except (PlanError, BadName):
        return


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_bytes_are_a_plan_or_refused(data: st.DataObject) -> None:
    whole = bytearray(data.draw(st.sampled_from(samples())))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        kind = data.draw(st.sampled_from(["byte", "cut", "gone", "twice"]))
        length = data.draw(st.integers(1, 12))
        if kind == "byte":
            whole[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del whole[max(1, at) :]
        elif kind == "gone" and len(whole) > length + 1:
            del whole[at : at + length]
        else:
            whole[at:at] = whole[at : at + length]
        if len(whole) < 2:
            break
    taken_or_refused(bytes(whole))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    taken_or_refused(data)
    taken_or_refused(b"\x92\x01" + data)


def test_every_beginning_of_a_plan_is_refused() -> None:
    data = samples()[0]
    for length in range(len(data)):
        with pytest.raises(PlanError):
            decode(data[:length])

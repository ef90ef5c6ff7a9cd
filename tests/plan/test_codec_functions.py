"""Users' functions travel by name where they have one, by value where both ends agree."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import rove
from rove.model.errors import PlanError
from rove.plan import wire
from rove.plan.codec import decode, encode
from rove.plan.expressions.codec import write_schema
from rove.plan.stages import Stages
from tests.plan import shipped_functions
from tests.plan.test_codec_refusals import packed


def stream() -> Any:
    return rove.Session.local().stream("s", schema="a int")


def test_a_function_with_a_name_is_the_same_function_again() -> None:
    for function in (shipped_functions.unchanged, shipped_functions.Steps.unchanged):
        plan = stream().mapInArrow(function, "a int").inSpark(shipped_functions.in_spark).plan
        stages = Stages.of({"out": plan})
        assert decode(encode(stages)) == stages


def test_a_function_without_a_name_is_refused_unless_it_may_go_by_value() -> None:
    stages = Stages.of({"out": stream().mapInArrow(lambda batches: batches, "a int").plan})
    with pytest.raises(PlanError, match="define it in a module"):
        encode(stages)
    data = encode(stages, pickled=cloudpickle.dumps)
    with pytest.raises(PlanError, match="trusted=True"):
        decode(data)
    again = decode(data, trusted=True)
    assert [type(o).__name__ for o in again.operators] == ["Source", "Map"]
    assert list(again.operators[1].function([1, 2])) == [1, 2]  # type: ignore[attr-defined]


def test_a_function_that_cannot_be_pickled_says_so() -> None:
    held = (i for i in range(3))
    stages = Stages.of({"out": stream().mapInArrow(lambda batches: held, "a int").plan})
    with pytest.raises(PlanError, match="cannot be sent by value"):
        encode(stages, pickled=cloudpickle.dumps)


def with_function(word: wire.Function) -> bytes:
    columns = write_schema(pa.schema([("a", pa.int32())]))
    return packed(wire.Source("s", columns), wire.Map(0, word, columns))


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        (wire.Reference("no_such_module_of_anyone", "f"), "install the module"),
        (wire.Reference("tests.plan.shipped_functions", "gone"), "install the module"),
        (wire.Reference("", ""), "install the module"),
        (wire.Reference("tests.plan.shipped_functions", "NOT_A_FUNCTION"), "cannot be called"),
        (wire.Pickled(b"rubbish"), "cannot be read here"),
    ],
)
def test_a_function_that_is_not_here_says_what_to_install(word: wire.Function, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        decode(with_function(word), trusted=True)

"""Users' functions are sent by name if they have one, by value where it is allowed, and passed on unread elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

import rove
from rove.model.errors import PlanError
from rove.model.ids import Stage
from rove.plan import wire
from rove.plan.codec import decode, encode
from rove.plan.expressions.codec import write_schema
from rove.plan.stages import Stages
from rove.plan.user_functions import FUNCTION_BYTES_MAX, by_name, by_value, unread
from tests.plan import shipped_functions
from tests.plan.test_codec_refusals import packed

PYTHON = sys.implementation.cache_tag
COLUMNS = write_schema(pa.schema([("a", pa.int32())]))


def stream() -> Any:
    return rove.Session.local().stream("s", schema="a int")


def by_lambda(function: Callable[..., Any]) -> bytes:
    """A plan that calls a function which has no name."""
    return encode(Stages.of({"out": stream().mapInArrow(function, "a int").plan}), pickled=cloudpickle.dumps)


def with_function(word: wire.Function) -> bytes:
    return packed(wire.Source("s", COLUMNS), wire.Map(0, word, COLUMNS))


class Trap:
    """Whoever reads it from its bytes leaves a file behind."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


def trap(file: Path) -> wire.Pickled:
    return wire.Pickled("trap", PYTHON, cloudpickle.dumps(Trap(file)))


def test_a_function_with_a_name_is_the_same_function_again() -> None:
    for function in (shipped_functions.unchanged, shipped_functions.Steps.unchanged):
        plan = stream().mapInArrow(function, "a int").inSpark(shipped_functions.in_spark).plan
        stages = Stages.of({"out": plan})
        assert decode(encode(stages)) == stages


def test_a_function_without_a_name_is_refused_unless_it_may_go_by_value() -> None:
    with pytest.raises(PlanError, match="define it in a module"):
        encode(Stages.of({"out": stream().mapInArrow(lambda batches: batches, "a int").plan}))
    level = 3
    data = by_lambda(lambda batches: [b + level for b in batches])
    with pytest.raises(PlanError, match="setting trust_functions"):
        decode(data)
    again = decode(data, by_value)
    assert [type(o).__name__ for o in again.operators] == ["Source", "Map"]
    assert again.operators[1].function([1, 2]) == [4, 5]  # type: ignore[attr-defined]


def test_reading_by_name_or_not_at_all_runs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "ran"
    data = with_function(trap(file))
    with pytest.raises(PlanError, match="came by value"):
        decode(data, by_name)
    assert encode(decode(data, unread)) == data
    assert encode(decode(data, by_value, needed=(Stage(0),))) == data
    assert not file.exists()
    with pytest.raises(PlanError):
        decode(data, by_value)
    assert file.exists()  # the trap would have told


def test_who_passes_a_plan_on_needs_none_of_its_modules() -> None:
    data = with_function(wire.Reference("no_such_module_of_anyone", "f"))
    passed = decode(data, unread)
    assert encode(passed) == data
    with pytest.raises(PlanError, match="only passed on here"):
        passed.operators[1].function(())  # type: ignore[attr-defined]


def test_a_function_that_cannot_be_pickled_says_so() -> None:
    held = (i for i in range(3))
    with pytest.raises(PlanError, match="cannot be sent by value"):
        by_lambda(lambda batches: held)


def test_a_function_that_drags_data_along_is_refused_with_its_size() -> None:
    table = bytes(FUNCTION_BYTES_MAX)
    with pytest.raises(PlanError, match=r"has 262,\d+ bytes with the data it refers to; the most is 262,144"):
        by_lambda(lambda batches: table)


def test_code_of_another_python_is_not_even_tried(tmp_path: Path) -> None:
    file = tmp_path / "ran"
    with pytest.raises(PlanError, match="came from cpython-27, this node runs"):
        decode(with_function(wire.Pickled("trap", "cpython-27", trap(file).data)), by_value)
    assert not file.exists()


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        (wire.Reference("no_such_module_of_anyone", "f"), "install the module"),
        (wire.Reference("tests.plan.shipped_functions", "gone"), "install the module"),
        (wire.Reference("", ""), "install the module"),
        (wire.Reference("tests.plan.shipped_functions", "NOT_A_FUNCTION"), "cannot be called"),
        (wire.Pickled("f", PYTHON, b"rubbish"), "cannot be read here"),
        (wire.Pickled("f", PYTHON, b"cno_such_module\nf\n."), "install `no_such_module` here"),
        (wire.Pickled("f", PYTHON, b"csys\nexit\n(I1\ntR."), "cannot be read here"),
    ],
)
def test_a_function_that_is_not_here_says_what_to_install(word: wire.Function, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        decode(with_function(word), by_value)

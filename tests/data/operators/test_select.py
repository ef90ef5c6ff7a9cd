"""A projection, the filter after it, and a projection that only picks columns are one step with the same result."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rove.data.operators.filter import FilterConfig
from rove.data.operators.project import ProjectConfig
from rove.data.operators.stateless_run import compiled, rows_through
from rove.model.errors import ArithmeticFault
from rove.plan.expressions.bind import bind
from rove.plan.operators import Filter, Operator, Project, Source

ROWS = pa.record_batch({"k": pa.array([1, 2, None, 4, 0]), "v": pa.array([10, None, 30, 40, 50])})


def projection(below: Operator, **columns: str) -> Project:
    return Project(below, tuple((name, bind(text, below.schema)) for name, text in columns.items()))


def a_run(condition: str, **last: str) -> list[Operator]:
    first = projection(Source("s", ROWS.schema), double="k * 2", v="v", k="k")
    where = Filter(first, bind(condition, first.schema))
    return [first, where, projection(where, **last)] if last else [first, where]


def one_by_one(run: list[Operator]) -> pa.RecordBatch:
    """The result of each operator by itself."""
    data = ROWS
    for operator in run:
        below = operator.inputs[0].schema
        if isinstance(operator, Filter):
            data = FilterConfig(operator.condition, below, tuple(below.names)).build().apply(data)
        elif isinstance(operator, Project):
            data = ProjectConfig(operator.columns, below, operator.schema).build().apply(data)
    return data


@pytest.mark.parametrize("last", [{}, {"x": "v", "y": "double"}, {"v": "v", "again": "v"}, {"sum": "v + double"}])
@pytest.mark.parametrize("condition", ["double > 2", "k is null", "v > 0 or double > 0", "double > 100", "true"])
def test_one_step_gives_what_its_operators_give(condition: str, last: dict[str, str]) -> None:
    run = a_run(condition, **last)
    assert rows_through(compiled(run), ROWS).to_pylist() == one_by_one(run).to_pylist()


def test_a_branch_that_is_not_reached_is_not_computed() -> None:
    run = a_run("double <> 0 and v / double > 5", v="v")
    assert rows_through(compiled(run), ROWS).equals(one_by_one(run))
    with pytest.raises(ArithmeticFault, match="division by zero"):
        rows_through(compiled(a_run("v / double > 5", v="v")), ROWS)


def test_a_projection_that_only_picks_is_part_of_the_step() -> None:
    assert len(compiled(a_run("double > 2", x="v"))) == 1
    assert len(compiled(a_run("double > 2", x="v + 1"))) == 2

"""Compiles runs of stateless operators, so that a batch passes them in one walk."""

from __future__ import annotations

from itertools import zip_longest

import pyarrow as pa
from msgspec.structs import replace

from rove.data.operators.filter import FilterConfig
from rove.data.operators.logic import Stateless
from rove.data.operators.map import MapConfig
from rove.data.operators.project import ProjectConfig
from rove.model.batch import Batch
from rove.plan.expressions.tree import Column, columns_of
from rove.plan.operators import Filter, Map, Operator, Project


def compiled(run: list[Operator]) -> list[Stateless]:
    """Compile a run. A filter copies only the columns that the projection after it reads. A projection that only leaves
    columns out does nothing for the projection after it, which reads its columns by name."""
    steps: list[Stateless] = []
    schema = run[0].inputs[0].schema
    for operator, following in zip_longest(run, run[1:]):
        match operator:
            case Filter(condition=condition):
                step = FilterConfig(condition, schema, _read_by(following, schema))
                schema = step.schema
                steps.append(step.build())
            case Project() if isinstance(following, Project) and _only_leaves_out(operator):
                pass
            case Project(columns=columns):
                steps.append(ProjectConfig(columns, schema, operator.schema).build())
                schema = operator.schema
            case Map(function=function, columns=columns):
                steps.append(MapConfig(function, columns).build())
                schema = operator.schema
    return steps


def through(steps: list[Stateless], batch: Batch) -> Batch:
    """Apply a run of stateless steps. A batch that loses all rows becomes a header."""
    data = rows_through(steps, batch.data)
    if not data.num_rows:
        return Batch(replace(batch.header, rows=0))
    return Batch(replace(batch.header, rows=data.num_rows), data)


def rows_through(steps: list[Stateless], data: pa.RecordBatch) -> pa.RecordBatch:
    """Apply a run to rows. If no rows are left, the columns are those of the step that left none."""
    for step in steps:
        data = step.apply(data)
        if not data.num_rows:
            return data
    return data


def _only_leaves_out(projection: Project) -> bool:
    return all(isinstance(column, Column) and column.name == name for name, column in projection.columns)


def _read_by(following: Operator | None, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that the next operator reads: for a projection those it uses, at least one; else all."""
    if not isinstance(following, Project):
        return tuple(schema.names)
    read = {name for _, e in following.columns for name in columns_of(e)}
    return tuple(n for n in schema.names if n in read) or (schema.names[0],)

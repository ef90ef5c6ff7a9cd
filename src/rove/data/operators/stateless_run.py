"""Compiles runs of stateless operators, so that a batch passes them in one walk."""

from __future__ import annotations

import pyarrow as pa

from rove.data.operators.filter import FilterConfig
from rove.data.operators.logic import Stateless
from rove.data.operators.map import MapConfig
from rove.data.operators.project import ProjectConfig
from rove.data.operators.select import SelectConfig
from rove.plan.expressions.tree import Column, columns_of
from rove.plan.operators import Filter, Map, Operator, Project


def compiled(run: list[Operator]) -> list[Stateless]:
    """Compile a run. A projection that computes and the filter after it are one step. A filter copies only the columns
    that the projection after it reads. A projection that only leaves columns out does nothing for the projection after
    it, which reads its columns by name."""
    steps: list[Stateless] = []
    schema, n = run[0].inputs[0].schema, 0
    while n < len(run):
        operator, following, last = (*run[n : n + 3], None, None)[:3]
        n += 1
        match operator, following:
            case Project(), Filter() if not _only_picks(operator):
                select = _selected(operator, following, last, schema)
                schema = select.schema
                steps.append(select.build())
                n += 2 if _only_picks(last) else 1
            case Filter(condition=condition), _:
                step = FilterConfig(condition, schema, _read_by(following, schema))
                schema = step.schema
                steps.append(step.build())
            case Project(), Project() if _only_leaves_out(operator):
                pass
            case Project(columns=columns), _:
                steps.append(ProjectConfig(columns, schema, operator.schema).build())
                schema = operator.schema
            case Map(function=function, columns=columns), _:
                steps.append(MapConfig(function, columns).build())
                schema = operator.schema
    return steps


def rows_through(steps: list[Stateless], data: pa.RecordBatch) -> pa.RecordBatch:
    """Apply a run to rows. If no rows are left, the columns are those of the step that left none."""
    for step in steps:
        data = step.apply(data)
        if not data.num_rows:
            return data
    return data


def _selected(first: Project, where: Filter, last: Operator | None, schema: pa.Schema) -> SelectConfig:
    """A projection and a filter as one step, with the projection after them if that one only picks columns."""
    keep = _read_by(last, first.schema)
    names = list(keep)
    if isinstance(last, Project) and _only_picks(last):
        keep, names = tuple(e.name for _, e in last.columns if isinstance(e, Column)), last.schema.names
    kept = pa.schema([first.schema.field(old).with_name(new) for old, new in zip(keep, names, strict=True)])
    return SelectConfig(first.columns, where.condition, schema, first.schema, keep, kept)


def _only_picks(operator: Operator | None) -> bool:
    return isinstance(operator, Project) and all(isinstance(column, Column) for _, column in operator.columns)


def _only_leaves_out(projection: Project) -> bool:
    return all(isinstance(column, Column) and column.name == name for name, column in projection.columns)


def _read_by(following: Operator | None, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that the next operator reads: for a projection those it uses, at least one; else all."""
    if not isinstance(following, Project):
        return tuple(schema.names)
    read = {name for _, e in following.columns for name in columns_of(e)}
    return tuple(n for n in schema.names if n in read) or (schema.names[0],)

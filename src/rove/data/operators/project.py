"""Computes the output columns."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Column
from rove.plan.operators import Named


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    columns: tuple[Named, ...]
    input_schema: pa.Schema
    schema: pa.Schema

    def build(self) -> ProjectLogic | SelectLogic:
        names = self.input_schema.names
        if all(isinstance(e, Column) and e.name == name for name, e in self.columns):
            return SelectLogic([names.index(name) for name, _ in self.columns])
        return ProjectLogic(self)


class ProjectLogic:
    """One evaluation a column."""

    def __init__(self, config: ProjectConfig) -> None:
        self._evaluators = [compile_expression(e, config.input_schema) for _, e in config.columns]
        self._schema = config.schema

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([f(data) for f in self._evaluators], schema=self._schema)


class SelectLogic:
    """Columns as they are, fewer or in another order: no evaluation at all."""

    def __init__(self, indices: list[int]) -> None:
        self._indices = indices

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        return data.select(self._indices)

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

    def build(self) -> ProjectLogic | PickLogic:
        picked = [e.name for _, e in self.columns if isinstance(e, Column)]
        return PickLogic(self, picked) if len(picked) == len(self.columns) else ProjectLogic(self)


class ProjectLogic:
    """One evaluation for each column."""

    def __init__(self, config: ProjectConfig) -> None:
        self._evaluators = [compile_expression(e, config.input_schema) for _, e in config.columns]
        self._schema = config.schema

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([f(data) for f in self._evaluators], schema=self._schema)


class PickLogic:
    """Only picks, reorders or renames columns, without evaluation."""

    def __init__(self, config: ProjectConfig, picked: list[str]) -> None:
        names = config.input_schema.names
        self._indices = None if picked == names else [names.index(name) for name in picked]
        self._names = None if config.schema.names == picked else config.schema.names

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        if self._indices is not None:
            data = data.select(self._indices)
        return data if self._names is None else data.rename_columns(self._names)

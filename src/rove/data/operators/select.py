"""Computes columns and keeps the rows for which a condition on them is true: a projection and the filter after it.

Law: no record batch is made between the two, because making one costs as much as a small kernel. Columns that only the
condition reads are not copied.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Datum, Expr
from rove.plan.operators import Named


@dataclass(frozen=True, slots=True)
class SelectConfig:
    """`computed` are the columns of the projection, with their `computed_schema`. `keep` are the names of those that
    come out, in this order, as the columns of `schema`."""

    computed: tuple[Named, ...]
    condition: Expr
    input_schema: pa.Schema
    computed_schema: pa.Schema
    keep: tuple[str, ...]
    schema: pa.Schema

    def build(self) -> SelectLogic:
        return SelectLogic(self)


class SelectLogic:
    """One evaluation for each column, one of the condition, and one `filter` call. A batch that loses no row is not
    copied."""

    def __init__(self, config: SelectConfig) -> None:
        self._evaluators = [compile_expression(e, config.input_schema) for _, e in config.computed]
        self._condition = compile_expression(config.condition, config.computed_schema)
        self._keep = [config.computed_schema.names.index(name) for name in config.keep]
        self._schema = config.schema

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        columns = [f(data) for f in self._evaluators]
        mask = self._condition(Columns(columns, data.num_rows))
        rows = pa.RecordBatch.from_arrays([columns[i] for i in self._keep], schema=self._schema)
        return rows if mask.true_count == len(mask) else rows.filter(mask)


@dataclass(frozen=True, slots=True)
class Columns:
    """As much of a record batch as expressions use."""

    columns: list[Datum]
    num_rows: int

    def column(self, index: int) -> Datum:
        return self.columns[index]

    def filter(self, mask: pa.Array) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self.columns, names=[str(n) for n in range(len(self.columns))]).filter(mask)

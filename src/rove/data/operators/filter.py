"""Keeps the rows for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Expr


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """`keep` are the columns that the next step reads. Other columns are not copied."""

    condition: Expr
    input_schema: pa.Schema
    keep: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self.input_schema.field(name) for name in self.keep])

    def build(self) -> FilterLogic:
        return FilterLogic(self)


class FilterLogic:
    """One evaluation and one `filter` call for each batch. A batch that loses no row is not copied."""

    def __init__(self, config: FilterConfig) -> None:
        self._condition = compile_expression(config.condition, config.input_schema)
        names = config.input_schema.names
        self._keep = None if list(config.keep) == names else [names.index(name) for name in config.keep]

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        mask = self._condition(data)
        if self._keep is not None:
            data = data.select(self._keep)
        return data if mask.true_count == len(mask) else data.filter(mask)

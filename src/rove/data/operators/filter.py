"""Keeps the rows for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Expr


@dataclass(frozen=True, slots=True)
class FilterConfig:
    condition: Expr
    schema: pa.Schema

    def build(self) -> FilterLogic:
        return FilterLogic(self)


class FilterLogic:
    """One evaluation and one `filter` a batch; a batch that loses no row is passed on as it is."""

    def __init__(self, config: FilterConfig) -> None:
        self._condition = compile_expression(config.condition, config.schema)

    def apply(self, data: pa.RecordBatch) -> pa.RecordBatch:
        mask = self._condition(data)
        if mask.true_count == data.num_rows:
            return data
        return data.filter(mask)

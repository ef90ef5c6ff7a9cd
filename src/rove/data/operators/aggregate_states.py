"""Aggregate states as rows: lifts rows to states, merges states, finishes results.

Law: lifted rows, partial results and merged results have one schema, keys and then states, so one merge serves all.
Merging is one hash aggregation, in one thread and in input order, so its result depends on its input only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.batch import one_batch
from rove.model.schema import BIGINT, DOUBLE
from rove.plan.aggregates import AggregateCall
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.tree import Datum, Evaluator
from rove.plan.operators import Named

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)
_TOTALS = {name: pc.get_function(name) for name in ("sum", "min", "max")}
SKIP_NULLS = pc.ScalarAggregateOptions(skip_nulls=True, min_count=1)


@dataclass(slots=True)
class States:
    """The states of a set of aggregates by key. `lifted` says that the input is states already (of a final
    aggregate)."""

    keys: tuple[Named, ...]
    aggregates: tuple[AggregateCall, ...]
    input_schema: pa.Schema
    lifted: bool = False
    schema: pa.Schema = field(init=False)
    groups: list[str] = field(init=False)
    _lifts: list[Evaluator] = field(init=False)
    _merges: list[tuple[str, str]] = field(init=False)
    _totals: list[pc.Function] = field(init=False)
    _moments: list[str] = field(init=False)
    _finishes: list[Evaluator] = field(init=False)
    _float_keys: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        columns = [s for a in self.aggregates for s in a.states]
        distinct = [s for s in columns if s.merge == "distinct"]
        fields = [(name, e.dtype) for name, e in self.keys] + [(s.name, s.dtype) for s in columns]
        self.schema = pa.schema(fields)
        # A value whose duplicates are removed is an additional key. States split by it still merge to the same result.
        self.groups = [name for name, _ in self.keys] + [s.name for s in distinct]
        self._merges = [(s.name, s.merge) for s in columns if s.merge in _TOTALS]
        self._totals = [_TOTALS[s.merge] for s in columns if s.merge in _TOTALS]
        self._moments = [s.name.removesuffix("__n") for s in columns if s.merge == "moments" and s.name.endswith("__n")]
        self._float_keys = [pt.is_floating(e.dtype) for _, e in self.keys]
        exprs = [e for _, e in self.keys]
        if self.lifted:
            self._lifts = [compile_expression(e, self.input_schema) for e in exprs]
            indices = [self.input_schema.get_field_index(s.name) for s in columns]
            self._lifts += [lambda batch, i=i: batch.column(i) for i in indices]  # type: ignore[misc]
        else:
            self._lifts = [compile_expression(e, self.input_schema) for e in (*exprs, *(s.lift for s in columns))]
        final = [a for a in self.aggregates if not a.final_refusal]
        self._finishes = [compile_expression(a.finish_expression(), self.schema) for a in final]

    def lift(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """Every row as a state. A state that is just a column is not copied."""
        columns = [f(data) for f in self._lifts]
        for i, is_float in enumerate(self._float_keys):
            if is_float:
                columns[i] = one_zero_one_nan(columns[i])
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def merge(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Merge any number of states to one row for each key. O(rows of the parts)."""
        if not any(part.num_rows for part in parts):
            return one_batch(self.schema.empty_table())
        if not self.groups and not self._moments:
            totals = zip(self.totals(parts), self.schema, strict=True)
            columns = [pa.repeat(t if t.type == f.type else t.cast(f.type), 1) for t, f in totals]
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)
        table = pa.Table.from_batches(parts, self.schema)
        if self._moments:
            return self._merge_with_moments(table)
        return self._grouped(table, self._merges)

    def finish(self, merged: pa.RecordBatch) -> list[pa.Array]:
        """The results, one column for each aggregate."""
        return [f(merged) for f in self._finishes]

    @property
    def are_sums(self) -> bool:
        """Whether the states of a window are one row of sums of 64 bits."""
        sums = [name for name, merge in self._merges if merge == "sum"]
        return sums == self.schema.names and all(f.type in (BIGINT, DOUBLE) for f in self.schema)

    def totals(self, parts: Sequence[pa.RecordBatch]) -> list[pa.Scalar]:
        """Merge without keys: one scalar aggregation for each state."""
        return [
            total.call([pa.chunked_array([part.column(i) for part in parts])], SKIP_NULLS)
            for i, total in enumerate(self._totals)
        ]

    def ordered(self, states: Rows) -> Rows:
        """The states sorted by key, so that output does not depend on the order of arrival."""
        if not self.groups or states.num_rows < 2:
            return states
        return states.sort_by([(g, "ascending") for g in self.groups])

    def _grouped(self, table: pa.Table, merges: list[tuple[str, str]]) -> pa.RecordBatch:
        result = pa.TableGroupBy(table, self.groups, use_threads=False).aggregate(merges)
        # Arrow names its results `column_function`, and may widen decimals.
        names = {f"{column}_{function}": column for column, function in merges}
        columns = {names.get(n, n): result.column(i) for i, n in enumerate(result.column_names)}
        return one_batch(
            pa.Table.from_arrays([columns[n] for n in self.schema.names], names=self.schema.names).cast(self.schema)
        )

    def _merge_with_moments(self, table: pa.Table) -> pa.RecordBatch:
        """Two passes: first the means of the groups, then the squared distances from them."""
        table = self.ordered(table)
        weights = [(f"{m}__n", "sum") for m in self._moments] + [(f"{m}__w", "sum") for m in self._moments]
        weighted = table
        for m in self._moments:
            product = pc.multiply(table[f"{m}__n"], table[f"{m}__mean"])
            weighted = weighted.append_column(f"{m}__w", product)
        totals = pa.TableGroupBy(weighted, self.groups, use_threads=False).aggregate([*weights, ([], "count_all")])
        totals = self.ordered(totals)  # sorted, because the rows' groups are sorted and the hash table's order differs
        ends = pc.cumulative_sum(totals["count_all"].combine_chunks()).cast(pa.int32())
        means: dict[str, pa.Array] = {}
        for m in self._moments:
            count = totals[f"{m}__n_sum"].combine_chunks()
            mean = pc.divide(totals[f"{m}__w_sum"].combine_chunks(), pc.if_else(pc.equal(count, 0.0), 1.0, count))
            means[m] = mean
            spread = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, mean))
            distance = pc.subtract(table[f"{m}__mean"], spread)
            weight = table[f"{m}__n"]
            # Without rows the distance is 0; infinity times zero would be NaN.
            squares = pc.if_else(pc.equal(weight, 0.0), 0.0, pc.multiply(weight, pc.multiply(distance, distance)))
            index = table.schema.get_field_index(f"{m}__m2")
            table = table.set_column(index, f"{m}__m2", pc.add(table[f"{m}__m2"], squares))
        sums = [(f"{m}__{part}", "sum") for m in self._moments for part in ("n", "mean", "m2")]
        merged = self.ordered(self._grouped(table, [*self._merges, *sums]))
        for m in self._moments:
            index = merged.schema.get_field_index(f"{m}__mean")
            merged = merged.set_column(index, self.schema.field(index), means[m])
        return merged


def one_zero_one_nan(values: Datum) -> Datum:
    """Normalize fractions for use as keys: Spark has one zero and one NaN."""
    nan = pa.scalar(float("nan"), values.type)
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, pa.scalar(0.0, values.type)))

"""Scan: every row with the running aggregates of its key, in event-time order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.data.operators.aggregate_states import States
from rove.data.operators.ordered import OrderedLogic, group_numbers
from rove.data.operators.segments import running
from rove.model.batch import one_batch
from rove.model.ids import Origin
from rove.plan.operators import Scan


@dataclass(frozen=True, slots=True)
class ScanConfig:
    plan: Scan

    def build(self, origin: Origin) -> ScanLogic:
        return ScanLogic(self.plan, origin)


class ScanLogic(OrderedLogic):
    """Keeps one state for each key from pane to pane. A pane costs O(keys + rows · log(rows of a key))."""

    kind = "scan"

    def _advance(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        lifted = self._states.lift(rows)
        both = one_batch(pa.Table.from_batches([self._carried, lifted], self._states.schema))
        key_count = len(self._plan.keys)
        groups = group_numbers(both.columns[:key_count], both.num_rows)
        order = pc.sort_indices(groups)  # a stable sort: a key's state comes first, then its rows in event-time order
        states = both.take(order)
        sorted_groups = groups.take(order)
        folded = running(states.columns[key_count:], sorted_groups, folding(self._states))
        totals = pa.RecordBatch.from_arrays([*states.columns[:key_count], *folded], schema=self._states.schema)
        self._carried = totals.filter(_last_of_group(sorted_groups))
        back = pc.sort_indices(order).slice(self._carried_rows(both, lifted))
        results = self._states.finish(totals.take(back))
        return pa.RecordBatch.from_arrays([*rows.columns, *results], schema=self._plan.schema)

    @staticmethod
    def _carried_rows(both: pa.RecordBatch, lifted: pa.RecordBatch) -> int:
        return int(both.num_rows - lifted.num_rows)


def _last_of_group(groups: pa.Array) -> pa.Array:
    changed = pc.not_equal(groups.slice(1), groups.slice(0, len(groups) - 1))
    return pa.concat_arrays([changed, pa.array([True])])


def folding(states: States) -> Callable[[list[pa.Array], list[pa.Array]], list[pa.Array]]:
    """A function that merges two states, for all rows at once."""
    columns = [s for a in states.aggregates for s in a.states]

    def fold(before: list[pa.Array], after: list[pa.Array]) -> list[pa.Array]:
        result: list[pa.Array] = []
        i = 0
        while i < len(columns):
            if columns[i].merge == "moments":
                result += _fold_moments(before[i : i + 3], after[i : i + 3])
                i += 3
                continue
            result.append(_FOLDS[columns[i].merge](before[i], after[i]))
            i += 1
        return result

    return fold


def _fold_sum(a: pa.Array, b: pa.Array) -> pa.Array:
    total = pc.add(a, b)
    return pc.coalesce(total if total.type == a.type else total.cast(a.type), a, b)


def _fold_max(a: pa.Array, b: pa.Array) -> pa.Array:
    if pt.is_boolean(a.type):
        return pc.coalesce(pc.or_(a, b), a, b)
    return pc.max_element_wise(a, b)


def _fold_min(a: pa.Array, b: pa.Array) -> pa.Array:
    if pt.is_boolean(a.type):
        return pc.coalesce(pc.and_(a, b), a, b)
    return pc.min_element_wise(a, b)


_FOLDS = {"sum": _fold_sum, "max": _fold_max, "min": _fold_min}


def _fold_moments(a: list[pa.Array], b: list[pa.Array]) -> list[pa.Array]:
    """Merge count, mean and squared distances of two groups. A group without rows changes nothing."""
    (na, mean_a, m2a), (nb, mean_b, m2b) = a, b
    n = pc.add(na, nb)
    share = pc.divide(nb, pc.if_else(pc.equal(n, 0.0), 1.0, n))
    distance = pc.subtract(mean_b, mean_a)
    mean = pc.add(mean_a, pc.multiply(distance, share))
    m2 = pc.add(pc.add(m2a, m2b), pc.multiply(pc.multiply(distance, distance), pc.multiply(na, share)))
    none_a, none_b = pc.equal(na, 0.0), pc.equal(nb, 0.0)
    both = [pc.if_else(none_a, x, both) for x, both in ((mean_b, mean), (m2b, m2))]
    return [n, *(pc.if_else(none_b, x, value) for x, value in zip((mean_a, m2a), both, strict=True))]

"""Running totals within groups of neighbouring rows, without a loop over rows.

Every step lets each row look twice as far back as the step before, within its group:

    step 1   a   ab   bc   cd        step 2   a   ab   abc   abcd

Law: log2(longest group) kernel steps over the column; the tree of additions depends on positions alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

Fold = Callable[[list[pa.Array], list[pa.Array]], list[pa.Array]]


def positions(groups: pa.Array) -> pa.Array:
    """Each row's place in its run of equal group numbers, from 0."""
    rows = pa.arange(0, len(groups))
    if not len(groups):
        return rows
    changed = pc.not_equal(groups.slice(1), groups.slice(0, len(groups) - 1))
    starts = pa.concat_arrays([pa.array([True]), changed])
    return pc.subtract(rows, pc.fill_null_forward(pc.if_else(starts, rows, None)))


def running(columns: list[pa.Array], groups: pa.Array, fold: Fold) -> list[pa.Array]:
    """Each row's columns merged with those of all rows before it in its group. Rows of a group are neighbours."""
    rows = len(groups)
    if not rows:
        return columns
    place = positions(groups)
    longest = pc.max(place).as_py()
    reach = 1
    while reach <= longest:
        before = [_shifted(c, reach) for c in columns]
        reaches = pc.greater_equal(place, pa.scalar(reach, pa.int64()))
        folded = fold(before, columns)
        columns = [pc.if_else(reaches, f, c) for f, c in zip(folded, columns, strict=True)]
        reach *= 2
    return columns


def _shifted(column: pa.Array, by: int) -> pa.Array:
    kept = column.slice(0, len(column) - by)
    return pa.concat_arrays([pa.nulls(by, column.type), kept])

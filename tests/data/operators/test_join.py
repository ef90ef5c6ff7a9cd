"""Which rows of two sides match."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rove.data.operators.join import matches

KEYS = st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, "x", "y", ""]))
ROWS = st.lists(KEYS, min_size=1, max_size=20)


def columns(rows: list[tuple[int | None, str | None]], keys: int) -> list[pa.Array]:
    return [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())][:keys]


@given(ROWS, ROWS, st.sampled_from([1, 2]))
def test_every_pair_of_rows_with_equal_keys_matches_by_the_left_row_and_then_the_right(
    left: list[tuple[int | None, str | None]], right: list[tuple[int | None, str | None]], keys: int
) -> None:
    left_rows, right_rows = matches(columns(left, keys), columns(right, keys))
    assert list(zip(left_rows.to_pylist(), right_rows.to_pylist(), strict=True)) == [
        (i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a[:keys] == b[:keys] and None not in a[:keys]
    ]

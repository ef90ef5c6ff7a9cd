"""`x % c = k` without a division gives what the division gives."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.model.schema import BIGINT, INT, SMALLINT, TINYINT
from rove.plan.expressions.arrow import compile_expression
from rove.plan.expressions.bind import bind
from rove.plan.expressions.remainders import RemainderTest, remainder_test
from rove.plan.expressions.tree import Column

COLUMN = pa.schema([("x", BIGINT)])


def divided(value: int, by: int) -> int:
    """The remainder, with the sign of the dividend."""
    return abs(value) % abs(by) * (1 if value >= 0 else -1)


@pytest.mark.parametrize("negated", [False, True])
def test_all_numbers_divisors_and_remainders_of_8_bits(negated: bool) -> None:
    numbers = pa.array([None, *range(-128, 128)], TINYINT)
    compare = pc.not_equal if negated else pc.equal
    for by in (*range(1, 128), -128, -127, -6, -1):
        remainders = pa.array([None, *(divided(x, by) for x in range(-128, 128))], SMALLINT)
        for rest in range(-abs(by) + 1, abs(by)):
            test = RemainderTest(Column(TINYINT, "x"), by, rest, negated)
            assert test.kernel()(numbers).equals(compare(remainders, pa.scalar(rest, SMALLINT))), (by, rest)


@given(st.data(), st.sampled_from([SMALLINT, INT, BIGINT]), st.booleans())
def test_wider_numbers_at_their_edges_and_between(data: st.DataObject, dtype: pa.DataType, negated: bool) -> None:
    smallest, greatest = -(2 ** (dtype.bit_width - 1)), 2 ** (dtype.bit_width - 1) - 1
    number = st.integers(smallest, greatest) | st.sampled_from([smallest, smallest + 1, -1, 0, 1, greatest])
    by = data.draw(number.filter(bool))
    rest = data.draw(st.just(0) | st.integers(-abs(by) + 1, abs(by) - 1))
    values = data.draw(st.lists(number, max_size=8))
    # Neighbours of numbers with this remainder, as near to both ends as they come.
    ends = [rest, by * (greatest // by) + rest, by * (smallest // by) + rest]
    values += [near + step for near in ends for step in (-abs(by), -1, 0, 1, abs(by))]
    values = [x for x in values if smallest <= x <= greatest]
    test = RemainderTest(Column(dtype, "x"), by, rest, negated)
    found = test.kernel()(pa.array(values, dtype)).to_pylist()
    assert found == [(divided(x, by) == rest) != negated for x in values]


@pytest.mark.parametrize("text", ["x % 123 = 0", "0 = x % 123", "mod(x, -12) <> 5", "x % 9223372036854775807 = 3"])
def test_a_comparison_with_a_remainder_is_seen_in_both_orders(text: str) -> None:
    assert remainder_test(bind(text, COLUMN)) is not None


@pytest.mark.parametrize(
    "text", ["x % 5 = 5", "x % x = 0", "x % 5 = x", "x % 5 > 0", "x / 5 = 0", "pmod(x, 5) = 0", "x % 2.0D = 0"]
)
def test_other_comparisons_are_not_taken_for_one(text: str) -> None:
    assert remainder_test(bind(text, COLUMN)) is None


@pytest.mark.parametrize("text", ["x % 5 = 5", "x % 123 = 0", "(x + 1) % 123 <> 1", "x % 3 = cast(null as bigint)"])
def test_the_compiled_condition_is_the_one_of_the_kernels(text: str) -> None:
    batch = pa.record_batch({"x": pa.array([*range(-300, 300), None, 2**62])})
    condition = bind(text, COLUMN)
    left, right = condition.args
    sides = [compile_expression(side, COLUMN)(batch) for side in (left, right)]
    kernel = pc.not_equal if condition.name == "ne" else pc.equal
    assert compile_expression(condition, COLUMN)(batch).equals(kernel(*sides))

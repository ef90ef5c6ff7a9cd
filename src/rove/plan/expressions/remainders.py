"""Compares the remainder by a constant with a constant, `x % 123 = 0`, without dividing.

A division costs ten times as much as a multiplication. Integers of a type wrap around, so an odd divisor has an
inverse: `x * inverse` is `x / divisor` if the divisor divides `x`. Multiplying by the inverse maps no two numbers to
the same one, so a number that the divisor does not divide never becomes a possible quotient. One comparison tells them
apart. An even divisor is an odd one times a power of two; the last bits of `x` tell whether the power divides it.

Law: the answer is that of `%` and `=` for every integer and null. `tests/plan/expressions/test_remainders.py` compares
all of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rove.plan.expressions.tree import Call, Datum, Expr, Literal
from rove.plan.expressions.types import is_integral

# Arrow's functions without the wrappers in Python. They wrap around.
_ADD, _MULTIPLY = pc.get_function("add").call, pc.get_function("multiply").call
_GREATER, _LESS_EQUAL = pc.get_function("greater").call, pc.get_function("less_equal").call


@dataclass(frozen=True, slots=True)
class RemainderTest:
    """Whether `value % divisor` is `remainder`, or with `negated` is not. The divisor's sign does not matter."""

    value: Expr
    divisor: int
    remainder: int
    negated: bool

    def kernel(self) -> Callable[[Datum], Datum]:
        """A function of the value's column."""
        dtype, divisor = self.value.dtype, abs(self.divisor)
        bits = dtype.bit_width
        smallest, greatest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        twos = (divisor & -divisor).bit_length() - 1  # how often two divides it
        inverse = pow(divisor >> twos, -1, 2**bits)
        # The possible quotients of `value - remainder`. A remainder has the sign of its dividend.
        low = 0 if self.remainder > 0 else -((self.remainder - smallest) // divisor)
        high = 0 if self.remainder < 0 else (greatest - self.remainder) // divisor
        # They are shifted to begin at the smallest number, so that one comparison is enough.
        shift = smallest - self.remainder * inverse - (low << twos)

        def constant(number: int) -> pa.Scalar:
            return pa.scalar((number - smallest) % 2**bits + smallest, dtype)

        factor, summand, last = constant(inverse), constant(shift), constant(smallest + ((high - low) << twos))
        within = _GREATER if self.negated else _LESS_EQUAL

        def odd(value: Datum) -> Datum:
            return within([_ADD([_MULTIPLY([value, factor]), summand]), last])

        if not twos:
            return odd
        rest, zero = constant(1 << (bits - twos)), constant(0)  # this factor keeps the last bits only
        same = pc.not_equal if self.negated else pc.equal
        both = pc.or_ if self.negated else pc.and_

        def even(value: Datum) -> Datum:
            quotient = _ADD([_MULTIPLY([value, factor]), summand])
            return both(within([quotient, last]), power_of_two(quotient))

        def power_of_two(value: Datum) -> Datum:
            return same(_MULTIPLY([value, rest]), zero)

        return power_of_two if divisor == 1 << twos and not self.remainder else even


def remainder_test(expr: Expr) -> RemainderTest | None:
    """The test that an expression is, if it is one."""
    match expr:
        case Call(
            name="eq" | "ne" as name,
            args=(Call(name="%", args=(value, divisor)), Literal(value=wanted))
            | (Literal(value=wanted), Call(name="%", args=(value, divisor))),
        ):
            pass
        case _:
            return None
    if isinstance(value, Literal) or not isinstance(divisor, Literal) or not is_integral(value.dtype):
        return None
    by, rest = divisor.value.as_py(), wanted.as_py()
    if not by or rest is None or abs(rest) >= abs(by):
        return None
    return RemainderTest(value, by, rest, negated=name == "ne")

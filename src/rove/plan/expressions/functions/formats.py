"""`date_format` and `from_unixtime` for patterns made of plain numbers.

Law: only pattern letters that print a zero-padded number, in the widths below. Names of days and months, and widths
with a special meaning in Java, are left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.schema import BIGINT, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from rove.plan.expressions.functions.casts import cast
from rove.plan.expressions.functions.civil import civil, days_of, padded, time_of_day, year_text
from rove.plan.expressions.functions.registry import arity, coerce, function
from rove.plan.expressions.functions.strings import known_text
from rove.plan.expressions.functions.times import moment
from rove.plan.expressions.tree import Call, Datum, Expr
from rove.plan.expressions.types import Refused

Piece = Callable[[tuple[pa.Array, pa.Array, pa.Array], pa.Array], Datum]
_TOKENS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
DEFAULT = "yyyy-MM-dd HH:mm:ss"


def _of_clock(unit: int, size: int) -> Piece:
    return lambda _, time: padded(pc.remainder(pc.divide(time, unit), pa.scalar(size, BIGINT)))


def _fraction(digits: int) -> Piece:
    step = 10 ** (6 - digits)
    return lambda _, time: padded(pc.divide(pc.remainder(time, pa.scalar(10**6, BIGINT)), step), digits)


_PIECES: dict[str, Piece] = {
    "yyyy": lambda ymd, _: year_text(ymd[0]),
    "MM": lambda ymd, _: padded(ymd[1]),
    "dd": lambda ymd, _: padded(ymd[2]),
    "HH": _of_clock(3_600_000_000, 24),
    "mm": _of_clock(60_000_000, 60),
    "ss": _of_clock(1_000_000, 60),
    **{"S" * n: _fraction(n) for n in range(1, 7)},
}


def format_kernel(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """The kernel of a pattern: its pieces joined together."""
    pieces: list[str | Piece] = []
    place = 0
    while place < len(pattern):
        found = _TOKENS.match(pattern, place)
        if not found:
            raise Refused(f"the format `{pattern}` is left to Spark", STRING)
        place, token = found.end(), found[0]
        if found[1] is not None:
            pieces.append(found[1].replace("''", "'") or "'")
        elif found[2] is None:
            if token in "[]{}#":
                raise Refused(f"`{token}` in a format is left to Spark", STRING)
            pieces.append(token)
        elif token in _PIECES:
            pieces.append(_PIECES[token])
        else:
            raise Refused(f"`{token}` in a format is left to Spark", STRING)

    def kernel(x: pa.Array) -> pa.Array:
        ymd, time = civil(days_of(x)), time_of_day(x)
        texts = [piece if isinstance(piece, str) else piece(ymd, time) for piece in pieces]
        joined = pc.binary_join_element_wise(*texts, "") if texts else pa.scalar("")
        return pc.if_else(pc.is_valid(x), joined, pa.scalar(None, STRING))

    return kernel


@function("date_format")
def date_format(args: tuple[Expr, ...]) -> Expr:
    arity("date_format", args, 2)
    kernel = format_kernel(known_text(args[1], "the format"))
    value = moment(args[0], "date_format")
    value = cast(value, TIMESTAMP) if value.dtype in (DATE, TIMESTAMP_NTZ) else value
    return Call(STRING, "date_format", (value, args[1]), lambda x, _: kernel(x))


@function("from_unixtime")
def from_unixtime(args: tuple[Expr, ...]) -> Expr:
    arity("from_unixtime", args, 1, 2)
    kernel = format_kernel(known_text(args[1], "the format") if len(args) == 2 else DEFAULT)
    seconds = coerce(args[0], BIGINT)

    def run(x: pa.Array, *_: Datum) -> pa.Array:
        return kernel(pc.cast(pc.multiply(x, 1_000_000), TIMESTAMP))  # wraps around on overflow, as in Spark

    return Call(STRING, "from_unixtime", (seconds, *args[1:]), run)

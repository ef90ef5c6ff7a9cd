"""Intervals, and arithmetic on dates and timestamps.

Law: a day-time interval is a number of microseconds. A year-month interval is a number of months, and exists only
beside a date or a timestamp. A date plus whole days is a date; plus hours it is a timestamp. A literal keeps the fields
that it was written in, because they are a part of its type in Spark.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rove.model.errors import ArithmeticFault, ParseError, TypeMismatch
from rove.model.schema import (
    BIGINT,
    DATE,
    DAY_TIME,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    YEAR_MONTH,
    type_name,
)
from rove.plan.expressions.functions.casts import cast
from rove.plan.expressions.functions.civil import (
    DAY_US,
    add_months,
    civil,
    days_in_month,
    days_of,
    floor_divide,
    floor_modulo,
    micros,
    time_of_day,
)
from rove.plan.expressions.functions.registry import arity, coerce, constant, function
from rove.plan.expressions.functions.strings import known_text
from rove.plan.expressions.functions.times import MOMENTS, moment
from rove.plan.expressions.tree import Call, Datum, Expr, Literal
from rove.plan.expressions.types import Refused

UNIT_US = {
    "week": 7 * DAY_US,
    "day": DAY_US,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
UNIT_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_ORDER = ("day", "hour", "minute", "second")
_WHOLE = ("day", "second")


@function("interval")
def interval(args: tuple[Expr, ...]) -> Expr:
    """A literal from its text and unit, as in `INTERVAL '1 02:03:04.5' DAY TO SECOND`."""
    written = str(constant(args[0], "an interval")).strip()
    unit = str(constant(args[1], "an interval's unit"))
    first, _, last = unit.partition(" to ")
    first, last = first.removesuffix("s"), last.removesuffix("s")
    if last:
        if first == "year":
            years = re.fullmatch(r"([+-]?)(\d+)-(\d+)", written, re.ASCII)
            if not years or int(years[3]) > 11:
                raise ParseError(f"`{written}` is not an interval of years and months, as in '1-2'")
            count = (int(years[2]) * 12 + int(years[3])) * (-1 if years[1] == "-" else 1)
            return _months(count, f"'{written}' YEAR TO MONTH")
        return _span(written, first, last)
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", written, re.ASCII) or (first != "second" and "." in written):
        raise Refused(f"the interval `{written}` {unit} is left to Spark")
    if first in UNIT_MONTHS and first != "quarter":
        return _months(int(written) * UNIT_MONTHS[first], f"'{int(written)}' {first.upper()}")
    if first not in UNIT_US:
        raise Refused(f"intervals in {unit} are left to Spark")
    size = Decimal(written) * UNIT_US[first]
    if size != int(size):
        raise Refused("intervals finer than a microsecond are left to Spark")
    field = {"week": "day", "millisecond": "second", "microsecond": "second"}.get(first, first)
    return _duration(int(size), field, field)


def _span(written: str, first: str, last: str) -> Expr:
    """Fields from `first` to `last`: days before a space, then hours, minutes and seconds with colons."""
    if first not in _ORDER or last not in _ORDER or _ORDER.index(first) >= _ORDER.index(last):
        raise Refused(f"intervals from {first} to {last} are left to Spark")
    fields = _ORDER[_ORDER.index(first) : _ORDER.index(last) + 1]
    later = [r"(\d{1,2}(?:\.\d{1,6})?)" if f == "second" else r"(\d{1,2})" for f in fields[1:]]
    body = r"(\d+)" + (" " if first == "day" else ":") + ":".join(later)
    found = re.fullmatch(rf"([+-]?){body}", written, re.ASCII)
    if not found:
        raise Refused(f"the interval `{written}` is left to Spark")
    values = [Decimal(v) for v in found.groups()[1:]]
    limits = {"hour": 24, "minute": 60, "second": 60}
    if any(v >= limits.get(f, 10**9) for f, v in zip(fields[1:], values[1:], strict=True)):
        raise Refused(f"the interval `{written}` has a field out of range; Spark raises")
    size = sum(v * UNIT_US[f] for f, v in zip(fields, values, strict=True))
    return _duration(int(size) * (-1 if found[1] == "-" else 1), first, last)


def _duration(size: int, first: str, last: str) -> Literal:
    """A literal in the fields from `first` to `last`."""
    if not -(2**63) <= size < 2**63:
        raise ParseError("an interval is longer than 106751991 days")
    text = None if (first, last) == _WHOLE else f"INTERVAL '{_in_fields(size, first, last)}' {_span_name(first, last)}"
    return Literal(DAY_TIME, pa.scalar(size, DAY_TIME), text)


def _span_name(first: str, last: str) -> str:
    return first.upper() if first == last else f"{first.upper()} TO {last.upper()}"


def _in_fields(size: int, first: str, last: str) -> str:
    """An interval as its literal is written: `-1 02:03` from day to minute. The first field holds what is larger."""
    text, left = "", abs(size)
    for field in _ORDER[_ORDER.index(first) : _ORDER.index(last) + 1]:
        count, left = divmod(left, UNIT_US[field])
        text += str(count) if not text else f" {count:02}" if field == "hour" and first == "day" else f":{count:02}"
    return f"{'-' if size < 0 else ''}{text}" + (f".{left:06}" if left else "")


def _fields(literal: Literal) -> tuple[str, str]:
    """The first and the last field of a day-time literal."""
    if literal.text is None:
        return _WHOLE
    first, _, last = literal.text.rpartition("' ")[2].lower().partition(" to ")
    return first, last or first


def in_some_fields(expr: Expr) -> bool:
    """Whether the value is an interval in other fields than day to second, or holds one. At the edge all day-time
    intervals have one type. Spark has a type for each choice of fields, and prints them differently."""
    if not _holds_intervals(expr.dtype):
        return False
    match expr:
        case Literal():
            return expr.text is not None or not expr.value.is_valid
        case Call(dtype=dtype, args=args):
            within = [in_some_fields(a) for a in args if _holds_intervals(a.dtype)]
            return any(within) if pt.is_nested(dtype) else bool(within) and all(within)
    return False


def _holds_intervals(dtype: pa.DataType) -> bool:
    if pt.is_nested(dtype):
        return any(_holds_intervals(dtype.field(n).type) for n in range(dtype.num_fields))
    return bool(dtype == DAY_TIME)


def _months(count: int, written: str) -> Literal:
    """As it was written: an interval of years has another type in Spark than one of months."""
    return Literal(YEAR_MONTH, pa.scalar(count, BIGINT), f"INTERVAL {written}")


def whole_days(expr: Expr) -> bool:
    """Whether an interval was written in days only."""
    return isinstance(expr, Literal) and expr.dtype == DAY_TIME and _fields(expr) == ("day", "day")


@function("temporal_+")
def plus(args: tuple[Expr, ...]) -> Expr:
    a, b = args
    if a.dtype not in (DATE, *MOMENTS) and b.dtype in (DATE, *MOMENTS):
        a, b = b, a
    return _moved(a, b, 1)


@function("temporal_-")
def minus(args: tuple[Expr, ...]) -> Expr:
    a, b = args
    if a.dtype == b.dtype == DATE:
        raise Refused("only Spark has intervals of whole days; datediff(…) counts them at the edge")
    if a.dtype in (DATE, *MOMENTS) and b.dtype in (DATE, *MOMENTS):
        kind = a.dtype if a.dtype != DATE else b.dtype
        if {a.dtype, b.dtype} == set(MOMENTS):
            raise Refused("timestamp and timestamp_ntz are combined by Spark's session rules", DAY_TIME)
        sides = (coerce(a, kind), coerce(b, kind))
        kernel = lambda x, y: pc.cast(pc.subtract_checked(micros(x), micros(y)), DAY_TIME)  # noqa: E731
        return Call(DAY_TIME, "-", sides, kernel, fallible=True, template="({0} - {1})")
    return _moved(a, b, -1)


def _moved(a: Expr, b: Expr, sign: int) -> Expr:
    symbol = "+" if sign > 0 else "-"
    if a.dtype == VOID or b.dtype == VOID:
        raise Refused(f"`{symbol}` of untyped nulls is folded by Spark")
    if a.dtype == DATE and b.dtype in (INT, SMALLINT, TINYINT):
        return _date_moved(a, coerce(b, INT), sign, f"({{0}} {symbol} {{1}})")
    if isinstance(b, Literal) and b.dtype == YEAR_MONTH and a.dtype in (DATE, *MOMENTS):
        return _months_moved(a, b, sign, f"({{0}} {symbol} {b.text})")
    if b.dtype == DAY_TIME and a.dtype in (*MOMENTS, DAY_TIME):
        return _micros_moved(a, b, sign)
    if a.dtype == DATE and b.dtype == DAY_TIME:
        if not isinstance(b, Literal):
            raise Refused("a date moved by an interval that is not a literal is left to Spark")
        if whole_days(b):
            count = b.value.value // DAY_US
            return _date_moved(a, Literal(INT, pa.scalar(count, INT)), sign, f"({{0}} {symbol} {{1}})")
        return _micros_moved(cast(a, TIMESTAMP), b, sign)
    if STRING in (a.dtype, b.dtype) or YEAR_MONTH in (a.dtype, b.dtype):
        raise Refused(f"`{symbol}` of {type_name(a.dtype)} and {type_name(b.dtype)} is left to Spark")
    raise TypeMismatch(f"`{symbol}` does not take {type_name(a.dtype)} and {type_name(b.dtype)}")


def _micros_moved(a: Expr, b: Expr, sign: int) -> Expr:
    if a.dtype == DAY_TIME and isinstance(a, Literal) and isinstance(b, Literal):
        (first, last), (also_first, also_last) = _fields(a), _fields(b)
        hull = min(first, also_first, key=_ORDER.index), max(last, also_last, key=_ORDER.index)
        return _duration(a.value.value + sign * b.value.value, *hull)
    move = pc.add_checked if sign > 0 else pc.subtract_checked
    symbol = "+" if sign > 0 else "-"

    def kernel(x: Datum, y: Datum) -> Datum:
        return pc.cast(move(pc.cast(x, BIGINT), pc.cast(y, BIGINT)), a.dtype)

    return Call(a.dtype, symbol, (a, b), kernel, fallible=True, template=f"({{0}} {symbol} {{1}})")


def _date_moved(value: Expr, days: Expr, sign: int, template: str | None = None) -> Expr:
    """Days wrap around in 32 bits, as in Spark."""
    move = pc.add if sign > 0 else pc.subtract
    name = "date_add" if sign > 0 else "date_sub"
    return Call(DATE, name, (value, days), lambda x, n: pc.cast(move(pc.cast(x, INT), n), DATE), template=template)


def _months_moved(value: Expr, by: Literal, sign: int, template: str) -> Expr:
    count = pa.scalar(sign * by.value.as_py(), BIGINT)
    return Call(value.dtype, f"+ {count} months", (value,), lambda x: shift_months(x, count), True, template=template)


def shift_months(x: pa.Array, months: Datum) -> pa.Array:
    """Dates or timestamps moved by some months. The time of day stays."""
    days = add_months(days_of(x), months)
    if pt.is_date(x.type):
        return pc.cast(pc.cast(days, INT), DATE)
    return pc.cast(pc.add_checked(pc.multiply_checked(days, DAY_US), time_of_day(x)), x.type)


def _date_shift(name: str, sign: int) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 2)
        if args[1].dtype not in (INT, SMALLINT, TINYINT, VOID):
            if args[1].dtype == STRING or pt.is_duration(args[1].dtype):
                raise Refused(f"{name} by {type_name(args[1].dtype)} is left to Spark", DATE)
            raise TypeMismatch(f"{name} takes an int number of days, got {type_name(args[1].dtype)}")
        return _date_moved(coerce(moment(args[0], name), DATE), coerce(args[1], INT), sign)


_date_shift("date_add", 1)
_date_shift("dateadd", 1)
_date_shift("date_sub", -1)


@function("add_months")
def add_months_rule(args: tuple[Expr, ...]) -> Expr:
    arity("add_months", args, 2)
    value, count = coerce(moment(args[0], "add_months"), DATE), coerce(args[1], INT)
    return Call(DATE, "add_months", (value, count), lambda x, n: shift_months(_whole(x, n), pc.cast(n, BIGINT)), True)


def _whole(x: Datum, other: Datum) -> Datum:
    return pa.repeat(x, len(other)) if isinstance(x, pa.Scalar) else x


@function("datediff", "date_diff")
def datediff(args: tuple[Expr, ...]) -> Expr:
    arity("datediff", args, 2)
    sides = tuple(coerce(moment(a, "datediff"), DATE) for a in args)
    return Call(INT, "datediff", sides, lambda x, y: pc.subtract(pc.cast(x, INT), pc.cast(y, INT)))


def _unit(expr: Expr) -> str:
    return known_text(expr, "a unit of time").lower().removesuffix("s").replace("dayofyear", "day")


@function("timestampadd")
def timestampadd(args: tuple[Expr, ...]) -> Expr:
    arity("timestampadd", args, 3)
    unit = _unit(args[0])
    count, value = coerce(args[1], BIGINT), moment(args[2], "timestampadd")
    value = cast(value, TIMESTAMP) if value.dtype == DATE else value
    template = f"timestampadd({unit.upper()}, {{0}}, {{1}})"
    if unit not in UNIT_US and unit not in UNIT_MONTHS:
        raise Refused(f"timestampadd in {unit} is left to Spark", TIMESTAMP)

    def kernel(n: Datum, x: Datum) -> Datum:
        if step := UNIT_US.get(unit):
            return pc.cast(pc.add_checked(pc.cast(x, BIGINT), pc.multiply_checked(n, step)), value.dtype)
        months = pc.multiply_checked(n, UNIT_MONTHS[unit])
        if pc.any(pc.greater(pc.abs(_whole(months, x)), 2**31 - 1)).as_py():
            raise ArithmeticFault("the result of timestampadd is past the end of the calendar")
        return shift_months(_whole(x, n), months)

    return Call(value.dtype, f"timestampadd {unit}", (count, value), kernel, True, template=template)


@function("timestampdiff")
def timestampdiff(args: tuple[Expr, ...]) -> Expr:
    """Whole units from the first moment to the second, rounded towards zero."""
    arity("timestampdiff", args, 3)
    unit = _unit(args[0])
    sides = tuple(cast(m, TIMESTAMP) if m.dtype == DATE else m for m in (moment(a, "timestampdiff") for a in args[1:]))
    if unit not in UNIT_US and unit not in UNIT_MONTHS:
        raise Refused(f"timestampdiff in {unit} is left to Spark", BIGINT)

    def kernel(x: Datum, y: Datum) -> Datum:
        if step := UNIT_US.get(unit):
            return _steps_apart(pc.cast(x, BIGINT), pc.cast(y, BIGINT), step)
        return pc.divide(_months_apart(_whole(x, y), _whole(y, x)), UNIT_MONTHS[unit])

    template = f"timestampdiff({unit.upper()}, {{0}}, {{1}})"
    return Call(BIGINT, f"timestampdiff {unit}", sides, kernel, unit in UNIT_US, template=template)


def _steps_apart(x: Datum, y: Datum, step: int) -> Datum:
    """Whole steps from x to y. The difference in microseconds is not computed, because it may not fit 64 bits."""
    steps = pc.subtract_checked(floor_divide(y, step), floor_divide(x, step))
    rest = pc.subtract(floor_modulo(y, step), floor_modulo(x, step))
    short = pc.and_(pc.greater(steps, 0), pc.less(rest, 0))
    over = pc.and_(pc.less(steps, 0), pc.greater(rest, 0))
    return pc.add(pc.subtract(steps, pc.cast(short, BIGINT)), pc.cast(over, BIGINT))


def _months_apart(x: pa.Array, y: pa.Array) -> pa.Array:
    """Whole months from x to y."""
    start, end, clock_x, clock_y = days_of(x), days_of(y), time_of_day(x), time_of_day(y)
    # As in Java: an incomplete last day is removed first, then months are counted by their days.
    short = pc.and_(pc.greater(end, start), pc.less(clock_y, clock_x))
    over = pc.and_(pc.less(end, start), pc.greater(clock_y, clock_x))
    end = pc.add(pc.subtract(end, pc.cast(short, BIGINT)), pc.cast(over, BIGINT))
    return pc.divide(pc.subtract(_packed(end), _packed(start)), 32)


def _packed(days: pa.Array) -> pa.Array:
    """Months since the year 0 in the high bits, the day of the month in the low five."""
    year, month, day = civil(days)
    return pc.add(pc.multiply(pc.add(pc.multiply(year, 12), month), 32), day)


@function("months_between")
def months_between(args: tuple[Expr, ...]) -> Expr:
    """Whole months if both days are equal or both are the last of their month; else with 31 days to a month, rounded to
    8 places."""
    arity("months_between", args, 2, 3)
    rounds = constant(args[2], "the rounding of months_between") if len(args) == 3 else True
    sides = tuple(cast(m, TIMESTAMP) if m.dtype == DATE else m for m in (moment(a, "months_between") for a in args[:2]))

    def kernel(x: Datum, y: Datum, *_: Datum) -> Datum:
        x, y = _whole(x, y), _whole(y, x)
        (year_x, month_x, day_x), (year_y, month_y, day_y) = civil(days_of(x)), civil(days_of(y))
        months = pc.add(pc.multiply(pc.subtract(year_x, year_y), 12), pc.subtract(month_x, month_y))
        last = pc.and_(pc.equal(day_x, days_in_month(year_x, month_x)), pc.equal(day_y, days_in_month(year_y, month_y)))
        seconds = pc.subtract(_second_of_day(x), _second_of_day(y))
        apart = pc.add(pc.multiply(pc.subtract(day_x, day_y), 86_400), seconds)
        exact = pc.add(pc.cast(months, DOUBLE), pc.divide(pc.cast(apart, DOUBLE), 31.0 * 86_400.0))
        whole = pc.or_(pc.equal(day_x, day_y), last)
        for side in (x, y):  # Spark computes the midnight before, which does not exist for the very first day
            pc.multiply_checked(days_of(side).filter(pc.invert(whole), null_selection_behavior="drop"), DAY_US)
        if rounds:
            exact = pc.divide(pc.floor(pc.add(pc.multiply(exact, 1e8), 0.5)), 1e8)
        return pc.if_else(whole, pc.cast(months, DOUBLE), exact)

    return Call(DOUBLE, "months_between", (*sides, *args[2:]), kernel, fallible=True)


def _second_of_day(x: pa.Array) -> pa.Array:
    return pc.divide(floor_modulo(micros(x), DAY_US), 1_000_000)

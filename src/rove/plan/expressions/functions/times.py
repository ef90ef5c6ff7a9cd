"""Parts of dates and timestamps, truncation, and counting from 1970. The session's time zone is UTC.

Law: the calendar is the proleptic Gregorian one, also in years that Python's calendar does not reach.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import ArithmeticFault, TypeMismatch
from rove.model.schema import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID, type_name
from rove.plan.expressions.functions.casts import cast
from rove.plan.expressions.functions.civil import (
    DAY_US,
    as_date,
    civil,
    days_from_civil,
    days_in_month,
    days_of,
    floor_divide,
    floor_modulo,
    micros,
    time_of_day,
)
from rove.plan.expressions.functions.masks import any_true, as_array
from rove.plan.expressions.functions.registry import arity, coerce, function, simple
from rove.plan.expressions.functions.strings import known_text
from rove.plan.expressions.tree import Call, Datum, Expr, literal
from rove.plan.expressions.types import Refused, is_integral

Kernel = Callable[..., Datum]
MOMENTS = (TIMESTAMP, TIMESTAMP_NTZ)
SECONDS_TYPE = pa.decimal128(8, 6)
_MILLIONTH = pa.scalar("0.000001").cast(pa.decimal128(7, 6))


def moment(expr: Expr, what: str) -> Expr:
    """A date or a timestamp. Spark would cast text implicitly; at the edge the cast must be written."""
    if expr.dtype in (DATE, *MOMENTS):
        return expr
    if expr.dtype == VOID:
        return literal(None, TIMESTAMP)
    if expr.dtype == STRING:
        raise Refused(f"{what} of a string is left to Spark; cast it")
    raise TypeMismatch(f"{what} needs a date or a timestamp, got {type_name(expr.dtype)}")


def _int(x: Datum) -> Datum:
    return pc.cast(x, INT)


def _weekday(days: Datum) -> Datum:
    """0 for Monday; the first of January 1970 was a Thursday."""
    return floor_modulo(pc.add(days, 3), 7)


def _first_of_year(days: Datum) -> Datum:
    year, _, _ = civil(days)
    return _start(year, 1)


def _start(year: Datum, month: Datum | int) -> Datum:
    one = pa.scalar(1, BIGINT)
    months = pc.if_else(pc.is_valid(year), one, one) if isinstance(month, int) else month
    return days_from_civil(year, months, one)


def _iso_week(days: Datum) -> tuple[Datum, Datum]:
    """The ISO week and its year, which are those of the week's Thursday."""
    thursday = pc.add(pc.subtract(days, _weekday(days)), 3)
    year, _, _ = civil(thursday)
    return pc.add(pc.divide(pc.subtract(thursday, _start(year, 1)), 7), 1), year


_OF_DAYS: dict[str, Callable[[Datum], Datum]] = {
    "year": lambda d: civil(d)[0],
    "quarter": lambda d: pc.add(pc.divide(pc.subtract(civil(d)[1], 1), 3), 1),
    "month": lambda d: civil(d)[1],
    "day": lambda d: civil(d)[2],
    "dayofweek": lambda d: pc.add(floor_modulo(pc.add(d, 4), 7), 1),
    "weekday": _weekday,
    "dayofweek_iso": lambda d: pc.add(_weekday(d), 1),
    "dayofyear": lambda d: pc.add(pc.subtract(d, _first_of_year(d)), 1),
    "weekofyear": lambda d: _iso_week(d)[0],
    "yearofweek": lambda d: _iso_week(d)[1],
}
_OF_TIME: dict[str, Callable[[Datum], Datum]] = {
    "hour": lambda t: pc.divide(t, 3_600_000_000),
    "minute": lambda t: pc.remainder(pc.divide(t, 60_000_000), pa.scalar(60, BIGINT)),
    "second": lambda t: pc.remainder(pc.divide(t, 1_000_000), pa.scalar(60, BIGINT)),
}


def _part(name: str, *aliases: str) -> None:
    @function(name, *aliases)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 1)
        if name in _OF_DAYS:
            kernel = _OF_DAYS[name]
            return Call(INT, name, (moment(args[0], name),), lambda x: _int(kernel(days_of(x))))
        of_time = _OF_TIME[name]
        value = moment(args[0], name)
        value = cast(value, TIMESTAMP) if value.dtype == DATE else value
        return Call(INT, name, (value,), lambda x: _int(of_time(time_of_day(x))))


_part("year")
_part("quarter")
_part("month")
_part("day", "dayofmonth")
_part("dayofweek")
_part("weekday")
_part("dayofyear")
_part("weekofyear")
_part("hour")
_part("minute")
_part("second")

_NAMES = {
    "dayname": (_weekday, pa.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])),
    "monthname": (
        lambda d: pc.subtract(civil(d)[1], 1),
        pa.array(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]),
    ),
}


def _naming(name: str) -> None:
    number, names = _NAMES[name]

    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 1)
        return Call(STRING, name, (moment(args[0], name),), lambda x: names.take(number(days_of(x))))


_naming("dayname")
_naming("monthname")

_FIELDS = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "dayofweek_iso"),
    **dict.fromkeys(("doy", "dayofyear"), "dayofyear"),
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("second", "s", "sec", "seconds", "secs"), "seconds"),
    "yearofweek": "yearofweek",
}


@function("extract", "date_part", "datepart")
def extract(args: tuple[Expr, ...]) -> Expr:
    """Seconds come with their fraction here, as a decimal."""
    arity("extract", args, 2)
    name = known_text(args[0], "the field of extract").lower()
    field = _FIELDS.get(name)
    if args[1].dtype not in (DATE, *MOMENTS) or field is None:
        raise Refused(f"extract of `{name}` from {type_name(args[1].dtype)} is left to Spark")
    template = f"extract({name} FROM {{0}})"
    if field in _OF_DAYS:
        of_days = _OF_DAYS[field]
        return Call(INT, f"extract {field}", args[1:], lambda x: _int(of_days(days_of(x))), template=template)
    value = cast(args[1], TIMESTAMP) if args[1].dtype == DATE else args[1]
    if field == "seconds":
        return Call(SECONDS_TYPE, "extract seconds", (value,), _seconds, template=template)
    of_time = _OF_TIME[field]
    return Call(INT, f"extract {field}", (value,), lambda x: _int(of_time(time_of_day(x))), template=template)


def _seconds(x: pa.Array) -> pa.Array:
    """Seconds with their fraction. Microseconds are already the unscaled digits of decimal(8,6)."""
    within = pc.remainder(time_of_day(x), pa.scalar(60_000_000, BIGINT))
    return pc.cast(pc.multiply(pc.cast(within, pa.decimal128(19, 0)), _MILLIONTH), SECONDS_TYPE)


_UNITS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
_FIXED = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": DAY_US,
}


def _floor_days(unit: str, days: Datum) -> Datum:
    if unit == "week":
        return pc.subtract(days, _weekday(days))
    year, month, _ = civil(days)
    if unit == "year":
        return _start(year, 1)
    if unit == "quarter":
        month = pc.add(pc.multiply(pc.divide(pc.subtract(month, 1), 3), 3), 1)
    return _start(year, month)


@function("date_trunc")
def date_trunc(args: tuple[Expr, ...]) -> Expr:
    arity("date_trunc", args, 2)
    name = known_text(args[0], "the unit of date_trunc").lower()
    unit = _UNITS.get(name, name)
    value = moment(args[1], "date_trunc")
    if value.dtype != TIMESTAMP:
        value = cast(value, TIMESTAMP)

    def kernel(_: Datum, x: Datum) -> Datum:
        if step := _FIXED.get(unit):
            return pc.cast(pc.multiply_checked(floor_divide(micros(x), step), step), TIMESTAMP)
        return pc.cast(pc.multiply_checked(_floor_days(unit, days_of(x)), DAY_US), TIMESTAMP)

    if unit not in (*_FIXED, "week", "month", "quarter", "year"):
        return _null_unasked(TIMESTAMP, "date_trunc", (args[0], value))
    return Call(TIMESTAMP, "date_trunc", (args[0], value), kernel, fallible=True)


def _null_unasked(dtype: pa.DataType, name: str, args: tuple[Expr, ...]) -> Expr:
    """Null for an unknown unit. As in Spark, the moment is not computed, so it cannot raise."""
    return Call(dtype, name, args, lambda batch, *_: pa.nulls(batch.num_rows, dtype), lazy=True)


@function("trunc")
def trunc(args: tuple[Expr, ...]) -> Expr:
    arity("trunc", args, 2)
    name = known_text(args[1], "the unit of trunc").lower()
    unit = _UNITS.get(name, name)
    value = coerce(moment(args[0], "trunc"), DATE)
    if unit not in ("week", "month", "quarter", "year"):
        return _null_unasked(DATE, "trunc", (value, args[1]))
    return Call(DATE, "trunc", (value, args[1]), lambda x, _: as_date(_floor_days(unit, days_of(x))))


def _last_day(x: Datum) -> Datum:
    year, month, _ = civil(days_of(x))
    return as_date(days_from_civil(year, month, days_in_month(year, month)))


def _on_date(name: str, result: pa.DataType, kernel: Kernel) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 1)
        return Call(result, name, (coerce(moment(args[0], name), DATE),), kernel)


_on_date("last_day", DATE, _last_day)
simple("unix_date", (DATE,), INT, lambda x: pc.cast(x, INT))
simple("date_from_unix_date", (INT,), DATE, lambda x: pc.cast(x, DATE))

_WEEKDAYS = {
    name[:n]: i
    for i, name in enumerate(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
    for n in (2, 3, 9)
}


@function("next_day")
def next_day(args: tuple[Expr, ...]) -> Expr:
    arity("next_day", args, 2)
    name = known_text(args[1], "the weekday of next_day").strip().lower()
    if name not in _WEEKDAYS:
        raise Refused(f"`{name}` is not a weekday; Spark raises", DATE)
    value = coerce(moment(args[0], "next_day"), DATE)

    def kernel(x: Datum, _: Datum) -> Datum:
        days = days_of(x)
        ahead = floor_modulo(pc.subtract(pa.scalar(_WEEKDAYS[name] - 1, BIGINT), _weekday(days)), 7)
        return as_date(pc.add(days, pc.add(ahead, 1)))

    return Call(DATE, "next_day", (value, args[1]), kernel)


@function("make_date")
def make_date(args: tuple[Expr, ...]) -> Expr:
    arity("make_date", args, 3)
    return Call(DATE, "make_date", tuple(coerce(a, INT) for a in args), _make_date, fallible=True)


def _make_date(*parts: Datum) -> Datum:
    rows = next(len(p) for p in parts if isinstance(p, pa.Array))
    year, month, day = (pc.cast(as_array(p, rows), BIGINT) for p in parts)
    sound_month = pc.and_(pc.greater_equal(month, 1), pc.less_equal(month, 12))
    known_month = pc.if_else(sound_month, month, pa.scalar(None, BIGINT))
    sound = pc.and_(pc.greater_equal(day, 1), pc.less_equal(day, days_in_month(year, known_month)))
    all_there = pc.and_(pc.and_(pc.is_valid(year), pc.is_valid(month)), pc.is_valid(day))
    in_range = pc.and_(pc.greater_equal(year, -5_000_000), pc.less_equal(year, 5_000_000))
    if any_true(pc.and_(all_there, pc.invert(pc.fill_null(pc.and_(sound, in_range), False)))):
        raise ArithmeticFault("make_date got a day that does not exist")
    return as_date(days_from_civil(year, month, pc.if_else(all_there, day, pa.scalar(None, BIGINT))))


for _name, _step in (("unix_seconds", 10**6), ("unix_millis", 1000), ("unix_micros", 1)):
    simple(_name, (TIMESTAMP,), BIGINT, lambda x, step=_step: floor_divide(micros(x), step))
for _name, _step in (("timestamp_millis", 1000), ("timestamp_micros", 1)):
    simple(
        _name,
        (BIGINT,),
        TIMESTAMP,
        lambda x, step=_step: pc.cast(pc.multiply_checked(x, step), TIMESTAMP),
        _step > 1,
    )


@function("timestamp_seconds")
def timestamp_seconds(args: tuple[Expr, ...]) -> Expr:
    arity("timestamp_seconds", args, 1)
    if not is_integral(args[0].dtype):
        raise Refused("timestamp_seconds of fractions is left to Spark", TIMESTAMP)
    value = coerce(args[0], BIGINT)
    return Call(
        TIMESTAMP,
        "timestamp_seconds",
        (value,),
        lambda x: pc.cast(pc.multiply_checked(x, 10**6), TIMESTAMP),
        True,
    )


@function("unix_timestamp", "to_unix_timestamp")
def unix_timestamp(args: tuple[Expr, ...]) -> Expr:
    """Rounded towards 1970, unlike `unix_seconds`."""
    if len(args) != 1 or args[0].dtype not in (DATE, TIMESTAMP):
        raise Refused("unix_timestamp of other things than one timestamp is left to Spark", BIGINT)
    value = coerce(args[0], TIMESTAMP)
    return Call(BIGINT, "unix_timestamp", (value,), lambda x: pc.divide(micros(x), 10**6))


def _reading(name: str, dtype: pa.DataType, null_on_error: bool) -> None:
    @function(name)
    def rule(args: tuple[Expr, ...]) -> Expr:
        arity(name, args, 1, 2)
        if len(args) == 2:
            raise Refused(f"{name} with a format is left to Spark", dtype)
        return cast(args[0], dtype, null_on_error)


_reading("to_date", DATE, False)
_reading("try_to_date", DATE, True)
_reading("to_timestamp", TIMESTAMP, False)
_reading("try_to_timestamp", TIMESTAMP, True)

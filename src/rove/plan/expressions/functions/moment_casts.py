"""Casts of dates and timestamps from text and numbers, and back. The session's time zone is UTC.

Law: the grammar is Spark's. Two forms of a timestamp raise at the edge, because their meaning is not in the text: a
time without a date (Spark takes today) and a zone by region (Spark looks up the rules of the zone).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.errors import ArithmeticFault
from rove.model.schema import BIGINT, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ
from rove.plan.expressions.functions.civil import (
    DAY_US,
    NAIVE,
    as_date,
    civil,
    days_from_civil,
    days_in_month,
    days_of,
    floor_divide,
    micros,
    padded,
    time_of_day,
    year_text,
)
from rove.plan.expressions.functions.conversion import Conversion, between, only
from rove.plan.expressions.functions.text_casts import trim_all
from rove.plan.expressions.types import is_integral

SECOND_US = 1_000_000
_DAYS_MAX = 106_751_991  # what 64 bits of microseconds hold
_DATE = r"(?P<sign>[+-]?)(?P<y>[0-9]{4,%d})(?:-(?P<m>[0-9]{1,2})(?:-(?P<d>[0-9]{1,2})%s)?)?"
_SECONDS = r"(?::(?P<s>[0-9]{1,2})(?:\.(?P<f>[0-9]*))?(?P<z>[^0-9.:].*)?)?"
_TIME = rf"(?:[ T](?P<h>[0-9]{{1,2}})(?::(?P<mi>[0-9]{{1,2}}){_SECONDS})?)?"
DATE_TEXT = f"^{_DATE % (7, '(?:[ T](?s:.*))?')}$"
MOMENT_TEXT = f"^{_DATE % (6, _TIME)}$"
_COMPLETE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?$"
_TIME_ALONE = r"^T?[0-9]{1,2}:"


def _number(parts: pa.Array, name: str, missing: int) -> pa.Array:
    text = pc.struct_field(parts, name)
    return pc.if_else(pc.equal(text, ""), missing, pc.cast(pc.if_else(pc.equal(text, ""), "0", text), BIGINT))


def _days(parts: pa.Array) -> pa.Array:
    """Days since 1970 of the y, m, d groups, null where there is no such day."""
    year, month, day = (_number(parts, n, 1) for n in ("y", "m", "d"))
    year = pc.if_else(pc.equal(pc.struct_field(parts, "sign"), "-"), pc.negate(year), year)
    month = between(month, pa.scalar(1, BIGINT), pa.scalar(12, BIGINT))
    day = only(pc.and_(pc.greater_equal(day, 1), pc.less_equal(day, days_in_month(year, month))), day)
    return days_from_civil(year, month, day)


def _text_to_date(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(lambda x: as_date(_days(pc.extract_regex(trim_all(x), DATE_TEXT))), True)


def _text_to_moment(have: pa.DataType, want: pa.DataType) -> Conversion:
    def convert(x: pa.Array) -> pa.Array:
        if pc.match_substring_regex(x, _COMPLETE).true_count == len(x) - x.null_count:
            try:
                return pc.cast(micros(pc.cast(x, NAIVE)), want)  # Arrow reads the complete form as Spark does
            except pa.ArrowInvalid:
                pass  # a day or an hour that does not exist
        text = trim_all(x)
        if want == TIMESTAMP:
            _refuse(text, _TIME_ALONE, "a time without a date")
        parts = pc.extract_regex(text, MOMENT_TEXT)
        days = between(_days(parts), pa.scalar(-_DAYS_MAX - 1, BIGINT), pa.scalar(_DAYS_MAX, BIGINT))
        hour, minute, second = (_number(parts, n, 0) for n in ("h", "mi", "s"))
        sound = pc.and_(pc.and_(pc.less(hour, 24), pc.less(minute, 60)), pc.less(second, 60))
        seconds = pc.add(pc.add(pc.multiply(hour, 3600), pc.multiply(minute, 60)), second)
        fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(pc.struct_field(parts, "f"), 0, 6), 6, "0")
        zone = _zone_offsets(pc.struct_field(parts, "z"))
        if want == TIMESTAMP_NTZ:
            zone = pc.multiply(zone, 0)  # the zone is checked, then ignored
        within = pc.add(pc.multiply(pc.subtract(seconds, zone), SECOND_US), pc.cast(fraction, BIGINT))
        return pc.cast(_sum(only(sound, days), within), want)

    return Conversion(convert, True)


def _sum(days: pa.Array, within: pa.Array) -> pa.Array:
    """Days and microseconds added, null where the sum does not fit 64 bits. Negative days are added one day later."""
    early = pc.less(days, 0)
    product = pc.multiply(pc.add(days, pc.cast(early, BIGINT)), DAY_US)
    rest = pc.subtract(within, pc.multiply(pc.cast(early, BIGINT), DAY_US))
    room_above = pc.subtract(pa.scalar(2**63 - 1, BIGINT), pc.max_element_wise(product, pa.scalar(0, BIGINT)))
    room_below = pc.subtract(pa.scalar(-(2**63), BIGINT), pc.min_element_wise(product, pa.scalar(0, BIGINT)))
    fits = pc.and_(pc.less_equal(rest, room_above), pc.greater_equal(rest, room_below))
    return pc.add(only(fits, product), rest)


def _refuse(text: pa.Array, pattern: str, what: str) -> None:
    found = pc.match_substring_regex(text, pattern)
    if found.true_count:
        shown = text.filter(found)[0].as_py()
        raise ArithmeticFault(f"{shown!r} is {what}, which only Spark reads as a timestamp; cast it in Spark")


def _zone_offsets(zones: pa.Array) -> pa.Array:
    """Seconds east of Greenwich for each zone text, null where it is not a zone. Each distinct text is parsed once."""
    if not pc.not_equal(zones, "").true_count:
        return pc.if_else(pc.is_valid(zones), pa.scalar(0, BIGINT), None)
    known = pc.unique(zones)
    offsets = pa.array([None if z is None else zone_seconds(z) for z in known.to_pylist()], BIGINT)
    return offsets.take(pc.index_in(zones, value_set=known))


_OFFSET = re.compile(r"([+-])(\d{1,2})(?::(\d{1,2})(?::(\d\d))?|(\d\d)(\d\d)?)?", re.ASCII)


def zone_seconds(text: str) -> int | None:
    """The offset that a zone text names. A region raises."""
    zone = text.strip(" ")
    if zone in ("", "Z", "UTC", "GMT", "UT"):
        return 0
    prefixed = re.match(r"(UTC|GMT|UT)(?=[+-])", zone)
    offset = _OFFSET.fullmatch(zone[prefixed.end() :] if prefixed else zone)
    if offset is None:
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9~/._+-]+", zone):
            raise ArithmeticFault(
                f"{zone!r} is a zone by region, which only Spark reads in a timestamp; cast it in Spark"
            )
        return None
    sign, hours, *rest = offset.groups()
    minutes, seconds = int(rest[0] or rest[2] or 0), int(rest[1] or rest[3] or 0)
    total = int(hours) * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600 or (rest[2] and len(hours) == 1):
        return None
    return -total if sign == "-" else total


def date_text(days: pa.Array) -> pa.Array:
    """`2020-01-31`."""
    year, month, day = civil(days)
    return pc.binary_join_element_wise(year_text(year), padded(month), padded(day), "-")


def _date_to_text(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(lambda x: date_text(days_of(x)))


def _moment_to_text(have: pa.DataType, want: pa.DataType) -> Conversion:
    """`2020-01-31 12:34:56.789`, the fraction without trailing zeros."""

    def convert(x: pa.Array) -> pa.Array:
        clock = pc.cast(pc.cast(time_of_day(x), pa.time64("us")), STRING)
        short = pc.utf8_rtrim(pc.utf8_rtrim(clock, "0"), ".")
        # A whole minute or hour has lost zeros that it needs: `12:30:00.000000` → `12:3`.
        clock = pc.if_else(pc.less(pc.utf8_length(short), 8), pc.utf8_slice_codeunits(clock, 0, 8), short)
        return pc.binary_join_element_wise(date_text(days_of(x)), clock, " ")

    return Conversion(convert)


def _date_to_moment(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(lambda x: pc.cast(pc.multiply_checked(days_of(x), DAY_US), want), True)


def _moment_to_date(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(lambda x: as_date(days_of(x)))


def _seconds_to_moment(have: pa.DataType, want: pa.DataType) -> Conversion:
    """Spark saturates here instead of raising."""
    limit = (2**63 - 1) // SECOND_US

    def convert(x: pa.Array) -> pa.Array:
        seconds = pc.cast(x, BIGINT)
        inside = between(seconds, pa.scalar(-limit - 1, BIGINT), pa.scalar(limit, BIGINT))
        product = pc.multiply(inside, SECOND_US)
        ends = pc.if_else(pc.less(seconds, 0), pa.scalar(-(2**63), BIGINT), pa.scalar(2**63 - 1, BIGINT))
        outside = pc.or_(pc.greater(seconds, limit), pc.less(seconds, -limit))
        return pc.cast(pc.if_else(outside, ends, product), want)

    return Conversion(convert)


def _moment_to_seconds(have: pa.DataType, want: pa.DataType) -> Conversion:
    def convert(x: pa.Array) -> pa.Array:
        seconds = floor_divide(micros(x), SECOND_US)
        if want == BIGINT:
            return seconds
        low, high = -(2 ** (want.bit_width - 1)), 2 ** (want.bit_width - 1) - 1
        return pc.cast(between(seconds, pa.scalar(low, BIGINT), pa.scalar(high, BIGINT)), want)

    return Conversion(convert, want != BIGINT)


def _moment_to_fraction(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(lambda x: pc.cast(pc.divide(pc.cast(micros(x), DOUBLE, safe=False), 1e6), want, safe=False))


def _relabel(have: pa.DataType, want: pa.DataType) -> Conversion:
    return Conversion(lambda x: pc.cast(micros(x), want))


_MOMENTS = (TIMESTAMP, TIMESTAMP_NTZ)
Applies = Callable[[pa.DataType, pa.DataType], bool]
FAMILIES: tuple[tuple[Applies, Callable[[pa.DataType, pa.DataType], Conversion]], ...] = (
    (lambda a, b: a == STRING and b == DATE, _text_to_date),
    (lambda a, b: a == STRING and b in _MOMENTS, _text_to_moment),
    (lambda a, b: a == DATE and b == STRING, _date_to_text),
    (lambda a, b: a in _MOMENTS and b == STRING, _moment_to_text),
    (lambda a, b: a == DATE and b in _MOMENTS, _date_to_moment),
    (lambda a, b: a in _MOMENTS and b == DATE, _moment_to_date),
    (lambda a, b: {a, b} == set(_MOMENTS), _relabel),
    (lambda a, b: is_integral(a) and b == TIMESTAMP, _seconds_to_moment),
    (lambda a, b: a == TIMESTAMP and is_integral(b), _moment_to_seconds),
    (lambda a, b: a == TIMESTAMP and b in (FLOAT, DOUBLE), _moment_to_fraction),
)

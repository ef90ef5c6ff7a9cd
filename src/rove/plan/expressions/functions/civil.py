"""The proleptic Gregorian calendar in whole-column integer arithmetic.

Law: exact for every day that 32 bits can count and every microsecond that 64 bits can. Arrow's own calendar
kernels are faster and are used for the years they are right in (they wrap beyond ±32767).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rove.model.schema import BIGINT, DATE, INT
from rove.plan.expressions.tree import Datum

DAY_US = 86_400_000_000
_ARROW_DAYS = (-719_162, 2_932_896)  # 0001-01-01 to 9999-12-31
NAIVE = pa.timestamp("us")


def floor_divide(x: Datum, by: int) -> Datum:
    """Division that rounds down, for a positive constant divisor."""
    divisor = pa.scalar(by, x.type)
    quotient = pc.divide(x, divisor)
    past = pc.cast(pc.greater(pc.multiply(quotient, divisor), x), x.type)
    return pc.subtract(quotient, past)


def floor_modulo(x: Datum, by: int) -> Datum:
    """What `floor_divide` leaves."""
    return pc.subtract(x, pc.multiply(floor_divide(x, by), pa.scalar(by, x.type)))


def micros(moments: pa.Array) -> pa.Array:
    """Timestamps or intervals as microseconds."""
    return pc.cast(moments, BIGINT)


def days_of(moments: pa.Array) -> pa.Array:
    """The days (bigint, since 1970) that dates or timestamps fall on."""
    if pa.types.is_date(moments.type):
        return pc.cast(pc.cast(moments, INT), BIGINT)
    return floor_divide(micros(moments), DAY_US)


def time_of_day(moments: pa.Array) -> pa.Array:
    """Microseconds since midnight."""
    return floor_modulo(micros(moments), DAY_US)


def as_date(days: pa.Array) -> pa.Array:
    """Days since 1970 as dates; the caller knows that they fit."""
    return pc.cast(pc.cast(days, INT, safe=False), DATE)


def civil(days: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Year, month and day of month (all bigint) of days since 1970."""
    bounds = pc.min_max(days)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or (low >= _ARROW_DAYS[0] and high <= _ARROW_DAYS[1]):
        dates = as_date(days)  # Arrow's `year_month_day` does all three at once, and crashes on some columns with nulls
        return pc.year(dates), pc.month(dates), pc.day(dates)
    return _civil_by_hand(days)


def _civil_by_hand(days: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Hinnant's algorithm: years start in March, so that the leap day is the last of its year."""
    z = pc.add(days, 719_468)
    era = floor_divide(z, 146_097)
    of_era = pc.subtract(z, pc.multiply(era, 146_097))
    corrected = pc.subtract(
        pc.add(pc.subtract(of_era, pc.divide(of_era, 1460)), pc.divide(of_era, 36_524)),
        pc.divide(of_era, 146_096),
    )
    year_of_era = pc.divide(corrected, 365)
    leaps = pc.subtract(pc.divide(year_of_era, 4), pc.divide(year_of_era, 100))
    of_year = pc.subtract(of_era, pc.add(pc.multiply(year_of_era, 365), leaps))
    month_from_march = pc.divide(pc.add(pc.multiply(of_year, 5), 2), 153)
    day = pc.add(pc.subtract(of_year, pc.divide(pc.add(pc.multiply(month_from_march, 153), 2), 5)), 1)
    month = pc.if_else(pc.less(month_from_march, 10), pc.add(month_from_march, 3), pc.subtract(month_from_march, 9))
    year = pc.add(pc.add(year_of_era, pc.multiply(era, 400)), pc.cast(pc.less_equal(month, 2), BIGINT))
    return year, month, day


def days_from_civil(year: Datum, month: Datum, day: Datum) -> Datum:
    """Days since 1970 of a date that exists."""
    y = pc.subtract(year, pc.cast(pc.less_equal(month, 2), BIGINT))
    era = floor_divide(y, 400)
    year_of_era = pc.subtract(y, pc.multiply(era, 400))
    from_march = pc.if_else(pc.greater(month, 2), pc.subtract(month, 3), pc.add(month, 9))
    of_year = pc.subtract(pc.add(pc.divide(pc.add(pc.multiply(from_march, 153), 2), 5), day), 1)
    leaps = pc.subtract(pc.divide(year_of_era, 4), pc.divide(year_of_era, 100))
    of_era = pc.add(pc.add(pc.multiply(year_of_era, 365), leaps), of_year)
    return pc.subtract(pc.add(pc.multiply(era, 146_097), of_era), 719_468)


_LENGTHS = pa.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], BIGINT)


def days_in_month(year: Datum, month: Datum) -> Datum:
    """How many days a month has; the month is 1 to 12."""
    leap = pc.and_(
        pc.equal(floor_modulo(year, 4), 0),
        pc.or_(pc.not_equal(floor_modulo(year, 100), 0), pc.equal(floor_modulo(year, 400), 0)),
    )
    usual = _LENGTHS.take(pc.subtract(month, 1))
    return pc.add(usual, pc.cast(pc.and_(leap, pc.equal(month, 2)), BIGINT))


def add_months(days: pa.Array, months: Datum) -> pa.Array:
    """The same day of another month, or that month's last day."""
    year, month, day = civil(days)
    total = pc.add(pc.add(pc.multiply(year, 12), pc.subtract(month, 1)), months)
    new_year, new_month = floor_divide(total, 12), pc.add(floor_modulo(total, 12), 1)
    return days_from_civil(
        new_year, new_month, pc.min_element_wise(day, days_in_month(new_year, new_month), skip_nulls=False)
    )


def year_text(year: pa.Array) -> pa.Array:
    """Four digits or more; beyond 9999 Java puts a plus."""
    size = pc.utf8_lpad(pc.cast(pc.abs(year), pa.string()), 4, "0")
    sign = pc.if_else(pc.less(year, 0), "-", pc.if_else(pc.greater(year, 9999), "+", ""))
    return pc.binary_join_element_wise(sign, size, "")


def padded(number: pa.Array, width: int = 2) -> pa.Array:
    """A number with leading zeros."""
    return pc.utf8_lpad(pc.cast(number, pa.string()), width, "0")

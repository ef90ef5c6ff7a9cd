"""Event time in microseconds since 1970, UTC, and Spark's notation of durations.

Law: the core never reads a clock; the time is an argument. `MICROS_MIN` is the first instant a Spark timestamp can
hold.
"""

from __future__ import annotations

import re

from rove.model.errors import PlanError

MICROS_MIN = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z
MICROS_MAX = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z
END = 2**62  # a watermark past every event time: nothing follows

_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_DURATION = re.compile(r"(\d+)\s*([a-z]+?)s?(?=\s|\d|$)\s*")


def parse_duration(text: str, what: str = "duration") -> int:
    """Microseconds of a Spark duration: `parse_duration("1 minute 30 seconds")` is 90,000,000."""
    rest, total = text.strip().lower().removeprefix("interval").strip(), 0
    if not rest:
        raise PlanError(f"{what} is empty; write for example `10 seconds`")
    while rest:
        match = _DURATION.match(rest)
        unit = _UNITS_US.get(match[2]) if match else None
        if match is None or unit is None:
            raise PlanError(
                f"{what} `{text}` is not a fixed length of time; write a whole number and one of {', '.join(_UNITS_US)}"
            )
        total += int(match[1]) * unit
        rest = rest[match.end() :]
    return total


def duration_text(micros: int) -> str:
    """A duration as Spark reads it, in the largest unit that fits: `duration_text(90_000_000)` is `90 seconds`."""
    for unit, size in reversed(_UNITS_US.items()):
        if micros and micros % size == 0 and unit != "week":
            count = micros // size
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return f"{micros} microseconds" if micros else "0 seconds"

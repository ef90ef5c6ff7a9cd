"""The troubles of a query as sentences.

Law: a sentence says who has the trouble, what it is, and since when. Times are the coordinator's, shown in the local
time of the reader.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rove.control.asks.requests import QueryLine, Trouble

DEPLOYED = ("running", "held up")  # the states of a query whose nodes all run their part
PATIENCE_MS = 10_000  # how long a trouble at the start of a query may last: devices report within a second
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def sentence(troubles: Iterable[Trouble]) -> str:
    """Troubles in one line; empty if there are none.

    >>> sentence([Trouble(reason="waits for a gateway", for_ms=90_000)])
    'waits for a gateway (for 1 min)'
    """
    return "; ".join(f"{_named(trouble)} (for {duration(trouble.for_ms)})" for trouble in troubles)


def hopeless(line: QueryLine) -> str:
    """Why it is of no use to wait for a query; empty if waiting may help."""
    if line.state == "stopped":
        why = f": {line.troubles[0].reason}" if line.troubles else ""
        return f"query `{line.query}` was stopped, and no more rows come{why}"
    if final := sentence(trouble for trouble in line.troubles if trouble.final):
        return f"query `{line.query}` cannot go on: {final}"
    return ""


def stuck(line: QueryLine) -> bool:
    """Whether other queries should not wait for this one to begin."""
    return bool(hopeless(line)) or any(trouble.for_ms > PATIENCE_MS for trouble in line.troubles)


def since(trouble: Trouble) -> str:
    """When a trouble began, and how long ago that is."""
    began = datetime.fromtimestamp(trouble.since_us / 1_000_000)
    day = "%H:%M:%S" if trouble.for_ms < 43_200_000 else "%Y-%m-%d %H:%M"
    return f"{began.strftime(day)}, {duration(trouble.for_ms)}"


def duration(ms: int) -> str:
    """A duration in its largest whole unit.

    >>> duration(90_000), duration(400)
    ('1 min', '0 s')
    """
    seconds = ms // 1_000
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds // size} {unit}"


def _named(trouble: Trouble) -> str:
    return f"{trouble.who}: {trouble.reason}" if trouble.who else trouble.reason

"""Sums the counts of all nodes: the account of every row, by query and origin.

Law: produced = delivered + evicted + late + lost + faulted + in flight. Rows that no node has counted otherwise are in
flight. If no node holds them either, they are missing, by the names of their batches.

Nodes report at different moments, so an end may have counted rows that their maker has not reported yet. The numbers of
the batches tell: if the end has seen batches that the maker's report does not cover, their rows were produced. If it
has not, and still counts more rows than were produced, something was counted twice, and the sum does not add up.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from rove.control.asks.requests import AccountLine
from rove.control.members.missing import Missing
from rove.model.clock import MICROS_MAX, MICROS_MIN
from rove.model.ids import Origin
from rove.model.messages import Tally
from rove.model.spans import text_of

ENDS = ("delivered", "evicted", "late", "lost", "faulted", "in_flight")  # where a row that was produced can be
_SUMMED = ("produced", "delivered", "buffered", "open", "resent", "duplicates", "evicted", "late", "lost", "faulted")


def excess(line: AccountLine) -> int:
    """How many rows too many are counted, compared with the rows produced. 0 means that the line adds up."""
    counted: int = sum(getattr(line, end) for end in ENDS)
    return counted - line.produced


def account_lines(
    tallies: Iterable[Tally],
    wall: int,
    alive: Container[Origin],
    unheard: Container[Origin] = (),
    stopped: Container[str] = (),
    missing: Missing | None = None,
) -> list[AccountLine]:
    """One line for each query and origin. Rows in flight of an origin that is not `alive`, or of a `stopped` query, are
    lost. An `unheard` origin may have made more rows than it has reported. O(tallies)."""
    sums: dict[tuple[str, Origin], dict[str, int]] = {}
    marks: dict[tuple[str, Origin], int] = {}
    made: dict[tuple[str, Origin], int] = {}
    seen: dict[tuple[str, Origin], int] = {}
    for tally in tallies:
        key = (tally.query, tally.origin)
        line = sums.setdefault(key, dict.fromkeys(_SUMMED, 0))
        for what in _SUMMED:
            line[what] += getattr(tally, what)
        made[key], seen[key] = max(made.get(key, 0), tally.made), max(seen.get(key, 0), tally.seen)
        if tally.watermark is not None:
            marks[key] = max(marks.get(key, tally.watermark), tally.watermark)
    lines = []
    for (query, origin), line in sorted(sums.items()):
        done = line["delivered"] + line["evicted"] + line["late"] + line["lost"] + line["faulted"]
        mark = marks.get((query, origin))
        # Before its first row an origin has no watermark, and after its last row the watermark is at the end.
        lag = max(0, wall - mark) // 1000 if mark is not None and MICROS_MIN < mark <= MICROS_MAX else None
        left = max(0, line["produced"] - done)
        over = origin not in alive or query in stopped
        if over:
            line["lost"] += left
            left = line["open"] = 0
        if over or origin in unheard or seen[query, origin] > made[query, origin]:
            line["produced"] = max(line["produced"], done)  # what became of rows is known, so they were produced
        gone = missing.of(query, origin) if missing is not None and left else None
        lines.append(
            AccountLine(
                query=query,
                origin=str(origin),
                in_flight=left,
                watermark_lag_ms=lag,
                missing=0 if missing is None or gone is None else missing.rows(query, origin, left),
                missing_batches="" if gone is None else text_of(gone.batches),
                **line,
            )
        )
    return lines

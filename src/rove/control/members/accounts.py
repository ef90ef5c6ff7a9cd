"""Sums the counts of all nodes: the account of every row, by query and origin.

Law: produced = delivered + evicted + late + lost + faulted + in flight. Rows that no node has counted otherwise are in
flight. If no node holds them either, they are missing, by the names of their batches.

Nodes report at different moments, so an end may have counted rows that their maker has not reported yet. The numbers
of the batches decide: if the end has seen batches that the maker's report does not cover, their rows were produced. If
it has not, and still counts more rows than were produced, something was counted twice, and the sum does not add up.
Rows that were counted as lost and arrived later are known by the names of their batches, and are not lost. An operator
whose input was lost on its disk produces fewer rows when it computes them again than it had sent before; the rows that
arrived count as produced.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from operator import add, attrgetter

from rove.control.asks.requests import AccountLine
from rove.control.members.missing.missing import Missing
from rove.model.clock import MICROS_MAX, MICROS_MIN
from rove.model.ids import SOURCE, Origin, QueryId
from rove.model.messages import Report, Tally
from rove.model.spans import both, text_of, union

ENDS = ("delivered", "evicted", "late", "lost", "faulted", "in_flight")  # where a row that was produced can be
_SUMMED = ("produced", "delivered", "buffered", "open", "resent", "duplicates", "evicted", "late", "lost", "faulted")
_summed = attrgetter(*_SUMMED)


def excess(line: AccountLine) -> int:
    """How many rows too many are counted, compared with the rows produced. 0 means that the line adds up."""
    counted: int = sum(getattr(line, end) for end in ENDS)
    return counted - line.produced


def lost_twice(tallies: Iterable[Tally]) -> int:
    """The most rows of a line that nodes counted as lost although they were counted before, by the names of their
    batches: a node lost them again after its restart, or they arrived again and were taken. O(tallies)."""
    tallies = list(tallies)
    known = union(spans for tally in tallies for taker, spans in tally.counted if taker)
    rows = 0
    for tally in tallies:
        lost = union(spans for taker, spans in tally.counted if not taker)
        if both(lost, known):
            rows += tally.lost_here or tally.lost
        known = union((known, lost))
    return rows


def made_since(
    report: Report, before: Mapping[tuple[QueryId, Origin], Tally], streams: Iterable[str]
) -> dict[str, int]:
    """The rows that the sources of a node made since its last report, by stream, for the query that took most of them.
    0 for one of the `streams` that made none. O(report)."""
    made = dict.fromkeys(streams, 0)
    for tally in report.tallies:
        origin, known = tally.origin, before.get((tally.query, tally.origin))
        if known is not None and origin.stage == SOURCE and origin.node == report.node:
            made[origin.name] = max(made.get(origin.name, 0), tally.produced - known.produced)
    return made


def account_lines(
    tallies: Iterable[Tally],
    wall: int,
    alive: Container[Origin],
    unheard: Container[Origin] = (),
    stopped: Container[str] = (),
    missing: Missing | None = None,
    troubled: Iterable[str] = (),
) -> list[AccountLine]:
    """One line for each query and origin. Rows in flight of an origin that is not `alive`, or of a `stopped` query, are
    lost; those in open windows only if the query is stopped. An `unheard` origin may have made more rows than it has
    reported. Input of a `troubled` query may be damaged on a node. O(tallies)."""
    counts: dict[tuple[str, Origin], tuple[int, ...]] = {}
    marks: dict[tuple[str, Origin], int] = {}
    made: dict[tuple[str, Origin], int] = {}
    seen: dict[tuple[str, Origin], int] = {}
    lossy: dict[tuple[str, Origin], list[Tally]] = {}
    for tally in tallies:
        key = (tally.query, tally.origin)
        lossy.setdefault(key, []).append(tally)
        found, known = _summed(tally), counts.get(key)
        counts[key] = found if known is None else tuple(map(add, known, found))
        made[key], seen[key] = max(made.get(key, 0), tally.made), max(seen.get(key, 0), tally.seen)
        if tally.watermark is not None:
            marks[key] = max(marks.get(key, tally.watermark), tally.watermark)
    sums = {key: dict(zip(_SUMMED, found, strict=True)) for key, found in counts.items()}
    lines = []
    hurt = {*troubled, *(query for (query, _), line in sums.items() if line["lost"])}
    hurt |= set() if missing is None else missing.queries()
    for (query, origin), line in sorted(sums.items()):
        done = line["delivered"] + line["evicted"] + line["late"] + line["lost"] + line["faulted"]
        if done > line["produced"]:
            twice = min(done - line["produced"], lost_twice(lossy[query, origin]))
            line["lost"] -= twice
            done -= twice
        mark = marks.get((query, origin))
        # Before its first row an origin has no watermark, and after its last row the watermark is at the end.
        lag = max(0, wall - mark) // 1000 if mark is not None and MICROS_MIN < mark <= MICROS_MAX else None
        left = max(0, line["produced"] - done)
        over = origin not in alive or query in stopped
        if over:  # rows in open windows of operators that go on will be in a result
            kept = 0 if query in stopped else min(left, line["open"])
            line["lost"] += left - kept
            left = line["open"] = kept
        anew = query in hurt and origin.stage != SOURCE  # an operator that has lost input produces less than before
        if over or anew or origin in unheard or seen[query, origin] > made[query, origin]:
            line["produced"] = max(line["produced"], done)  # rows whose end is known were produced
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

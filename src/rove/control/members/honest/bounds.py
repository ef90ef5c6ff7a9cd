"""The most that a report may have of everything.

Law: a collection that a node fills by itself is refused beyond its bound. One that others can fill, by what they send
to the node, is cut instead, so that nobody can silence an honest node. Each bound is several times what a node of the
largest network needs (5,000 devices, 500 edge nodes, 200 queries).
"""

from __future__ import annotations

from operator import attrgetter

from msgspec.structs import replace

from rove.control.members.honest.texts import TEXT_MAX, WORD_MAX, cleaned
from rove.model.errors import BadName
from rove.model.foreign.checks import SEQ_MAX, SUM_MAX
from rove.model.messages import PARENTS_MAX, Facts, Report, Tally

QUERIES_MAX = 1_000  # queries that one node runs, has ended, holds, or does not know
TROUBLES_MAX = 32  # troubles of one query on one node
MOVED_MAX = 1_000  # states that have left a node or come to it
REASONS_MAX = 64  # reasons for which it refused messages
START_MAX = 2**63
COLUMNS_MAX = 200_000  # characters of the columns of all its sources
SLOTS_MAX = 1_000_000

_counts = attrgetter(
    *("produced", "delivered", "evicted", "late", "lost", "buffered", "resent", "duplicates", "lost_here"),
    *("evicted_here", "made", "seen", "open", "faulted", "faulted_here", "produced_here", "delivered_here"),
    "late_here",
)


def possible(tally: Tally) -> bool:
    """Whether these can be counts of rows."""
    found = _counts(tally)
    mark = tally.watermark
    return min(found) >= 0 and max(found) <= SUM_MAX and (mark is None or -SEQ_MAX <= mark <= SEQ_MAX)


def check_bounds(report: Report) -> None:
    """Refuse a report with more than a node fills by itself. O(report)."""
    _within(report, "the number of its start", report.start, START_MAX)
    _within(report, "the number of the report", report.number, SEQ_MAX)
    _within(report, "queries", len(report.running), QUERIES_MAX)
    _within(report, "the highest version", max(report.running.values(), default=0), SEQ_MAX)
    _within(report, "parents that it reaches", len(report.reaches or ()), PARENTS_MAX)
    _within(report, "characters of a digest", len(report.knows or ""), WORD_MAX)
    for number in (report.taken_bytes, *report.shrunk, *(report.learned or ())):
        _within(report, "bytes or pairs", number, SEQ_MAX)
    if report.facts is not None:
        _check_facts(report, report.facts)


def _check_facts(report: Report, facts: Facts) -> None:
    _within(report, "characters of an address", len(facts.address), TEXT_MAX)
    if not facts.address.isprintable():
        raise BadName(f"`{report.node}` reports an address that cannot be printed")
    _within(report, "slots", facts.slots, SLOTS_MAX)
    for number in (facts.memory_bytes, facts.disk_bytes):
        _within(report, "bytes", number, SEQ_MAX)
    _within(report, "characters of columns", sum(len(source.columns) for source in facts.sources), COLUMNS_MAX)


def _within(report: Report, what: str, number: int, most: int) -> None:
    if not 0 <= number <= most:
        raise BadName(f"`{report.node}` reports {number:,} as {what}; the most is {most:,}")


def cut(report: Report) -> Report:
    """The report with as much as is read of what others can fill. O(report)."""
    found: dict[str, object] = {}
    if report.unknown is not None and len(report.unknown) > QUERIES_MAX:
        found["unknown"] = report.unknown[:QUERIES_MAX]
    if report.moved is not None and len(report.moved) > MOVED_MAX:
        found["moved"] = report.moved[:MOVED_MAX]
    if report.refused:
        reasons = list(report.refused.items())[:REASONS_MAX]
        found["refused"] = {cleaned(why, WORD_MAX): min(max(times, 0), SEQ_MAX) for why, times in reasons}
    return replace(report, **found) if found else report

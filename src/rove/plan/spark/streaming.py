"""What streaming Spark refuses, as far as a plan shows it: a list for submits where no Spark is at hand.

Law: each line was measured with Spark 4.3 (`tests/cloud/test_analysis.py` asks it again). A query that passes may still
be refused by Spark itself, which knows more (`cloud/analysis.py`).
"""

from __future__ import annotations

from rove.model.errors import PlanError
from rove.model.schema import WINDOW
from rove.plan.expressions.tree import Column, columns_of, sql
from rove.plan.operators import Aggregate, Join, Operator, SparkAggregate, SparkSelect, walk

_TWICE = (
    "streaming Spark has no output mode `update` for a group or a join over the results of a group without a window: "
    "they change, and it does not take a row back. Group by a window in the first, and use `append`"
)
_OUTER = ("left_outer", "right_outer", "full_outer")
_NEEDS_TIME = (
    "a {how} join of two streams needs event time, or its rows would wait for ever: call withWatermark on both sides, "
    "and join on a window or on a range of event times"
)

_ENDLESS = "it would need all rows of a stream that never ends"
_WRITTEN = "write the stream (writeStream), and ask the table that the query writes"
# Verbs of DataFrames that streaming Spark refuses, and why.
REFUSED_VERBS = {
    **dict.fromkeys("orderBy sort sortWithinPartitions".split(), f"{_ENDLESS}; sort what the query has written"),
    **dict.fromkeys(
        "limit offset tail head take first".split(),
        "which rows of a stream come first is not defined; limit what the query has written",
    ),
    **dict.fromkeys(
        "collect show count toPandas toLocalIterator foreach foreachPartition isEmpty cache persist checkpoint".split(),
        f"a query runs for ever; {_WRITTEN}. toArrow() computes over the data of a local session",
    ),
    **dict.fromkeys(
        "describe summary corr cov crosstab freqItems approxQuantile stat".split(), f"{_ENDLESS}; {_WRITTEN}"
    ),
    **dict.fromkeys(
        "intersect intersectAll subtract exceptAll".split(), f"{_ENDLESS}; use a join, or IN (SELECT …) in SQL"
    ),
    **dict.fromkeys("sample randomSplit sampleBy".split(), "a sample is another one at each run; use a condition"),
    **dict.fromkeys(
        "repartition repartitionByRange coalesce hint".split(), "Rove decides where rows are computed; leave it out"
    ),
    "groupingSets": "write GROUP BY GROUPING SETS in session.sql(…)",
    "colRegex": "name the columns: select(*[c for c in stream.columns if …])",
    "write": f"it is for tables; use writeStream, or {_WRITTEN}",
}


def refuse_unstreamable(plan: Operator, mode: str) -> None:
    """Refuse an optimized plan that streaming Spark would refuse in an output mode."""
    for step in walk(plan):
        if step.static:
            continue
        if (why := _refusal(step, mode)) is not None:
            raise PlanError(why)


def _refusal(step: Operator, mode: str) -> str | None:
    if mode == "update" and _holds_state(step) and any(_changes(s) for each in step.inputs for s in walk(each)):
        return _TWICE
    match step:
        case SparkAggregate() if mode == "append" and not _closes(step):
            return _no_end("groupBy(F.window(time, '10 seconds'), …)")
        case SparkAggregate() if mode == "update" and _has_sessions(step):
            return "streaming Spark has no output mode `update` for session windows; use `append`"
        case SparkSelect(needs_update=True) if mode == "append":
            return _no_end("GROUP BY window(time, '10 seconds'), …")
        case Join() if step.keeps_rows:
            return _join(step, mode)
    return None


def _holds_state(step: Operator) -> bool:
    """Whether Spark keeps rows or groups for a step over a stream."""
    match step:
        case SparkSelect():
            return step.needs_update
        case Join():
            return step.keeps_rows
    return isinstance(step, SparkAggregate | Aggregate)


def _changes(step: Operator) -> bool:
    """Whether a step gives a group again when it has more rows."""
    return (
        isinstance(step, SparkAggregate) or (isinstance(step, SparkSelect) and step.needs_update)
    ) and not step.static


def _no_end(example: str) -> str:
    return (
        "an aggregate without a window of event time never ends, so output mode `append` would never show it: group by "
        f"one ({example}), or use output mode `update`. For running totals at the edge use scan(…)"
    )


def _closes(step: SparkAggregate) -> bool:
    """Whether event time closes the groups: a window, or the event time itself, is among the keys."""
    traits = step.input.traits
    timed = {traits.event_time, *(name for name, _ in traits.windows)} - {None}
    keys = [e for _, e in step.groups if e.dtype == WINDOW or isinstance(e, Column)]
    if not timed:  # only Spark knows the event time of its own results
        return any(e.dtype == WINDOW for e in keys)
    return any(columns_of(e) & timed for e in keys)


def _has_sessions(step: SparkAggregate) -> bool:
    return any(sql(e).lower().startswith("session_window(") for _, e in step.groups)


def _join(step: Join, mode: str) -> str | None:
    if step.how == "left_anti":
        return "streaming Spark has no anti join with a stream on the right; use a table there, or LEFT JOIN"
    if step.how in _OUTER and mode == "update":
        return f"streaming Spark has no output mode `update` for a {step.how} join of two streams; use `append`"
    if step.how != "inner" and not _is_timed(step):
        return _NEEDS_TIME.format(how=step.how)
    return None


def _is_timed(step: Join) -> bool:
    """Whether a key is event time or a window of it, or the condition compares event times."""
    sides = (step.left, step.right)
    times = [{s.traits.event_time, *(name for name, _ in s.traits.windows)} - {None} for s in sides]
    keys = (step.left_keys, step.right_keys)
    if any(set(k) & t for k, t in zip(keys, times, strict=True)):
        return True
    read = columns_of(step.condition) if step.condition is not None else frozenset()
    return all(read & t for t in times)

"""Where an operator can run: at the edge, in Spark, or both, and why not elsewhere.

Law: rows flow upwards only. Above an operator that runs in Spark, everything runs in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.types as pt

from rove.model.errors import PlanError
from rove.model.schema import is_spark_only, type_name
from rove.plan.expressions.tree import refusal_of
from rove.plan.operators import (
    Aggregate,
    At,
    CountWindow,
    Deduplicate,
    Filter,
    InSpark,
    Join,
    Map,
    Operator,
    Project,
    Received,
    Scan,
    Source,
    SparkAggregate,
    SparkSelect,
    Table,
    Union,
    Watermark,
)
from rove.plan.shown import Shown

# A window over the starts of other windows may close before those windows do, and Spark has one event time for both.
_STARTS = "Spark cannot close a window over the starts of other windows; write window(`window`, …) to use their ends"


@dataclass(frozen=True, slots=True)
class Site:
    """`edge` and `spark` say whether the operator may run there; `why` is the reason where one of them is False."""

    edge: bool
    spark: bool
    why: str = ""


def site(operator: Operator) -> Site:
    """Where an operator may run, given where its inputs may run. O(plan below it)."""
    if isinstance(operator, At):
        return site(operator.input)
    own = _own_refusal(operator)
    below = next((_step(i) for i in operator.inputs if not site(i).edge), None)
    if isinstance(operator, Scan | CountWindow):
        # Spark has no event-time order over an unbounded stream, so the edge is the only place.
        return Site(own is None and below is None, False, own or "only the edge keeps rows in event-time order")
    if isinstance(operator, Aggregate) and operator.starts_of is not None and operator.window_column is None:
        return Site(own is None and below is None, False, own or _STARTS)
    if own is not None:
        return Site(False, True, own)
    if below is not None:
        return Site(False, True, f"its input, {type(below).__name__}, runs in Spark")
    return Site(True, True)


def refuse_tables_alone(plan: Operator) -> None:
    """Refuse a query that reads no stream."""
    if plan.static:
        raise PlanError("the query reads only tables, which Spark can do without Rove; join a stream with them")


def _step(operator: Operator) -> Operator:
    """The operator below any placement hints."""
    return _step(operator.input) if isinstance(operator, At) else operator


def _own_refusal(operator: Operator) -> str | None:
    match operator:
        case Source() | Received() | Watermark() | Union() | Map():
            held = next((f for f in operator.schema if is_spark_only(f.type)), None)
            return f"column `{held.name}` is {type_name(held.type)}" if held else None
        case Table():
            return "Spark reads tables by itself"
        case Filter(condition=condition):
            return refusal_of(condition)
        case Project(columns=columns):
            return next((why for _, e in columns if (why := refusal_of(e))), None)
        case Aggregate():
            return _aggregate_refusal(operator)
        case CountWindow() | Scan():
            for name in operator.keys:
                if pt.is_nested(operator.input.schema.field(name).type):
                    return f"key `{name}` is {type_name(operator.input.schema.field(name).type)}"
            return next((w for a in operator.aggregates if (w := a.partial_refusal or a.final_refusal)), None)
        case Join():
            return _join_refusal(operator)
        case Deduplicate():
            return "removing duplicates keeps every value ever seen; Spark holds that state"
        case SparkAggregate(why=why) | SparkSelect(why=why):
            return why
        case InSpark():
            return "inSpark hands the rest to Spark"
        case Shown():
            return "two columns have one name, which Spark gives them at the end"
    return f"{type(operator).__name__} has no form at the edge"


def _aggregate_refusal(operator: Aggregate) -> str | None:
    for _, key in (("", operator.time), *operator.keys):
        if why := refusal_of(key):
            return why
        if pt.is_nested(key.dtype):
            return f"a key of type {type_name(key.dtype)}"
    for each in operator.aggregates:
        if each.partial_refusal:
            return each.partial_refusal
        if each.final_refusal and operator.mode != "partial":
            return each.final_refusal
    return None


def _join_refusal(operator: Join) -> str | None:
    if not operator.keeps_rows:
        return "it joins a table, which Spark reads"
    if operator.how != "inner":
        return f"a {operator.how} join keeps rows until they find no match; Spark holds that state"
    found = operator.window_key()
    if found is None:
        return "the edge joins only within a shared window: add window(event_time, …) to both sides and join on it"
    for i, name in enumerate(operator.left_keys):
        dtype = operator.left.schema.field(name).type
        if i != found[0] and pt.is_nested(dtype):
            return f"a join key of type {type_name(dtype)}"
        if dtype != operator.right.schema.field(operator.right_keys[i]).type:
            return f"join keys of different types, {name} and {operator.right_keys[i]}"
        if pt.is_null(dtype):
            return f"join key `{name}` has no type, and matches nothing"
        if pt.is_floating(dtype):
            return "a join on fractions, where NaN equals NaN in Spark and not in Arrow"
    return refusal_of(operator.condition) if operator.condition is not None else None

"""Draws a plan for people: a tree of its steps, where each step can run, and why not elsewhere."""

from __future__ import annotations

from rove.model.clock import duration_text
from rove.model.schema import schema_text
from rove.plan.expressions.tree import Column, sql
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
from rove.plan.optimizer import optimize
from rove.plan.shown import Shown
from rove.plan.sites import site


def explain(plan: Operator) -> str:
    """The optimized plan, its last step first, with where each step can run.

    >>> import rove
    >>> s = rove.Session.local().stream("trains", schema="train string, boarding int")
    >>> print(explain(s.where("boarding > 0").selectExpr("soundex(train) AS sound").plan))
    Spark           Project soundex(train) AS sound
                    because the function `soundex` runs in Spark only
    edge or Spark   └─ Filter boarding > 0
    edge or Spark      └─ Source trains: train string, boarding int
    """
    return "\n".join(f"{where:<16}{line}".rstrip() for where, line in _lines(optimize(plan), "", ""))


def _lines(operator: Operator, first: str, rest: str) -> list[tuple[str, str]]:
    found = site(operator)
    where = "edge or Spark" if found.edge and found.spark else "edge" if found.edge else "Spark"
    said = isinstance(operator, At)  # not a step of its own: a hint on the steps below it
    lines = [("" if said else where, first + describe(operator))]
    if found.why and not said:
        lines.append(("", f"{rest}{'│  ' if len(operator.inputs) > 1 else ''}because {found.why}"))
    for i, child in enumerate(operator.inputs):
        last = i == len(operator.inputs) - 1
        lines += _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
    return lines


def describe(operator: Operator) -> str:
    """One line for one operator."""
    match operator:
        case Source(stream=stream):
            return f"Source {stream}: {schema_text(operator.schema)}"
        case Received(stream=stream):
            return f"Received {stream}"
        case Table(path=path):
            return f"Table {path or operator.format}: {schema_text(operator.schema)}"
        case Filter(condition=condition):
            return f"Filter {_bare(sql(condition))}"
        case Project(columns=columns):
            shown = (n if isinstance(e, Column) and e.name == n else f"{_bare(sql(e))} AS {n}" for n, e in columns)
            return f"Project {', '.join(shown)}"
        case Watermark(column=column, delay_us=delay):
            return f"Watermark {column}, delay {duration_text(delay)}"
        case Map(function=function):
            return f"Map {getattr(function, '__name__', function)}"
        case At(where=where):
            return f"At {where}"
        case Union(members=members):
            return f"Union of {len(members)}"
        case Aggregate():
            time = "" if operator.mode == "final" else f"{sql(operator.time)}, "
            by = ", ".join([f"window({time}{operator.window.text})", *(n for n, _ in operator.keys)])
            mode = "" if operator.mode == "whole" else f" ({operator.mode})"
            return f"Aggregate{mode} by {by}: {', '.join(f'{a.shown} AS {a.name}' for a in operator.aggregates)}"
        case SparkAggregate():
            by = f" by {', '.join(sql(e) for _, e in operator.groups)}" if operator.groups else ""
            return f"Aggregate{by}: {', '.join(f'{a.shown} AS {a.name}' for a in operator.aggregates)}"
        case Join():
            pairs = zip(operator.left_keys, operator.right_keys, strict=True)
            on = [a if operator.using else f"{a} = {b}" for a, b in pairs]
            on += [_bare(sql(operator.condition))] if operator.condition is not None else []
            return f"Join {operator.how} on {' and '.join(on)}"
        case SparkSelect(text=text):
            return f"Select {text}"
        case Deduplicate(columns=columns):
            return f"Deduplicate by {', '.join(columns) or 'all columns'}"
        case CountWindow():
            by = f" by {', '.join(operator.keys)}" if operator.keys else ""
            return f"CountWindow of {operator.rows} rows{by}: {', '.join(a.shown for a in operator.aggregates)}"
        case Scan():
            by = f" by {', '.join(operator.keys)}" if operator.keys else ""
            return f"Scan{by}: {', '.join(f'{a.shown} AS {a.name}' for a in operator.aggregates)}"
        case InSpark(function=function):
            return f"InSpark {getattr(function, '__name__', function)}"
        case Shown(columns=columns):
            return f"Shown {', '.join(n if n == c else f'{c} AS {n}' for n, c in columns)}"
    return type(operator).__name__


def _bare(text: str) -> str:
    """The text without its outermost parentheses."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text

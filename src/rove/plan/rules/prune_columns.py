"""Drops columns that are not read, as early as possible, so that they are neither computed nor sent."""

from __future__ import annotations

import pyarrow as pa

from rove.plan.expressions.tree import Column, Expr, columns_of, fallible
from rove.plan.operators import (
    Aggregate,
    At,
    CountWindow,
    Filter,
    Join,
    Operator,
    Project,
    Received,
    Scan,
    Source,
    SparkAggregate,
    Traits,
    Union,
    Watermark,
)
from rove.plan.rules.rewrite import with_inputs


def prune_columns(plan: Operator) -> Operator:
    return _prune(plan, tuple(plan.schema.names))


def _prune(operator: Operator, wanted: tuple[str, ...]) -> Operator:
    """The operator with at least the `wanted` columns, and more only where they are needed."""
    match operator:
        case Project(input=below, columns=columns):
            # A column that can raise is computed even if it is not read: the query would fail in Spark too.
            kept = tuple((n, e) for n, e in columns if n in wanted or fallible(e)) or columns[:1]
            if isinstance(below, Source):  # this projection already drops the source's other columns
                return Project(below, kept)
            return Project(_prune(below, _reads(below, *(e for _, e in kept))), kept)
        case Filter(input=below, condition=condition):
            return Filter(_prune(below, _ordered(below, {*wanted, *columns_of(condition)})), condition)
        case At(input=below):
            return with_inputs(operator, (_prune(below, wanted),))
        case Watermark(input=below, column=column):
            return with_inputs(operator, (_prune(below, _ordered(below, {*wanted, column})),))
        case Aggregate(mode="final", input=below):
            return with_inputs(operator, (_prune(below, tuple(below.schema.names)),))
        case Aggregate(input=below):
            states = (s.lift for a in operator.aggregates for s in a.states)
            arguments = (a.argument for a in operator.aggregates if a.argument is not None)
            reads = _reads(below, operator.time, *(e for _, e in operator.keys), *states, *arguments)
            times = {t for t in (below.traits.event_time,) if t}
            return with_inputs(operator, (_prune(below, _ordered(below, {*reads, *times})),))
        case SparkAggregate(input=below):
            arguments = (a.argument for a in operator.aggregates if a.argument is not None)
            reads = _reads(below, *(e for _, e in operator.groups), *arguments)
            times = {t for t in (below.traits.event_time,) if t}
            return with_inputs(operator, (_prune(below, _ordered(below, {*reads, *times})),))
        case Source():
            return _exactly(operator, _some(operator, wanted))
        case Received():
            return _prune_received(operator, set(wanted))
        case Join():
            return _prune_join(operator, set(wanted))
        case Union():
            return _prune_union(operator, wanted)
        case CountWindow(input=below) | Scan(input=below):
            lifts = (s.lift for a in operator.aggregates for s in a.states)
            read = {*operator.keys, str(below.traits.event_time), *_reads(below, *lifts)}
            if isinstance(operator, Scan):
                read |= set(wanted)
            return with_inputs(operator, (_prune(below, _ordered(below, read)),))
    return with_inputs(operator, tuple(_prune(i, tuple(i.schema.names)) for i in operator.inputs))


def _prune_received(operator: Received, wanted: set[str]) -> Operator:
    """The same rows with fewer columns. The event-time column stays, or the first window column if there is none."""
    traits = operator.traits
    time = traits.event_time or next((name for name, _ in traits.windows), None)
    kept = _some(operator, _ordered(operator, {*wanted, *([time] if time else ())}))
    if kept == tuple(operator.schema.names):
        return operator
    windows = tuple(window for window in traits.windows if window[0] in kept)
    columns = pa.schema([operator.columns.field(name) for name in kept])
    return Received(operator.stream, columns, Traits(traits.event_time, traits.delay_us, windows))


def _prune_union(operator: Union, wanted: tuple[str, ...]) -> Operator:
    """Prune every member to the same columns in the same order, as a union requires."""
    wanted = _some(operator, wanted)
    pruned = tuple(_prune(m, wanted) for m in operator.members)
    if all(p.schema.equals(pruned[0].schema) for p in pruned):
        return Union(pruned)
    return Union(tuple(_exactly(p, wanted) for p in pruned))


def _prune_join(operator: Join, wanted: set[str]) -> Operator:
    needed = wanted | (columns_of(operator.condition) if operator.condition is not None else set())

    def side(below: Operator, keys: tuple[str, ...]) -> Operator:
        times = {t for t in (below.traits.event_time,) if t}
        return _prune(below, _ordered(below, needed | set(keys) | times))

    left, right = side(operator.left, operator.left_keys), side(operator.right, operator.right_keys)
    return with_inputs(operator, (left, right))


def _exactly(operator: Operator, wanted: tuple[str, ...]) -> Operator:
    if tuple(operator.schema.names) == wanted:
        return operator
    return Project(operator, tuple((n, Column(operator.schema.field(n).type, n)) for n in wanted))


def _some(operator: Operator, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The wanted columns, or one column if none is wanted: a batch without columns would lose its number of rows."""
    return wanted or (operator.schema.names[0],)


def _reads(below: Operator, *exprs: Expr) -> tuple[str, ...]:
    return _ordered(below, {c for e in exprs for c in columns_of(e)})


def _ordered(below: Operator, names: set[str]) -> tuple[str, ...]:
    return tuple(n for n in below.schema.names if n in names)

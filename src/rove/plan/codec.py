"""A query's numbered operators as bytes, so that any node can hold the whole plan.

Law: `decode(encode(x)) == x`. The writer decodes every operator it has encoded and refuses to send one that comes back
different. Bytes that are not a valid plan raise `PlanError` and nothing else: msgspec checks the structs of
`plan/wire.py`, and operators check themselves in their constructors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from rove.model.disk_folders import checked_output
from rove.model.errors import BadName, PlanError
from rove.model.ids import Stage, checked_name
from rove.plan import wire
from rove.plan.aggregates import AggregateCall
from rove.plan.expressions.codec import (
    columns_read,
    read_call,
    read_expression,
    read_schema,
    write_call,
    write_expression,
    write_schema,
)
from rove.plan.operators import (
    Aggregate,
    CountWindow,
    Deduplicate,
    Filter,
    InSpark,
    Join,
    Map,
    Named,
    Operator,
    Project,
    Received,
    Scan,
    Source,
    SparkAggregate,
    SparkSelect,
    Table,
    Traits,
    Union,
    Watermark,
)
from rove.plan.shown import Shown
from rove.plan.stages import Stages
from rove.plan.user_functions import Pickler, Reader, by_name, unread, write_function
from rove.plan.windows import Window

_encoder = msgspec.msgpack.Encoder()
_envelope = msgspec.msgpack.Decoder(wire.Envelope)
_plan = msgspec.msgpack.Decoder(wire.Plan)


def encode(stages: Stages, pickled: Pickler | None = None) -> bytes:
    """The stages as bytes. `pickled` (such as `cloudpickle.dumps`) writes users' functions that have no importable
    name; without it they are refused.

    >>> import rove
    >>> busy = rove.Session.local().stream("trains", schema="train string, boarding int").where("boarding > 0")
    >>> stages = Stages.of({"busy": busy.plan})
    >>> decode(encode(stages)) == stages
    True
    """
    if len(stages.operators) > wire.OPERATORS_MAX:
        raise PlanError(f"a plan of {len(stages.operators)} operators; the most is {wire.OPERATORS_MAX}")
    words = tuple(_checked(op, stages, n, pickled) for n, op in enumerate(stages.operators))
    try:
        data = _encoder.encode(wire.Plan(words, stages.outputs, stages.hints))
    except OverflowError as error:
        raise PlanError("a duration in this plan is longer than 64 bits of microseconds hold") from error
    enclosed = _encoder.encode(wire.Envelope(wire.FORMAT, msgspec.Raw(data)))
    if len(enclosed) > wire.PLAN_BYTES_MAX:
        raise PlanError(f"a plan of {len(enclosed)} bytes; the most is {wire.PLAN_BYTES_MAX}")
    return enclosed


def decode(
    data: bytes, read: Reader = by_name, needed: Collection[Stage] | None = None, others: Reader = unread
) -> Stages:
    """The stages that `encode` wrote. `read` decodes users' functions, `others` those of stages that are not `needed`.
    Names of streams and outputs are checked: nodes make folders with the names of outputs."""
    if len(data) > wire.PLAN_BYTES_MAX:
        raise PlanError(f"a plan of {len(data)} bytes; the most is {wire.PLAN_BYTES_MAX}")
    try:
        envelope = _envelope.decode(data)
        if envelope.format != wire.FORMAT:
            raise PlanError(
                f"this plan is written in format {envelope.format}, this node reads {wire.FORMAT}; "
                "run the same version of Rove on both ends"
            )
        return _stages(_plan.decode(envelope.plan), read, needed, others)
    except (PlanError, BadName):
        raise
    except Exception as error:  # msgspec, Arrow, sqlglot and Python each have their own error for bad bytes
        raise PlanError(f"these bytes are not a plan of Rove: {type(error).__name__}: {error}") from error


def _stages(plan: wire.Plan, read: Reader, needed: Collection[Stage] | None, others: Reader) -> Stages:
    operators: list[Operator] = []
    for n, word in enumerate(plan.operators):
        if isinstance(word, wire.Source | wire.Received):
            checked_name(word.stream, "a stream")
        operators.append(_read(word, operators, read if needed is None or n in needed else others))
    return Stages(
        tuple(operators),
        tuple((checked_output(name), Stage(n)) for name, n in plan.outputs),
        tuple((Stage(n), where) for n, where in plan.hints),
    )


def _checked(operator: Operator, stages: Stages, number: int, pickled: Pickler | None) -> wire.Operator:
    """The wire form of an operator, after checking that it decodes to an equal operator."""
    word = _write(operator, stages.inputs[number], pickled)

    def own_function(_: wire.Function) -> Any:
        return operator.function if isinstance(operator, Map | InSpark) else None

    if _read(word, stages.operators, own_function) != operator:
        raise PlanError(f"{type(operator).__name__} cannot be sent: another node would build it differently")
    return word


def _write(operator: Operator, inputs: Sequence[Stage], pickled: Pickler | None) -> wire.Operator:
    below = operator.inputs[0].schema if operator.inputs else pa.schema([])

    def named(columns: Sequence[Named]) -> wire.Named:
        return tuple((name, write_expression(e, below)) for name, e in columns)

    match operator:
        case Source(stream=stream, columns=columns):
            return wire.Source(stream, write_schema(columns))
        case Received(stream=stream, columns=columns, carried=carried):
            windows = tuple((name, None if w is None else _write_window(w)) for name, w in carried.windows)
            return wire.Received(stream, write_schema(columns), carried.event_time, carried.delay_us, windows)
        case Table(path=path, columns=columns, format=form, options=options):
            return wire.Table(path, write_schema(columns), form, options)
        case Filter(condition=condition):
            return wire.Filter(inputs[0], write_expression(condition, below))
        case Project(columns=columns):
            return wire.Project(inputs[0], named(columns))
        case Watermark(column=column, delay_us=delay):
            return wire.Watermark(inputs[0], column, delay)
        case Map(function=function, columns=columns):
            return wire.Map(inputs[0], write_function(function, pickled), write_schema(columns))
        case Union():
            return wire.Union(tuple(inputs))
        case Aggregate(window=window, time=time, keys=keys, mode=mode, window_name=name):
            calls, scope = _write_calls(operator)
            moment = write_expression(time, below)
            return wire.Aggregate(inputs[0], _write_window(window), moment, named(keys), calls, scope, mode, name)
        case SparkAggregate(groups=groups, aggregates=aggregates, why=why):
            return wire.SparkAggregate(inputs[0], named(groups), _calls(aggregates, below), why)
        case Join(left=left, right=right, condition=condition):
            word = None if condition is None else write_expression(condition, _both(left, right))
            a, b, sides = operator.left_keys, operator.right_keys, (inputs[0], inputs[1])
            return wire.Join(*sides, operator.how, a, b, operator.using, word)
        case SparkSelect(text=text, columns=columns, carried=carried, why=why):
            event_time, delay, update = carried.event_time, carried.delay_us, operator.needs_update
            return wire.SparkSelect(tuple(inputs), text, write_schema(columns), event_time, delay, why, update)
        case Deduplicate(columns=columns, within_watermark=within):
            return wire.Deduplicate(inputs[0], columns, within)
        case CountWindow(keys=keys, aggregates=aggregates, every_us=every, rows=rows):
            return wire.CountWindow(inputs[0], keys, _calls(aggregates, below), every, rows)
        case Scan(keys=keys, aggregates=aggregates, every_us=every):
            return wire.Scan(inputs[0], keys, _calls(aggregates, below), every)
        case InSpark(function=function):
            return wire.InSpark(inputs[0], write_function(function, pickled))
        case Shown(columns=columns):
            return wire.Shown(inputs[0], columns)
    raise PlanError(f"{type(operator).__name__} cannot be written into a plan's bytes")


def _read(word: wire.Operator, known: Sequence[Operator], function: Reader) -> Operator:
    """The operator, built over the operators before it. Its constructor refuses bad input."""
    match word:
        case wire.Source():
            return Source(word.stream, read_schema(word.columns))
        case wire.Received():
            windows = tuple((name, None if w is None else _read_window(w)) for name, w in word.windows)
            return Received(word.stream, read_schema(word.columns), Traits(word.event_time, word.delay_us, windows))
        case wire.Table():
            return Table(word.path, read_schema(word.columns), word.format, word.options)
        case wire.Union():
            return Union(tuple(_at(n, known) for n in word.members))
        case wire.Join():
            left, right = _at(word.left, known), _at(word.right, known)
            if len(word.left_keys) != len(word.right_keys):
                raise PlanError("a join needs the same number of keys on both sides")
            condition = None if word.condition is None else read_expression(word.condition, _both(left, right))
            return Join(left, right, word.how, word.left_keys, word.right_keys, word.using, condition)
        case wire.SparkSelect():
            members, carried = tuple(_at(n, known) for n in word.members), Traits(word.event_time, word.delay_us)
            return SparkSelect(members, word.text, read_schema(word.columns), carried, word.why, word.needs_update)
    return _read_over(_at(word.input, known), word, function)


def _read_over(below: Operator, word: wire.Unary, function: Reader) -> Operator:
    def named(columns: wire.Named) -> tuple[Named, ...]:
        return tuple((name, read_expression(e, below.schema)) for name, e in columns)

    def calls(words: wire.Calls) -> tuple[AggregateCall, ...]:
        return tuple(read_call(w, below.schema) for w in words)

    match word:
        case wire.Filter():
            return Filter(below, read_expression(word.condition, below.schema))
        case wire.Project():
            return Project(below, named(word.columns))
        case wire.Watermark():
            return Watermark(below, word.column, word.delay_us)
        case wire.Map():
            return Map(below, function(word.function), read_schema(word.columns))
        case wire.Aggregate():
            window, time = _read_window(word.window), read_expression(word.time, below.schema)
            aggregates = _read_calls(word, below)
            return Aggregate(below, window, time, named(word.keys), aggregates, word.mode, word.window_name)
        case wire.SparkAggregate():
            return SparkAggregate(below, named(word.groups), calls(word.calls), word.why)
        case wire.Deduplicate():
            return Deduplicate(below, word.columns, word.within_watermark)
        case wire.CountWindow():
            return CountWindow(below, word.keys, calls(word.calls), word.every_us, word.rows)
        case wire.Scan():
            return Scan(below, word.keys, calls(word.calls), word.every_us)
        case wire.InSpark():
            return InSpark(below, function(word.function))
        case wire.Shown():
            return Shown(below, word.columns)


def _at(number: int, known: Sequence[Operator]) -> Operator:
    if number >= len(known):
        raise PlanError(f"an operator reads from operator {number}, which does not come before it")
    return known[number]


def _both(left: Operator, right: Operator) -> pa.Schema:
    """The columns a join's condition may use. A key that both sides have is taken from the left side."""
    return pa.schema([*left.schema, *(f for f in right.schema if f.name not in left.schema.names)])


def _write_calls(operator: Aggregate) -> tuple[wire.Calls | None, wire.Schema | None]:
    """An aggregate's calls and the columns they read. A final aggregate needs them written down, because its input has
    states and no longer those columns."""
    below = operator.input
    if operator.mode != "final":
        return _calls(operator.aggregates, below.schema), None
    if isinstance(below, Aggregate) and below.aggregates == operator.aggregates:
        return None, None
    scope = columns_read(a.argument for a in operator.aggregates if a.argument is not None)
    return _calls(operator.aggregates, scope), write_schema(scope)


def _read_calls(word: wire.Aggregate, below: Operator) -> tuple[AggregateCall, ...]:
    if word.calls is not None:
        scope = below.schema if word.scope is None else read_schema(word.scope)
        return tuple(read_call(w, scope) for w in word.calls)
    if not isinstance(below, Aggregate):
        raise PlanError("a final aggregate has no partial aggregate below it")
    return below.aggregates


def _calls(aggregates: Sequence[AggregateCall], schema: pa.Schema) -> wire.Calls:
    return tuple(write_call(a, schema) for a in aggregates)


def _write_window(window: Window) -> wire.Window:
    return wire.Window(window.size_us, window.slide_us, window.offset_us)


def _read_window(word: wire.Window) -> Window:
    return Window(word.size_us, word.slide_us, word.offset_us)

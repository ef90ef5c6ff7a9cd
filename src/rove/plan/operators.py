"""The steps of a query, as frozen values.

Law: an operator that exists is sound. Constructors refuse bad plans, so nothing later has to check again. Data flows
from `inputs` to the operator; a plan is its last operator.

    Aggregate ── Watermark ── Filter ── Source
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from rove.model.errors import PlanError, TypeMismatch, nearest
from rove.model.schema import BOOLEAN, STRING, TIMESTAMP, WINDOW, schema_text, type_name
from rove.plan.aggregates import AggregateCall
from rove.plan.expressions.tree import Call, Column, Expr, Literal, literal, sql
from rove.plan.windows import Window

PANE = "__pane"  # the event-time column of partial results: when their pane starts
VIEW = "__rove_"  # begins the names of the views over which a SELECT in Spark reads its inputs
BY_NAME = "table"  # the format of a table that Spark knows by its name
INLINE = "inline values"  # the format of a table whose rows are its path: VALUES (1, 'x'), …
Named = tuple[str, Expr]


@dataclass(frozen=True, slots=True)
class Traits:
    """Event time after an operator: the column that holds it, and the columns that hold windows of it. A window column
    that mixes kinds of windows has None."""

    event_time: str | None = None
    delay_us: int = 0
    windows: tuple[tuple[str, Window | None], ...] = ()

    def window_of(self, column: str) -> Window | None:
        return dict(self.windows).get(column)


@dataclass(frozen=True, slots=True)
class Operator:
    """Any step of a plan. `schema` is its output, `traits` its event time. It is `static` if it reads tables only."""

    schema: pa.Schema = field(init=False, repr=False, compare=False)
    traits: Traits = field(init=False, repr=False, compare=False)
    static: bool = field(init=False, repr=False, compare=False)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    def over(self, inputs: tuple[Operator, ...]) -> Operator:
        """The same step over other inputs. Its constructor checks the inputs again."""
        return self

    def _settle(self, schema: pa.Schema, traits: Traits) -> None:
        """Store what the constructor worked out. This is the only write to a frozen operator."""
        if not isinstance(self, InSpark):
            for below in self.inputs:
                refuse_repeated(below.schema.names)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "traits", traits)
        tables = bool(self.inputs) and all(i.static for i in self.inputs)
        object.__setattr__(self, "static", tables or isinstance(self, Table))


@dataclass(frozen=True, slots=True)
class Source(Operator):
    """A named stream."""

    stream: str
    columns: pa.Schema

    def __post_init__(self) -> None:
        if not self.columns.names:
            raise PlanError(f"stream `{self.stream}` has no columns")
        self._settle(self.columns, Traits())


@dataclass(frozen=True, slots=True)
class Received(Operator):
    """The rows that a lower part of the plan sends up, with their event-time traits."""

    stream: str
    columns: pa.Schema
    carried: Traits

    def __post_init__(self) -> None:
        self._settle(self.columns, self.carried)


@dataclass(frozen=True, slots=True)
class Table(Operator):
    """A table: rows that are complete when the query starts. Spark reads it from a path in a format, or by the name of
    a table in its catalog, or its rows are written in the statement. `options` go to Spark's reader."""

    path: str
    columns: pa.Schema
    format: str = BY_NAME
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.columns.names:
            raise PlanError(f"table `{self.path}` has no columns")
        self._settle(self.columns, Traits())


@dataclass(frozen=True, slots=True)
class Unary(Operator):
    """A step over one input."""

    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def over(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, input=inputs[0])


@dataclass(frozen=True, slots=True)
class Filter(Unary):
    """Keeps the rows for which the condition is true."""

    condition: Expr

    def __post_init__(self) -> None:
        if self.condition.dtype != BOOLEAN and not isinstance(self.condition.dtype, pa.OpaqueType):
            raise TypeMismatch(
                f"a condition must be boolean; `{sql(self.condition)}` is {type_name(self.condition.dtype)}"
            )
        self._settle(self.input.schema, self.input.traits)


@dataclass(frozen=True, slots=True)
class Project(Unary):
    """Computes the output columns, in order."""

    columns: tuple[Named, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError("a select needs at least one column")
        refuse_repeated([name for name, _ in self.columns])
        self._settle(pa.schema([(name, expr.dtype) for name, expr in self.columns]), self._carried())

    def _carried(self) -> Traits:
        """Event time keeps its meaning under its new name. `window(event_time, …)` makes a window column."""
        before = self.input.traits
        event_time = None
        windows: list[tuple[str, Window | None]] = []
        known = dict(before.windows)
        for name, expr in self.columns:
            if isinstance(expr, Column):
                if expr.name == before.event_time and (event_time is None or name == before.event_time):
                    event_time = name  # of several copies, take the one that kept its name
                if expr.name in known:
                    windows.append((name, known[expr.name]))
            elif before.event_time and (spec := window_call(expr)) and spec[0] == before.event_time:
                windows.append((name, spec[1]))
        return Traits(event_time, before.delay_us, tuple(windows))


@dataclass(frozen=True, slots=True)
class Watermark(Unary):
    """Declares the event-time column and how late a row may be against its own origin."""

    column: str
    delay_us: int

    def __post_init__(self) -> None:
        dtype = column_of(self.input.schema, self.column).dtype
        if dtype != TIMESTAMP:
            raise PlanError(f"withWatermark needs a timestamp column; `{self.column}` is {type_name(dtype)}")
        object.__setattr__(self, "column", column_of(self.input.schema, self.column).name)
        windows = self.input.traits.windows if self.input.traits.event_time == self.column else ()
        self._settle(self.input.schema, Traits(self.column, self.delay_us, windows))

    @property
    def replaces(self) -> bool:
        """Whether an earlier watermark is on another column, so that its promises do not hold for this one."""
        earlier = any(isinstance(o, Watermark) for o in walk(self.input))
        return earlier and self.input.traits.event_time != self.column


@dataclass(frozen=True, slots=True)
class Map(Unary):
    """A user's function over whole record batches. It is stateless, as `mapInArrow` is in Spark."""

    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] = field(compare=False)
    columns: pa.Schema
    identity: int = field(init=False, repr=False)  # two functions are equal only if they are the same object

    def __post_init__(self) -> None:
        # The function may have changed the event-time column, so users declare it again, as in Spark.
        object.__setattr__(self, "identity", id(self.function))
        self._settle(self.columns, Traits())


@dataclass(frozen=True, slots=True)
class At(Unary):
    """A hint where the steps below it run, down to the next hint: `device`, `edge`, `cloud`, or a node's name.

    It does not change rows. No rule moves a step across it.
    """

    where: str

    def __post_init__(self) -> None:
        if not self.where.strip():
            raise PlanError("at(…) needs a place: `device`, `edge`, `cloud`, or the name of a node")
        self._settle(self.input.schema, self.input.traits)


@dataclass(frozen=True, slots=True)
class _Several(Operator):
    members: tuple[Operator, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.members

    def over(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, members=inputs)


@dataclass(frozen=True, slots=True)
class Union(_Several):
    """The rows of all inputs, which have equal schemas. Batches keep their names."""

    def __post_init__(self) -> None:
        first, *rest = self.members
        for other in rest:
            if not other.schema.equals(first.schema):
                raise PlanError(
                    f"union of different columns: {schema_text(first.schema)} and {schema_text(other.schema)}"
                )
            if other.static != first.static:
                raise PlanError("Spark has no union of a stream and a table; join them, or send both as streams")
        times = {m.traits.event_time for m in self.members}
        delay = max(m.traits.delay_us for m in self.members)
        known = [dict(m.traits.windows) for m in self.members]
        windows = tuple(
            (name, window if all(each[name] == window for each in known) else None)
            for name, window in first.traits.windows
            if all(name in each for each in known)
        )
        self._settle(first.schema, Traits(times.pop(), delay, windows) if len(times) == 1 else Traits())


@dataclass(frozen=True, slots=True)
class Aggregate(Unary):
    """A windowed groupBy. `mode` is whole, or partial below and final above a cut.

    Whole and final come out as `window, keys…, results…`; partial as `__pane, keys…, states…`, one row for a pane and
    key (and for each distinct value, where duplicates are being removed).
    """

    window: Window
    time: Expr
    keys: tuple[Named, ...]
    aggregates: tuple[AggregateCall, ...]
    mode: str = "whole"
    window_name: str = "window"

    def __post_init__(self) -> None:
        if self.input.traits.event_time is None and self.starts_of is None:
            raise PlanError(
                "a window over an unbounded stream needs event time: call withWatermark(column, delay) before groupBy"
            )
        key_fields = [(name, expr.dtype) for name, expr in self.keys]
        if self.mode == "partial":
            states = [(s.name, s.dtype) for a in self.aggregates for s in a.states]
            schema = pa.schema([(PANE, TIMESTAMP), *key_fields, *states])
            self._settle(schema, Traits(PANE))
            return
        results = [(a.name, a.dtype) for a in self.aggregates]
        schema = pa.schema([(self.window_name, WINDOW), *key_fields, *results])
        refuse_repeated(schema.names)
        self._settle(schema, Traits(None, 0, ((self.window_name, self.window),)))

    @property
    def starts_of(self) -> str | None:
        """The window column whose start is the time of this aggregate, if that window is known to close."""
        match self.time:
            case Call(name=".start", args=(Column(name=name),)) if self.input.traits.window_of(name) is not None:
                return name
        return None

    @property
    def window_column(self) -> str | None:
        """The input column that already holds the window to group by."""
        name = self.starts_of
        return name if name is not None and self.input.traits.window_of(name) == self.window else None


@dataclass(frozen=True, slots=True)
class SparkAggregate(Unary):
    """A groupBy whose windows only Spark computes: sessions, and aggregates of aggregates."""

    groups: tuple[Named, ...]
    aggregates: tuple[AggregateCall, ...]
    why: str

    def __post_init__(self) -> None:
        groups = [(name, e.dtype) for name, e in self.groups]
        schema = pa.schema([*groups, *((a.name, a.dtype) for a in self.aggregates)])
        refuse_repeated(schema.names)
        self._settle(schema, Traits())


@dataclass(frozen=True, slots=True)
class SparkSelect(_Several):
    """A SELECT that only Spark computes, as SQL over views of its inputs: `__rove_0` is the first, and so on."""

    text: str
    columns: pa.Schema
    carried: Traits
    why: str
    needs_update: bool = False  # it groups without a window of event time

    def __post_init__(self) -> None:
        refuse_repeated(self.columns.names)
        self._settle(self.columns, self.carried)


@dataclass(frozen=True, slots=True)
class Join(Operator):
    """Two streams, or a stream and a table, matched on equal keys. With `using` the keys come out once and first, as in
    PySpark. `condition` is an additional condition over the columns of both sides."""

    left: Operator
    right: Operator
    how: str
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    using: bool
    condition: Expr | None = None

    def __post_init__(self) -> None:
        left, right = self.left.schema, self.right.schema
        if self.using:
            keys = [left.field(k) for k in self.left_keys]
            rest = [f for f in left if f.name not in self.left_keys]
            other = [f for f in right if f.name not in self.right_keys]
            fields = [*keys, *rest] if self.how in ("left_semi", "left_anti") else [*keys, *rest, *other]
        else:
            fields = list(left) if self.how in ("left_semi", "left_anti") else [*left, *right]
        refuse_repeated([f.name for f in fields], "join")
        self._refuse_unmatched_of_tables()
        timed = (self.right if self.left.static else self.left).traits
        self._settle(pa.schema(fields), Traits(timed.event_time, timed.delay_us, timed.windows))

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are kept until matching rows arrive. A table is complete, so nothing waits for it."""
        return not self.left.static and not self.right.static

    def _refuse_unmatched_of_tables(self) -> None:
        """Refuse outer joins that need the unmatched rows of a table: the stream never ends, so they are never
        known."""
        if self.left.static == self.right.static:
            return
        possible = ("inner", "right_outer") if self.left.static else ("inner", "left_outer", "left_semi", "left_anti")
        if self.how not in possible:
            raise PlanError(
                f"a {self.how} join with the table on the {'left' if self.left.static else 'right'} needs all rows of "
                f"a stream that never ends; use one of {', '.join(possible)}, or swap the sides"
            )

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def over(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, left=inputs[0], right=inputs[1])

    def window_key(self) -> tuple[int, Window] | None:
        """The position of the key pair that is the same window of event time on both sides."""
        for i, (a, b) in enumerate(zip(self.left_keys, self.right_keys, strict=True)):
            window = self.left.traits.window_of(a)
            if window is not None and window == self.right.traits.window_of(b):
                return i, window
        return None


@dataclass(frozen=True, slots=True)
class Deduplicate(Unary):
    """One row for each value of the columns; all columns if none are named."""

    columns: tuple[str, ...]
    within_watermark: bool = False

    def __post_init__(self) -> None:
        for name in self.columns:
            column_of(self.input.schema, name)
        if self.within_watermark and self.input.traits.event_time is None:
            raise PlanError("dropDuplicatesWithinWatermark needs withWatermark before it")
        self._settle(self.input.schema, self.input.traits)


@dataclass(frozen=True, slots=True)
class _Ordered(Unary):
    """The common part of operators that run over rows in event-time order. They emit once every `every_us`."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    every_us: int

    def _check(self, verb: str) -> None:
        if self.input.traits.event_time is None:
            raise PlanError(f"{verb} runs in event-time order: call withWatermark(column, delay) before it")
        if self.every_us <= 0:
            raise PlanError(f"{verb} needs an interval longer than 0")
        object.__setattr__(self, "keys", tuple(column_of(self.input.schema, k).name for k in self.keys))


@dataclass(frozen=True, slots=True)
class CountWindow(_Ordered):
    """Aggregates of every `rows` rows of a key, in event-time order. A window that is not full is not emitted."""

    rows: int

    def __post_init__(self) -> None:
        self._check("countWindow")
        if self.rows <= 0:
            raise PlanError("countWindow needs at least one row a window")
        time = self.input.traits.event_time
        keys = [self.input.schema.field(k) for k in self.keys]
        fields = [pa.field(str(time), TIMESTAMP), *keys, *((a.name, a.dtype) for a in self.aggregates)]
        schema = pa.schema(fields)
        refuse_repeated(schema.names)
        self._settle(schema, Traits(time))


@dataclass(frozen=True, slots=True)
class Scan(_Ordered):
    """Every row with the running aggregates of its key up to and including that row, in event-time order."""

    def __post_init__(self) -> None:
        self._check("scan")
        schema = pa.schema([*self.input.schema, *((a.name, a.dtype) for a in self.aggregates)])
        refuse_repeated(schema.names)
        self._settle(schema, Traits(self.input.traits.event_time))


@dataclass(frozen=True, slots=True)
class InSpark(Unary):
    """The rest of the pipeline as a user's function from DataFrame to DataFrame. Only Spark knows its columns."""

    function: Callable[[Any], Any] = field(compare=False)
    identity: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", id(self.function))
        self._settle(pa.schema([]), Traits())


def walk(plan: Operator) -> Iterator[Operator]:
    """The plan's operators, inputs first. An operator that two others read comes twice."""
    for each in plan.inputs:
        yield from walk(each)
    yield plan


def column_of(schema: pa.Schema, name: str) -> Column:
    """The column with that name, ignoring case. If there is none, the error lists the columns."""
    if name in schema.names:
        return Column(schema.field(name).type, name)
    same = [n for n in schema.names if n.lower() == name.lower()]
    if len(same) == 1:
        return Column(schema.field(same[0]).type, same[0])
    raise PlanError(f"no column `{name}`; {nearest(name, schema.names)}")


def window_call(expr: Expr) -> tuple[str, Window] | None:
    """The column and window of a `window(column, …)` expression."""
    match expr:
        case Call(name="window", args=(Column(name=name), *spans)):
            return name, Window.parse([s.value.as_py() for s in spans if isinstance(s, Literal)])
    return None


def struct_field(column: Expr, name: str) -> Expr:
    """A field of a struct column."""
    from rove.plan.expressions.functions import RULES

    return RULES["."]((column, literal(name, STRING)))


def refuse_repeated(names: list[str], verb: str = "select") -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise PlanError(f"column `{name}` appears twice after {verb}; rename or drop one (withColumnRenamed, drop)")
        seen.add(name.lower())

"""The wire form of a numbered plan: one msgspec struct (a `Form`) for each kind of operator, expression and function.

Law: a struct holds what its operator's constructor takes, and nothing that the constructor works out. An operator names
its inputs by number, always a lower one. A change to the meaning of a struct raises `FORMAT`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

FORMAT = 1
PLAN_BYTES_MAX = 4 * 1024 * 1024
OPERATORS_MAX = 500  # plans are walked recursively

Number = Annotated[int, Meta(ge=0)]  # of an operator
Schema = bytes  # an Arrow IPC schema: exact, nested types and Spark's own among them
Names = tuple[str, ...]


class Form(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The wire form of one operator, expression, function or plan."""


# Expressions


class Name(Form, frozen=True, tag=1):
    """A column."""

    name: str


class Text(Form, frozen=True, tag=2):
    """Spark SQL, to be bound against the columns that come in."""

    text: str


class Constant(Form, frozen=True, tag=3):
    """A value that has no SQL text, as one row of Arrow IPC. Its type may be one that only Spark knows."""

    dtype: Schema
    value: bytes
    text: str | None


class Foreign(Form, frozen=True, tag=4):
    """Text that only Spark reads, and the columns it uses."""

    dtype: Schema
    text: str
    columns: Names
    refusal: str


class Filled(Form, frozen=True, tag=5):
    """Spark SQL over holes of known types (`__0`, `__1`, …), and what fills them."""

    text: str
    holes: Schema
    filling: tuple[Expression, ...]


Expression = Name | Text | Constant | Foreign | Filled
Named = tuple[tuple[str, Expression], ...]


class Call(Form, frozen=True):
    """An aggregate call. `given` is the type, and the reason why only Spark runs it, of a call without a recipe."""

    function: str
    argument: Expression | None
    name: str
    given: tuple[Schema, str] | None


Calls = tuple[Call, ...]


# User's functions


class Reference(Form, frozen=True, tag=1):
    """A function that every node imports under the same name."""

    module: str
    name: str


class Pickled(Form, frozen=True, tag=2):
    """A function by value, for one version of Python. Reading it runs code."""

    name: str
    python: str
    data: bytes


Function = Reference | Pickled


# Operators


class Window(Form, frozen=True):
    size_us: int
    slide_us: int
    offset_us: int


class Source(Form, frozen=True, tag=1):
    stream: str
    columns: Schema


class Received(Form, frozen=True, tag=2):
    stream: str
    columns: Schema
    event_time: str | None
    delay_us: int
    windows: tuple[tuple[str, Window | None], ...]


class Filter(Form, frozen=True, tag=3):
    input: Number
    condition: Expression


class Project(Form, frozen=True, tag=4):
    input: Number
    columns: Named


class Watermark(Form, frozen=True, tag=5):
    input: Number
    column: str
    delay_us: int


class Map(Form, frozen=True, tag=6):
    input: Number
    function: Function
    columns: Schema


class Union(Form, frozen=True, tag=7):
    members: tuple[Number, ...]


class Aggregate(Form, frozen=True, tag=8):
    """A final aggregate reads states, not the columns its calls use. So its calls are those of the partial aggregate
    below it (`calls` is None), or `scope` holds those columns."""

    input: Number
    window: Window
    time: Expression
    keys: Named
    calls: Calls | None
    scope: Schema | None
    mode: Annotated[str, Meta(pattern=r"^(whole|partial|final)\Z")]
    window_name: str


class SparkAggregate(Form, frozen=True, tag=9):
    input: Number
    groups: Named
    calls: Calls
    why: str


class Join(Form, frozen=True, tag=10):
    left: Number
    right: Number
    how: Annotated[str, Meta(pattern=r"^(inner|(left|right|full)_outer|left_(semi|anti))\Z")]
    left_keys: Names
    right_keys: Names
    using: bool
    condition: Expression | None


class Deduplicate(Form, frozen=True, tag=11):
    input: Number
    columns: Names
    within_watermark: bool


class CountWindow(Form, frozen=True, tag=12):
    input: Number
    keys: Names
    calls: Calls
    every_us: int
    rows: int


class Scan(Form, frozen=True, tag=13):
    input: Number
    keys: Names
    calls: Calls
    every_us: int


class InSpark(Form, frozen=True, tag=14):
    input: Number
    function: Function


class Table(Form, frozen=True, tag=15):
    path: str
    columns: Schema
    format: str
    options: tuple[tuple[str, str], ...]


class SparkSelect(Form, frozen=True, tag=16):
    members: Annotated[tuple[Number, ...], Meta(min_length=1)]
    text: str
    columns: Schema
    event_time: str | None
    delay_us: int
    why: str
    needs_update: bool


class Shown(Form, frozen=True, tag=17):
    input: Number
    columns: tuple[tuple[str, str], ...]


Single = Filter | Project | Watermark | Map | Aggregate | SparkAggregate | Deduplicate | CountWindow | Scan
Unary = Single | InSpark | Shown
Operator = Source | Received | Table | Union | Join | SparkSelect | Unary


class Plan(Form, frozen=True):
    operators: Annotated[tuple[Operator, ...], Meta(max_length=OPERATORS_MAX)]
    outputs: tuple[tuple[str, Number], ...]
    hints: tuple[tuple[Number, str], ...]


class Envelope(Form, frozen=True):
    """The format number is read first, so that a plan of another format is refused by its number."""

    format: int
    plan: msgspec.Raw

"""A column expression: a piece of Spark SQL text that Python's operators can build.

Law: a Column knows its text and nothing else. Types are worked out when a stream uses the column. So this module needs
neither Arrow nor a parser.
"""

from __future__ import annotations

import datetime as dt
import re
from copy import copy
from decimal import Decimal
from typing import Any

from rove.api.arguments import checks_arguments
from rove.model.errors import ExpressionError, PlanError, WrongKind
from rove.model.names import quoted, quoted_text, unmarked

_PATH = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


@checks_arguments
class Column:
    """An expression over the columns of a stream, made with `rove.functions`.

    >>> from rove import functions as F
    >>> (F.col("boarding") + F.col("alighting") > 0).alias("busy")
    Column<((boarding + alighting) > 0) AS busy>
    """

    __slots__ = ("name", "text")

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text, self.name = text, name

    @property
    def operand(self) -> str:
        """The text for use inside a larger expression."""
        return self.text

    def __repr__(self) -> str:
        return f"Column<{unmarked(self.sql)}>"

    @property
    def sql(self) -> str:
        """The text with its alias."""
        return self.text if self.name is None else f"{self.text} AS {quoted(self.name)}"

    def alias(self, name: str, *others: str) -> Column:
        """The same value under another name. A function that makes several columns, such as `posexplode`, takes a name
        for each."""
        if others:
            return Column(f"{self.text} AS ({', '.join(quoted(n) for n in (name, *others))})")
        twin = copy(self)
        twin.name = name
        return twin

    def cast(self, dtype: str) -> Column:
        """The value as another Spark type, for example `"double"`; a value that does not fit raises."""
        return Column(f"CAST({self.operand} AS {dtype})")

    astype = cast

    def try_cast(self, dtype: str) -> Column:
        """The value as another Spark type, null where it does not fit."""
        return Column(f"TRY_CAST({self.operand} AS {dtype})")

    def isNull(self) -> Column:
        return Column(f"({self.operand} IS NULL)")

    def isNotNull(self) -> Column:
        return Column(f"({self.operand} IS NOT NULL)")

    def isNaN(self) -> Column:
        return Column(f"isnan({self.operand})")

    def eqNullSafe(self, other: Any) -> Column:
        return self._infix("<=>", other)

    def over(self, window: Any) -> Column:
        """Refused: streaming Spark has no OVER."""
        from rove.plan.expressions.tokens import NO_OVER  # needs the parser

        raise ExpressionError(NO_OVER)

    def isin(self, *values: Any) -> Column:
        given = values[0] if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset) else values
        if not given:
            return Column("FALSE")
        return Column(f"({self.operand} IN ({', '.join(literal(v) for v in given)}))")

    def between(self, low: Any, high: Any) -> Column:
        return Column(f"({self.operand} BETWEEN {literal(low)} AND {literal(high)})")

    def like(self, pattern: str) -> Column:
        return self._infix("LIKE", pattern)

    def ilike(self, pattern: str) -> Column:
        return self._infix("ILIKE", pattern)

    def rlike(self, pattern: str) -> Column:
        return self._infix("RLIKE", pattern)

    def startswith(self, other: Any) -> Column:
        return Column(f"startswith({self.operand}, {literal(other)})")

    def endswith(self, other: Any) -> Column:
        return Column(f"endswith({self.operand}, {literal(other)})")

    def contains(self, other: Any) -> Column:
        return Column(f"contains({self.operand}, {literal(other)})")

    def substr(self, start: Any, length: Any) -> Column:
        return Column(f"substring({self.operand}, {literal(start)}, {literal(length)})")

    def getField(self, name: str) -> Column:
        return Column(f"{self.operand}.{quoted(name)}")

    def getItem(self, key: Any) -> Column:
        return Column(f"{self.operand}[{literal(key)}]")

    def __getitem__(self, key: Any) -> Column:
        return self.getItem(key)

    def bitwiseAND(self, other: Any) -> Column:
        return self._infix("&", other)

    def bitwiseOR(self, other: Any) -> Column:
        return self._infix("|", other)

    def bitwiseXOR(self, other: Any) -> Column:
        return self._infix("^", other)

    def _infix(self, symbol: str, other: Any) -> Column:
        return Column(f"({self.operand} {symbol} {literal(other)})")

    def _reflected(self, symbol: str, other: Any) -> Column:
        return Column(f"({literal(other)} {symbol} {self.operand})")

    def __add__(self, other: Any) -> Column:
        return self._infix("+", other)

    def __radd__(self, other: Any) -> Column:
        return self._reflected("+", other)

    def __sub__(self, other: Any) -> Column:
        return self._infix("-", other)

    def __rsub__(self, other: Any) -> Column:
        return self._reflected("-", other)

    def __mul__(self, other: Any) -> Column:
        return self._infix("*", other)

    def __rmul__(self, other: Any) -> Column:
        return self._reflected("*", other)

    def __truediv__(self, other: Any) -> Column:
        return self._infix("/", other)

    def __rtruediv__(self, other: Any) -> Column:
        return self._reflected("/", other)

    def __mod__(self, other: Any) -> Column:
        return self._infix("%", other)

    def __rmod__(self, other: Any) -> Column:
        return self._reflected("%", other)

    def __pow__(self, other: Any) -> Column:
        return Column(f"power({self.operand}, {literal(other)})")

    def __neg__(self) -> Column:
        return Column(f"(- {self.operand})")

    def __and__(self, other: Any) -> Column:
        return self._infix("AND", other)

    def __or__(self, other: Any) -> Column:
        return self._infix("OR", other)

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.operand})")

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return self._infix("=", other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return self._infix("<>", other)

    def __lt__(self, other: Any) -> Column:
        return self._infix("<", other)

    def __le__(self, other: Any) -> Column:
        return self._infix("<=", other)

    def __gt__(self, other: Any) -> Column:
        return self._infix(">", other)

    def __ge__(self, other: Any) -> Column:
        return self._infix(">=", other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("a column is neither true nor false yet; use & for and, | for or, ~ for not")


class Expression(Column):
    """Text that the user wrote. Inside a larger expression it is put in parentheses."""

    __slots__ = ()

    @property
    def operand(self) -> str:
        from rove.plan.expressions.parse import without_alias  # needs the parser

        return f"({without_alias(self.text)})"


@checks_arguments
class Case(Column):
    """A CASE, to which `when` and `otherwise` add branches."""

    __slots__ = ("branches",)

    def __init__(self, branches: tuple[tuple[str, str], ...], default: str | None = None) -> None:
        whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
        otherwise = "" if default is None else f" ELSE {default}"
        super().__init__(f"CASE {whens}{otherwise} END")
        self.branches = branches

    def when(self, condition: Column, value: Any) -> Case:
        """A further branch."""
        return Case((*self.branches, (condition.operand, literal(value))))

    def otherwise(self, value: Any) -> Column:
        """The value if no branch's condition is true."""
        return Column(Case(self.branches, literal(value)).text)


def path(name: str) -> str:
    """A dotted name as SQL: `path("place.lat")`."""
    if name.endswith(".*"):
        return f"{path(name[:-2])}.*"
    parts = [ticked.replace("``", "`") if ticked else bare for ticked, bare in _PATH.findall(name)]
    return ".".join(quoted(p) for p in parts)


def literal(value: Any) -> str:
    """A Python value as SQL text. A Column gives its own text."""
    match value:
        case Column():
            return value.operand
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value) if -(2**31) <= value < 2**31 else f"{value}L"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return quoted_text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            return f"{value:f}BD"
        case dt.datetime():
            moment = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return f"TIMESTAMP'{moment.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE'{value.isoformat()}'"
        case dt.timedelta():
            sign, rest = ("-", -value) if value < dt.timedelta() else ("", value)
            clock = str(dt.timedelta(seconds=rest.seconds, microseconds=rest.microseconds)).rjust(8, "0")
            return f"INTERVAL '{sign}{rest.days} {clock}' DAY TO SECOND"
        case list() | tuple():
            return f"array({', '.join(literal(each) for each in value)})"
    raise WrongKind(f"no SQL literal for {value!r:.80} of type {type(value).__name__}")


def bracketed(stream: Any, key: Any) -> Any:
    """`stream[0]`, `stream[["a", "b"]]` and `stream[condition]`, as on a DataFrame."""
    match key:
        case Column():
            return stream.where(key)
        case list() | tuple():
            return stream.select(*key)
        case int():
            return stream[stream.columns[key]]
    raise PlanError(f"brackets take a name, a place, a list of columns or a condition, got {key!r}")

"""A column expression: a piece of Spark SQL text that Python's operators can build.

Law: a Column knows its text and nothing else; types are worked out when a stream takes it. So this module needs
neither Arrow nor a parser.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from rove.model.names import quoted

_PATH = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})


class Column:
    """An expression over the columns of a stream, made with `rove.functions`.

    >>> from rove import functions as F
    >>> (F.col("boarding") + F.col("alighting") > 0).alias("busy")
    Column<((boarding + alighting) > 0) AS busy>
    """

    __slots__ = ("name", "text")

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text, self.name = text, name

    def __repr__(self) -> str:
        return f"Column<{self.sql}>"

    @property
    def sql(self) -> str:
        """The text with its alias."""
        return self.text if self.name is None else f"{self.text} AS {quoted(self.name)}"

    def alias(self, name: str) -> Column:
        """The same value under another name."""
        return Column(self.text, name)

    def cast(self, dtype: str) -> Column:
        """The value as another Spark type, for example `"double"`; a value that does not fit raises."""
        return Column(f"CAST({self.text} AS {dtype})")

    astype = cast

    def try_cast(self, dtype: str) -> Column:
        """The value as another Spark type, null where it does not fit."""
        return Column(f"TRY_CAST({self.text} AS {dtype})")

    def isNull(self) -> Column:
        return Column(f"({self.text} IS NULL)")

    def isNotNull(self) -> Column:
        return Column(f"({self.text} IS NOT NULL)")

    def isNaN(self) -> Column:
        return Column(f"isnan({self.text})")

    def eqNullSafe(self, other: Any) -> Column:
        return self._infix("<=>", other)

    def isin(self, *values: Any) -> Column:
        given = values[0] if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset) else values
        if not given:
            return Column("FALSE")
        return Column(f"({self.text} IN ({', '.join(literal(v) for v in given)}))")

    def between(self, low: Any, high: Any) -> Column:
        return Column(f"({self.text} BETWEEN {literal(low)} AND {literal(high)})")

    def like(self, pattern: str) -> Column:
        return self._infix("LIKE", pattern)

    def ilike(self, pattern: str) -> Column:
        return self._infix("ILIKE", pattern)

    def rlike(self, pattern: str) -> Column:
        return self._infix("RLIKE", pattern)

    def startswith(self, other: Any) -> Column:
        return Column(f"startswith({self.text}, {literal(other)})")

    def endswith(self, other: Any) -> Column:
        return Column(f"endswith({self.text}, {literal(other)})")

    def contains(self, other: Any) -> Column:
        return Column(f"contains({self.text}, {literal(other)})")

    def substr(self, start: Any, length: Any) -> Column:
        return Column(f"substring({self.text}, {literal(start)}, {literal(length)})")

    def getField(self, name: str) -> Column:
        return Column(f"{self.text}.{quoted(name)}")

    def getItem(self, key: Any) -> Column:
        return Column(f"{self.text}[{literal(key)}]")

    def __getitem__(self, key: Any) -> Column:
        return self.getItem(key)

    def when(self, condition: Column, value: Any) -> Column:
        """A further branch of `F.when(…)`."""
        self._expect_case("when")
        return Column(f"{self.text.removesuffix(' END')} WHEN {condition.text} THEN {literal(value)} END")

    def otherwise(self, value: Any) -> Column:
        """What `F.when(…)` gives where no branch holds."""
        self._expect_case("otherwise")
        return Column(f"{self.text.removesuffix(' END')} ELSE {literal(value)} END")

    def _expect_case(self, verb: str) -> None:
        if not self.text.startswith("CASE WHEN") or " ELSE " in self.text.rpartition(" THEN ")[2]:
            raise TypeError(f"{verb}() continues F.when(…), and comes before otherwise(…)")

    def bitwiseAND(self, other: Any) -> Column:
        return self._infix("&", other)

    def bitwiseOR(self, other: Any) -> Column:
        return self._infix("|", other)

    def bitwiseXOR(self, other: Any) -> Column:
        return self._infix("^", other)

    def _infix(self, symbol: str, other: Any) -> Column:
        return Column(f"({self.text} {symbol} {literal(other)})")

    def _reflected(self, symbol: str, other: Any) -> Column:
        return Column(f"({literal(other)} {symbol} {self.text})")

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
        return Column(f"power({self.text}, {literal(other)})")

    def __neg__(self) -> Column:
        return Column(f"(- {self.text})")

    def __and__(self, other: Any) -> Column:
        return self._infix("AND", other)

    def __or__(self, other: Any) -> Column:
        return self._infix("OR", other)

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.text})")

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


def path(name: str) -> str:
    """A dotted name as SQL: `path("place.lat")`."""
    parts = [ticked.replace("``", "`") if ticked else bare for ticked, bare in _PATH.findall(name)]
    return ".".join(quoted(p) for p in parts)


def literal(value: Any) -> str:
    """A Python value as SQL text; a Column is its own text."""
    match value:
        case Column():
            return value.text
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value) if -(2**31) <= value < 2**31 else f"{value}L"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return f"'{value.translate(_ESCAPES)}'"
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
    raise TypeError(f"no SQL literal for {value!r} of type {type(value).__name__}")

"""Reads a node of a parsed statement, argument by argument.

Law: nothing is dropped. When a reading ends, every argument that was given and not taken is refused by its name. The
other modules of this folder reach arguments through a reading only.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any, cast

from sqlglot import exp

from rove.model.errors import ExpressionError
from rove.plan.expressions.parse import span

# Why a stream cannot have a clause, by the parser's name of it. These words are what users see.
REFUSED: dict[str, tuple[str, str]] = {
    "order": ("ORDER BY", "it would need all rows of a stream that never ends; sort what the query has written"),
    "sort": ("SORT BY", "it would need all rows of a stream that never ends; sort what the query has written"),
    "cluster": ("CLUSTER BY", "it sorts, which needs all rows of a stream that never ends; leave it out"),
    "distribute": ("DISTRIBUTE BY", "Rove decides where rows are computed; leave it out"),
    "limit": ("LIMIT", "which rows of a stream come first is not defined; limit what the query has written"),
    "offset": ("OFFSET", "which rows of a stream come first is not defined; limit what the query has written"),
    "sample": ("TABLESAMPLE", "a sample is another one at each run; use a condition such as `id % 10 = 0`"),
    "qualify": ("QUALIFY", "Spark has no such clause, and no row numbers over a stream; group by a window"),
    "windows": ("WINDOW", "streaming Spark has no OVER; group by a window of event time"),
    "locks": ("FOR UPDATE", "Spark has no locks; leave it out"),
    "into": ("INTO", "say where rows end with writeStream"),
    "db": ("a qualified name", "streams have one name without dots"),
    "catalog": ("a qualified name", "streams have one name without dots"),
    "version": ("AS OF", "a stream has no versions"),
    "recursive": ("WITH RECURSIVE", "recursion is not read here; write the steps out"),
    "by_name": ("BY NAME", "name the columns on both sides in the same order"),
    "hints": ("a hint on a table", "write hints after SELECT"),
    "except_": ("EXCEPT", "only `*` and `t.*` as whole entries may have it"),
    "replace": ("REPLACE", "Spark has no `* REPLACE`; name the columns"),
    "rename": ("RENAME", "Spark has no `* RENAME`; name the columns"),
    "ilike": ("ILIKE", "Spark has no `* ILIKE`; name the columns"),
    "joins": ("JOIN before ON", "write each ON right after its own JOIN"),
    "totals": ("WITH TOTALS", "Spark has no such clause"),
    "distinct": ("DISTINCT", "it is not read here"),
    "materialized": ("MATERIALIZED", "Spark decides that by itself; leave it out"),
    "using": ("USING", "it is not read here"),
    "on": ("ON", "it is not read here; name the keys"),
}


class Reading:
    """One node. Use it as a context: `with Reading(node, text) as part: part.take("where")`."""

    __slots__ = ("_left", "_node", "_text")

    def __init__(self, node: exp.Expr, text: str) -> None:
        self._node, self._text = node, text
        self._left = {name: value for name, value in node.args.items() if _is_set(value)}

    def take(self, name: str) -> Any:
        """An argument, or None. From now on it counts as read."""
        return self._left.pop(name, None)

    def list(self, name: str) -> list[Any]:
        """An argument that is a list; an empty list if it is not given."""
        return list(self.take(name) or [])

    def word(self, name: str) -> str:
        """An argument that is a word or an identifier, as text; empty if it is not given."""
        found = self.take(name)
        return found.name if isinstance(found, exp.Expr) else str(found or "")

    def whole(self) -> exp.Expression:
        """The node itself, for a part that Spark reads as text. All of it counts as read."""
        self._left = {}
        return cast(exp.Expression, self._node)

    def look(self) -> dict[str, Any]:
        """The arguments that are not read yet."""
        return dict(self._left)

    def change(self, name: str, value: exp.Expr | None) -> None:
        """Put another value in the place of an argument that is not read yet; None if nothing is left of it."""
        self._node.set(name, value)
        self._left.pop(name, None)
        if value is not None:
            self._left[name] = value

    def skip(self, *names: str) -> None:
        """Skip arguments that do not affect rows, such as hints."""
        for name in names:
            self.take(name)

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and self._left:
            name = min(self._left, key=lambda n: (n not in REFUSED, n))
            raise refused(name, self._node, self._text)


def refused(name: str, node: exp.Expr, text: str) -> ExpressionError:
    """The error for an argument of a node that no code reads."""
    value = node.args.get(name)
    inside = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
    place = next((found for v in inside if (found := span(v))), span(node))
    words, why = REFUSED.get(name, (name.strip("_").replace("_", " ").upper(), "it is not read here"))
    until = len(text) if place is None else place[0]
    if words_there := list(re.finditer(rf"(?i)\b{words.split()[0]}\b", text[:until])):
        place = words_there[-1].span()
    return ExpressionError(f"{words} cannot be used on a stream: {why}", text, place)


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value != [] and value != ""

"""The select list: stars, aliases, and aliases that later entries read.

Law: a name in the list is a column of FROM, or else an alias that stands before it, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from rove.model.errors import ExpressionError, RoveError, UnknownColumn, UnknownFunction
from rove.plan import build
from rove.plan.build import Item
from rove.plan.expressions.bind import bind_node
from rove.plan.expressions.parse import span
from rove.plan.operators import Operator
from rove.plan.sql.column_names import Types, spark_name
from rove.plan.sql.filters import without_filters
from rove.plan.sql.reading import Reading
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, column, excepted, star_of, struct_star

WINDOWS = ("window", "session_window")  # functions whose result can be read under their own name
_ALIAS = "__alias_"  # begins the name of a column that holds an alias for later entries


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a select list: an expression over the plan, its name, and whether that name is an alias."""

    node: exp.Expression
    name: str
    aliased: bool = False


def entries_of(nodes: Sequence[exp.Expression], scope: Scope, types: Types, text: str) -> list[Entry]:
    """The entries of a select list, stars written out. `types` are those of the plan's columns."""
    found: list[Entry] = []
    for node in nodes:
        star = star_of(node)
        if star is not None:
            found += starred(node, star, scope, text)
        elif isinstance(node, exp.Alias):
            with Reading(node, text) as part:
                name = part.take("alias")
                inner = part.take("this")
            found.append(Entry(_resolved(inner, scope, text, found), name.name, aliased=True))
        else:
            inside = _resolved(node, scope, text, found)
            found.append(Entry(inside, node.name if isinstance(node, exp.Column) else own_name(inside, types, text)))
    return [replace(e, node=without_filters(build.bare(e.node))) for e in found]


def own_name(node: exp.Expression, types: Types, text: str) -> str:
    """The name that Spark gives to an entry without an alias."""
    if (name := spark_name(node, types)) is None:
        _refuse_unknown(node, types, text)
        raise ExpressionError("give this column a name with AS: only Spark knows the one it makes", text, span(node))
    return name


def _refuse_unknown(node: exp.Expression, types: Types, text: str) -> None:
    """Refuse an unknown function by its name, before a name for its column is needed."""
    try:
        bind_node(node, pa.schema(list(types.items())), text)
    except UnknownFunction:
        raise
    except RoveError:
        return


def listed(plan: Operator, entries: Sequence[Entry], text: str) -> Operator:
    """The plan of a select list. An alias that a later entry reads is computed first, in a step of its own."""
    shown: list[Item] = []
    for n, entry in enumerate(entries):
        name, node = f"{_ALIAS}{n}", entry.node
        if any(name in _reads(e.node) for e in entries[n + 1 :]):
            kept = [Item(exp.column(c, quoted=True), text, c) for c in plan.schema.names]
            plan = build.selected(plan, [*kept, Item(node, text, name)])
            node = exp.column(name, quoted=True)
        shown.append(Item(node, text, entry.name, aliased=entry.aliased))
    return build.selected(plan, shown)


def is_alias(node: exp.Expression) -> bool:
    """Whether a column stands for an alias of the select list."""
    return isinstance(node, exp.Column) and node.name.startswith(_ALIAS)


def alias_of(node: exp.Expression) -> int:
    """The entry whose alias a column stands for."""
    return int(node.name.removeprefix(_ALIAS))


def _reads(node: exp.Expression) -> set[str]:
    return {c.parts[0].name for c in node.find_all(exp.Column)}


def _resolved(node: exp.Expression, scope: Scope, text: str, before: Sequence[Entry]) -> exp.Expression:
    def alias(name: exp.Column) -> exp.Expression | None:
        first, *fields = (p.name for p in name.parts)
        found = [n for n, e in enumerate(before) if e.aliased and e.name.lower() == first.lower()]
        if len(found) > 1:
            raise UnknownColumn(f"`{first}` is ambiguous: {len(found)} aliases have this name", text, span(name))
        shown = ".".join([first, *fields])
        if not found and first.lower() in WINDOWS:  # GROUP BY window(…) makes a column of this name
            return column(first.lower(), fields, name, shown)
        return column(f"{_ALIAS}{found[0]}", fields, name, shown) if found else None

    return resolved(node, scope, text, otherwise=alias)


def starred(node: exp.Expression, star: exp.Star, scope: Scope, text: str) -> list[Entry]:
    """`*`, `t.*`, `struct.*`, each with EXCEPT or without."""
    qualifier = list(node.parts[:-1]) if isinstance(node, exp.Column) else []
    with Reading(star, text) as part:
        without = part.list("except_")
    found = scope.starred("".join(p.name for p in qualifier)) if len(qualifier) < 2 else []
    if not found:
        return [_fields(qualifier, without, scope, text)]
    found = excepted(found, without, text)
    return [Entry(column(c.column, (), node, c.name), c.name) for c in found]


def _fields(qualifier: list[exp.Expr], without: list[exp.Expression], scope: Scope, text: str) -> Entry:
    """`struct.*`, which the fields of a struct stand for."""
    *before, last = qualifier
    name = resolved(
        exp.Column(this=last.copy(), **dict(zip(("table", "db", "catalog"), reversed(before), strict=False))),
        scope,
        text,
    )
    if not isinstance(name, exp.Column):
        raise ExpressionError("name the fields: only those of a whole column can be had with `*`", text, span(last))
    return Entry(struct_star(name, without), "*")

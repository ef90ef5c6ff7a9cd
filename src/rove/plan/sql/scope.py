"""The names that a part of a statement can see.

Law: names resolve as in Spark, ignoring case. `t.a` is first a column of the relation `t`, then a field of a column
`t`. A name that two columns have is refused as ambiguous. A column of the plan has one name of its own, whatever the
statement calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rove.model.errors import UnknownColumn, nearest
from rove.model.names import is_owner
from rove.plan.expressions.bind import UNITS
from rove.plan.expressions.parse import SHOWN, span
from rove.plan.operators import Operator
from rove.plan.sql.column_names import is_parameter

NO_NAME = "__rove_none"  # the column of the one row that a SELECT without FROM reads; nothing can name it


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that can be named. `column` is its name in the plan; `*` shows it if it is `listed`."""

    relation: str
    name: str
    column: str
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Scope:
    """The visible columns, in the order in which `*` lists them."""

    columns: tuple[Visible, ...]

    @classmethod
    def of(cls, plan: Operator, relation: str) -> Scope:
        return cls(tuple(Visible(relation, name, name) for name in plan.schema.names))

    def under(self, relation: str, names: Sequence[str] = ()) -> Scope:
        """The listed columns under the name of another relation, and under other names if there are any."""
        listed = [c for c in self.columns if c.listed]
        new = names or [c.name for c in listed]
        return Scope(tuple(Visible(relation, n, c.column) for n, c in zip(new, listed, strict=True)))

    def beside(self, other: Scope) -> Scope:
        return Scope((*self.columns, *other.columns))

    def moved(self, columns: dict[str, str]) -> Scope:
        """The same names for columns that have other names in the plan now."""
        return Scope(tuple(replace(c, column=columns.get(c.column, c.column)) for c in self.columns))

    def find(self, parts: Sequence[str]) -> tuple[list[Visible], list[str]]:
        """The columns that a dotted name can mean, and the fields that remain."""
        lower = [p.lower() for p in parts]
        if len(parts) > 1:
            of = [c for c in self.columns if c.relation.lower() == lower[0] and c.name.lower() == lower[1]]
            if of:
                return _once(of), list(parts[2:])
        return _once(c for c in self.columns if c.name.lower() == lower[0] and c.listed), list(parts[1:])

    def starred(self, relation: str) -> list[Visible]:
        """The columns of `*` or, with a relation, of `relation.*`."""
        if not relation:
            return [c for c in self.columns if c.listed]
        return [c for c in self.columns if c.relation.lower() == relation.lower()]

    def resolve(self, node: exp.Column, text: str) -> exp.Expression | None:
        """The column under its name in the plan; None if there is no such column."""
        parts = [p.name for p in node.parts]
        found, fields = self.find(parts)
        if not found:
            return None
        if len(found) > 1:
            if is_owner(parts[0]):
                both = "both sides of the join have it from the same stream; give each an alias, and write F.col('x.y')"
                raise UnknownColumn(f"`{parts[1]}` is ambiguous: {both}", text, span(node))
            of = list(dict.fromkeys(f"{c.relation}.{c.name}" if c.relation else c.name for c in found))
            why = ", ".join(of) if len(of) > 1 else f"{len(found)} columns have this name; give them names of their own"
            raise UnknownColumn(f"`{'.'.join(parts)}` is ambiguous: {why}", text, span(node))
        return column(found[0].column, fields, node, ".".join(parts[len(parts) - len(fields) - 1 :]))

    def unknown(self, node: exp.Column, text: str) -> UnknownColumn:
        """The error for a name that nothing has."""
        parts, relations = [p.name for p in node.parts], {c.relation.lower() for c in self.columns}
        if is_owner(parts[0]):
            gone = "belongs to a stream that is not here, or was renamed or computed anew since; write F.col(…)"
            return UnknownColumn(f"column `{parts[1]}` {gone}", text, span(node))
        if len(parts) > 1 and parts[0].lower() in relations:
            names = [c.name for c in self.starred(parts[0])]
            return UnknownColumn(
                f"`{parts[0]}` has no column `{parts[1]}`; {nearest(parts[1], names)}", text, span(node)
            )
        names = [c.name for c in self.columns if c.listed and c.name != NO_NAME]
        return UnknownColumn(f"no column `{'.'.join(parts)}`; {nearest(parts[-1], names)}", text, span(node))


def column(name: str, fields: Sequence[str], like: exp.Expression, shown: str) -> exp.Expression:
    """A column of the plan, or a field in it, at the place of the name that the user wrote."""
    first, *rest = (exp.to_identifier(p, quoted=True) for p in (name, *fields))
    if places := [n.meta for n in like.walk() if "start" in n.meta]:
        start, end = min(p["start"] for p in places), max(p["end"] for p in places)
        first.meta.update(start=start, end=end)
    found: exp.Expression = exp.Column(this=first)
    found.meta[SHOWN] = shown[: len(shown) - sum(len(f) + 1 for f in fields)]
    for field in rest:
        found = exp.Dot(this=found, expression=field)
    found.meta[SHOWN] = shown
    return found


def star_of(node: exp.Expression) -> exp.Star | None:
    """The star of `*` or `t.*`; None for any other entry."""
    found = node.this if isinstance(node, exp.Column) else node
    return found if isinstance(found, exp.Star) else None


def excepted(found: Sequence[Visible], names: Sequence[exp.Expression], text: str) -> list[Visible]:
    """The columns of a star without those after EXCEPT, which names columns of that star only."""
    kept, own = list(found), Scope(tuple(found))
    for each in names:
        gone, fields = own.find([p.name for p in each.parts] if isinstance(each, exp.Column) else [""])
        if fields and gone:
            raise UnknownColumn("EXCEPT takes whole columns; write the struct without this field", text, span(each))
        if len(gone) != 1 or gone[0] not in kept:
            hint = nearest(each.name, [c.name for c in kept])
            raise UnknownColumn(f"EXCEPT: `{each.name}` is not one column of `*`; {hint}", text, span(each))
        kept = [c for c in kept if c.column != gone[0].column]
    return kept


def struct_star(column: exp.Column, without: Sequence[exp.Expression] = ()) -> exp.Column:
    """`column.*`, which stands for the fields of a struct, without those after EXCEPT."""
    return exp.Column(this=exp.Star(except_=list(without)) if without else exp.Star(), table=column.this)


def named_columns(node: exp.Expression) -> list[exp.Column]:
    """The names of columns in an expression: not parameters of lambdas, not units of time."""
    return [c for c in node.find_all(exp.Column) if not is_parameter(c) and not _is_unit(c)]


def _is_unit(node: exp.Column) -> bool:
    above = node.parent
    return (
        isinstance(above, exp.Anonymous)
        and above.expressions[0] is node
        and len(above.expressions) == 3
        and len(node.parts) == 1
        and node.name.lower() in UNITS
    )


def _once(columns: Iterable[Visible]) -> list[Visible]:
    """One of each column of the plan: the same column under two names is not ambiguous."""
    return list({c.column: c for c in columns}.values())

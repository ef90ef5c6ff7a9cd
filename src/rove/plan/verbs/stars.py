"""What an entry of a verb stands for: one value, the columns of `*`, or the fields of `struct.*`.

Law: every part of an entry is read, or refused by its name. A star has EXCEPT or nothing, an alias has one name.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from rove.model.errors import ExpressionError, TypeMismatch, UnknownColumn, nearest
from rove.model.schema import type_name
from rove.plan.expressions.bind import bind, bind_node
from rove.plan.expressions.parse import span
from rove.plan.expressions.tree import Column, Expr
from rove.plan.operators import Named, Operator, struct_field
from rove.plan.sql.reading import Reading
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, excepted, star_of


def bound(plan: Operator, node: exp.Expression, text: str) -> Expr:
    """The typed tree of an expression over the columns of a plan, with the stars inside calls written out."""
    if node.find(exp.Star):
        node = resolved(node, Scope.of(plan, ""), text)
    return bind_node(node, plan.schema, text)


def named(node: exp.Expression, text: str) -> tuple[exp.Expression, str | None]:
    """An entry without its alias, and the alias."""
    if not isinstance(node, exp.Alias):
        return node, None
    with Reading(node, text) as part:
        name, inner = part.word("alias"), part.take("this")
    if star_of(inner) is not None:
        raise ExpressionError(f"`*` stands for several columns, and `{name}` names one", text, span(inner))
    return inner, name


def starred(plan: Operator, node: exp.Expression, text: str) -> list[Named] | None:
    """The columns that a star stands for; None if the entry is none."""
    star = star_of(node)
    if star is None:
        return None
    with Reading(star, text) as part:
        without = part.list("except_")
    if not isinstance(node, exp.Column):
        kept = excepted(Scope.of(plan, "").columns, without, text)
        return [(c.name, Column(plan.schema.field(c.column).type, c.column)) for c in kept]
    struct = bind(".".join(f"`{p.name.replace('`', '``')}`" for p in node.parts[:-1]), plan.schema)
    if not pt.is_struct(struct.dtype):
        raise TypeMismatch(f"`{text}` expands a struct, not {type_name(struct.dtype)}", text)
    gone = _fields(without, struct.dtype, text)
    return [(f.name, struct_field(struct, f.name)) for f in struct.dtype.fields if f.name not in gone]


def _fields(names: Sequence[exp.Expression], dtype: pa.DataType, text: str) -> set[str]:
    """The fields of a struct after EXCEPT."""
    by_lower = {f.name.lower(): f.name for f in dtype.fields}
    gone: set[str] = set()
    for each in names:
        found = by_lower.get(each.name.lower()) if isinstance(each, exp.Column) and len(each.parts) == 1 else None
        if found is None or found in gone:
            hint = nearest(each.name, list(by_lower.values()))
            raise UnknownColumn(f"EXCEPT: `{each.name}` is not one field of the struct; {hint}", text, span(each))
        gone.add(found)
    return gone

"""Gives every name in an expression the name that its column has in the plan.

Law: after this no qualifier and no `*` is left, so the binder meets columns of the plan only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from sqlglot import exp

from rove.model.errors import ExpressionError
from rove.plan.expressions.parse import SHOWN, RoveSpark, span
from rove.plan.expressions.syntax import refuse_never
from rove.plan.sql.reading import Reading
from rove.plan.sql.scope import Scope, excepted, named_columns, star_of

Fallback = Callable[[exp.Column], exp.Expression | None]


def resolved(
    node: exp.Expression, scope: Scope, text: str, otherwise: Fallback | None = None, first: Fallback | None = None
) -> exp.Expression:
    """A copy of an expression over the columns of the plan. `first` is asked before the scope, `otherwise` after it."""
    refuse_never(node, text)
    root = exp.Paren(this=node.copy())
    for call in list(root.find_all(exp.Anonymous)):
        _spread(call, scope, text)
    if lost := next((s for s in root.find_all(exp.Star) if not isinstance(s.parent, exp.Column | exp.Anonymous)), None):
        raise ExpressionError("`*` stands for several columns, and here is room for one", text, span(lost))
    for name in named_columns(root):
        if isinstance(name.this, exp.Star):
            raise ExpressionError("`*` stands for several columns, and here is room for one", text, span(name))
        found = (first and first(name)) or scope.resolve(name, text) or (otherwise and otherwise(name))
        if not found:
            raise scope.unknown(name, text)
        above, last = name.parent, name.name
        if isinstance(above, exp.Anonymous) and above.name.lower() == "struct" and found.name != last:
            shown = found.meta.get(SHOWN, last)
            found = exp.Alias(this=found, alias=exp.to_identifier(last, quoted=True))  # the name of a field
            found.meta[SHOWN] = shown
        name.replace(found)
    return cast(exp.Expression, root.this.pop())


def _spread(call: exp.Anonymous, scope: Scope, text: str) -> None:
    """`struct(*)` and `array(t.* EXCEPT (a))` take all columns as arguments. `count(*)` counts rows."""
    args = call.expressions
    if call.name.lower() == "count" and len(args) == 1 and isinstance(args[0], exp.Star):
        with Reading(args[0], text):  # `count(* EXCEPT (a))` counts the rows without nulls in the other columns
            return
    spread: list[exp.Expression] = []
    for each in args:
        star = star_of(each)
        if star is None:
            spread.append(each)
            continue
        parts = [p.name for p in each.parts[:-1]] if isinstance(each, exp.Column) else [""]
        if call.name.lower() == "count":
            raise ExpressionError("count a relation's rows with count(*)", text, span(each))
        with Reading(star, text) as part:
            without = part.list("except_")
        listed = scope.starred(parts[0]) if len(parts) == 1 else []
        if not listed:
            if without:
                raise ExpressionError("name the fields: EXCEPT is for whole columns here", text, span(each))
            spread.append(each)
        spread += [_qualified(c.relation, c.name, each) for c in excepted(listed, without, text)]
    call.set("expressions", spread)


def _qualified(relation: str, name: str, like: exp.Expression) -> exp.Column:
    table = exp.to_identifier(relation, quoted=True) if relation else None
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=table)


def same_text(node: exp.Expression) -> str:
    """The same text for expressions that are written the same, apart from the case of functions and parentheses."""
    root = exp.Paren(this=node.copy())
    for each in list(root.find_all(exp.Anonymous, exp.Paren)):
        if isinstance(each, exp.Anonymous):
            each.set("this", each.name.lower())
        elif each is not root and isinstance(each.this, exp.Column | exp.Literal | exp.Anonymous | exp.Paren):
            each.replace(each.this)
    return str(root.sql(dialect=RoveSpark, normalize_functions=False))

"""The stream that owns a column: `trains.id` stays a column of `trains` in what verbs make of `trains`.

Law: as in Spark, a column that a step passes on under its name is still the same column, and one that a step computes
is a new one. A column can be named by the name of its stream, or by the alias that took its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from sqlglot import exp

from rove.model.names import relation_of
from rove.plan.expressions.tree import Column
from rove.plan.operators import At, Deduplicate, Filter, Join, Operator, Project, Watermark
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, Visible

Owners = Mapping[int | str, frozenset[str]]  # numbers and names of streams, and the columns that are still theirs
NOBODY: Owners = MappingProxyType({})


def renamed(owners: Owners, alias: str, names: Iterable[str]) -> Owners:
    """The owners of a stream's columns when it gets an alias, which takes the place of other names."""
    return {**{o: kept for o, kept in owners.items() if isinstance(o, int)}, alias: frozenset(names)}


def scope_of(names: Sequence[str], owners: Owners) -> Scope:
    """The columns of a stream under the names and numbers of the streams that own them."""
    known = {o if isinstance(o, str) else relation_of(o): owned for o, owned in owners.items()}
    first = {n: next((o for o, owned in owners.items() if isinstance(o, str) and n in owned), "") for n in names}
    listed = [Visible(first[n], n, n) for n in names]
    others = [
        Visible(o, n, n, listed=False) for o, owned in known.items() for n in names if n in owned and o != first[n]
    ]
    return Scope((*listed, *others))


def reads_alias(node: exp.Expression, owners: Owners) -> bool:
    """Whether an expression may name a column by its stream: `t.a`, `t.*`."""
    aliases = {o.lower() for o in owners if isinstance(o, str)}
    return any(len(c.parts) > 1 and c.parts[0].name.lower() in aliases for c in node.find_all(exp.Column))


def meant(node: exp.Expression, names: Sequence[str], owners: Owners, text: str) -> exp.Expression:
    """The expression in which `t.a` is the column `a`, if it is one of the stream `t`."""
    return resolved(node, scope_of(names, owners), text) if reads_alias(node, owners) else node


def passed(owners: Owners, below: Operator, plan: Operator) -> Owners:
    """The owners of the columns of a plan that stands on `below`, whose columns these owners have."""
    kept = _kept(below, plan)
    return {owner: names & kept for owner, names in owners.items() if names & kept}


def together(left: Owners, right: Owners) -> Owners:
    """The owners of the columns of both sides of a join."""
    return {o: left.get(o, frozenset()) | right.get(o, frozenset()) for o in (*left, *right)}


def _kept(below: Operator, plan: Operator) -> frozenset[str]:
    """The columns of `below` that a plan passes on."""
    names = frozenset(below.schema.names)
    match plan:
        case _ if plan is below:
            return names
        case Filter(input=read) | Watermark(input=read) | Deduplicate(input=read) | At(input=read) if read is below:
            return names
        case Project(input=read, columns=columns) if read is below:
            return frozenset(n for n, e in columns if isinstance(e, Column) and e.name == n)
        case Join(left=left) if plan.how in ("left_semi", "left_anti") and left is not below:
            return frozenset()  # it shows no column of its right side
        case Join(left=left, right=right) if below in (left, right):
            merged = plan.right_keys if plan.using and left is not below else ()
            if plan.using and plan.how in ("right_outer", "full_outer"):
                merged = plan.left_keys
            return (names & frozenset(plan.schema.names)) - frozenset(merged)
    return frozenset()

"""The joins in the text of a SELECT that Spark computes.

Law: they are judged like joins of the plan. The members of the step say which sides are streams, and what their event
time is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rove.plan.expressions.parse import parse_query
from rove.plan.operators import VIEW, Operator, SparkSelect

_HOW = {"LEFT": "left_outer", "RIGHT": "right_outer", "FULL": "full_outer", "SEMI": "left_semi", "ANTI": "left_anti"}


@dataclass(frozen=True, slots=True)
class TextJoin:
    """A join of what stands before it with one more member. `timed` says whether it compares event times."""

    left: tuple[Operator, ...]
    right: Operator
    how: str
    timed: bool

    @property
    def of_streams(self) -> bool:
        return not self.right.static and not self.left_static

    @property
    def left_static(self) -> bool:
        return all(member.static for member in self.left)


def joins_of(step: SparkSelect) -> Iterator[TextJoin]:
    """The joins of a SELECT, in their order."""
    select = parse_query(step.text)
    if not isinstance(select, exp.Select):
        return
    before = _members(step, select.args["from_"].this)
    for join in select.args.get("joins") or []:
        right = _members(step, join.this)
        kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
        how = _HOW.get(kind) or _HOW.get(side) or "inner"
        if before and right:
            yield TextJoin(tuple(before), right[0], how, _is_timed(join, before, right[0]))
        before = before if how in ("left_semi", "left_anti") else [*before, *right]


def _members(step: SparkSelect, item: exp.Expr) -> list[Operator]:
    """The member that an entry of FROM reads; none for LATERAL."""
    name = item.name if isinstance(item, exp.Table) else ""
    number = name.removeprefix(VIEW)
    return [step.members[int(number)]] if name.startswith(VIEW) and number.isdecimal() else []


def _is_timed(join: exp.Join, left: Sequence[Operator], right: Operator) -> bool:
    """Whether the condition reads event time, or a window of it, of both sides."""
    on = join.args.get("on")
    read = {c.name.lower() for c in on.find_all(exp.Column)} if on is not None else set()
    read |= {u.name.lower() for u in join.args.get("using") or []}
    if join.args.get("method"):  # NATURAL
        read |= {n.lower() for m in left for n in m.schema.names} & {n.lower() for n in right.schema.names}
    return any(read & _times(member) for member in left) and bool(read & _times(right))


def _times(member: Operator) -> set[str]:
    return {n.lower() for n in (member.traits.event_time, *(name for name, _ in member.traits.windows)) if n}

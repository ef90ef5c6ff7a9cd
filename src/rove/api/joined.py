"""A join whose sides have columns of one name: `a.join(b, a.id == b.id).select(a.id, b.value)`.

Law: until `select` says which columns are meant, only `where`, `select` and further joins can be used. A name that both
sides have is refused as ambiguous unless it says whose it is: by `a.id`, or by an alias, `F.col("l.id")`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from rove.api.arguments import checks_arguments
from rove.api.column import Column
from rove.api.stream import Stream
from rove.model.errors import ExpressionError, PlanError
from rove.model.names import by_owner, relation_of, unmarked
from rove.plan import build
from rove.plan.build import JOINS, Item
from rove.plan.expressions.parse import parse_expression
from rove.plan.operators import Operator
from rove.plan.sql.entries import starred
from rove.plan.sql.joins import Relation, apart, join_on
from rove.plan.sql.left_to_spark import makes_rows
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, Visible, star_of
from rove.plan.verbs.owners import passed, together

if TYPE_CHECKING:
    from rove.api.session import Session


@checks_arguments
class JoinedStream(Stream):
    """Two streams side by side. Say with `select` which columns of each are meant."""

    def __init__(self, session: Session, relation: Relation) -> None:
        super().__init__(session, relation.plan)
        self._scope = relation.scope

    @property
    def plan(self) -> Operator:
        return self._rows()

    @property
    def relation(self) -> Relation:
        return Relation(self._plan, self._scope)

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._scope.starred("")]

    def where(self, condition: Column | str) -> Stream:
        text = condition if isinstance(condition, str) else condition.text
        plan = build.filtered(self._plan, self._resolved(text), unmarked(text))
        return JoinedStream(self._session, Relation(plan, self._scope))

    filter = where

    def _selected(self, items: list[Item]) -> Stream:
        found: list[Item] = []
        for item in items:
            if makes_rows(item.node):
                raise PlanError(f"`{item.text}` makes rows: select the columns of the join first, and then this")
            if (star := star_of(item.node)) is not None:
                entries = starred(item.node, star, self._scope, item.text)
                found += [Item(e.node, item.text, e.name) for e in entries]
            else:
                found.append(replace(item, node=resolved(item.node, self._scope, item.text)))
        return Stream(self._session, build.selected(self._plan, found))

    def _readable(self, text: str) -> str:
        return by_owner(text)

    def _resolved(self, text: str) -> exp.Expression:
        return _meant(text, self._scope)

    def _rows(self) -> NoReturn:
        names = [c.name.lower() for c in self._scope.starred("")]
        twice = next(n for n in names if names.count(n) > 1)
        raise PlanError(
            f"column `{twice}` appears twice after join; select the columns first, such as select(a.x, b.y)"
        )


def joined(left: Stream, right: Stream, on: Column, how: str) -> Stream:
    """A join on a condition. It is a plain stream again if no two columns have one name."""
    kind = JOINS.get(how.lower().replace(" ", ""))
    if kind is None:
        raise PlanError(f"no join `{how}`; there are: {', '.join(sorted(set(JOINS)))}")
    one, text = relation_of_stream(left, right), unmarked(on.text)
    other = apart(one, relation_of_stream(right, left))
    both = one.scope.beside(other.scope)
    condition = _meant(on.text, both)
    plan = join_on(one.plan, other.plan, condition, kind, condition, text)
    scope = one.scope if kind in ("left_semi", "left_anti") else both
    listed = scope.starred("")
    if len({c.name.lower() for c in listed}) == len(listed) and all(c.name == c.column for c in listed):
        owners = (passed(side._owners, side._plan, plan) for side in (left, right))
        return Stream(left.session, plan, "", together(*owners))
    return JoinedStream(left.session, Relation(plan, scope))


def relation_of_stream(stream: Stream, beside: Stream) -> Relation:
    """A stream's columns under its alias, and under the marks of the streams that they were taken from. A mark of the
    stream `beside` means the columns there."""
    if isinstance(stream, JoinedStream):
        return stream.relation
    plan = stream.plan
    listed = [Visible(stream._name, name, name) for name in plan.schema.names]
    owners = {o: names for o, names in stream._owners.items() if o != beside._number}
    others = [
        replace(c, relation=relation_of(o), listed=False) for o, ns in owners.items() for c in listed if c.name in ns
    ]
    return Relation(plan, Scope((*listed, *others)))


def _meant(text: str, scope: Scope) -> exp.Expression:
    """The condition over the columns that it means. An error shows the text that the user wrote."""
    marked, shown = by_owner(text), unmarked(text)
    try:
        return resolved(parse_expression(marked), scope, shown)
    except ExpressionError as error:
        raise error if marked == shown else type(error)(error.reason, shown) from None

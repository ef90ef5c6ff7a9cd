"""A join whose sides have columns of one name: `a.join(b, a.id == b.id).select(a.id, b.value)`.

Law: a name that two columns have is refused as ambiguous unless it says whose it is: by `a.id`, or by an alias,
`F.col("l.id")`. Verbs that need one name for each column are refused until `select`, `drop` or `toDF` gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp

from rove.api.arguments import checks_arguments
from rove.api.column import Column, path
from rove.api.stream import Stream
from rove.api.verbs.items import checked_column
from rove.model.clock import parse_duration
from rove.model.errors import ExpressionError, PlanError, UnknownColumn, nearest
from rove.model.names import by_owner, is_owner, owner_of, relation_of, unmarked
from rove.plan import build
from rove.plan.build import JOINS, Item
from rove.plan.expressions.parse import parse_expression
from rove.plan.operators import Deduplicate, Operator, Watermark
from rove.plan.shown import Shown, below_names, free_name, shown
from rove.plan.sql.column_names import spark_name
from rove.plan.sql.entries import starred
from rove.plan.sql.in_spark.left_to_spark import makes_rows
from rove.plan.sql.joins import Relation, apart, join_on, joined_using
from rove.plan.sql.resolve import resolved
from rove.plan.sql.scope import Scope, Visible, star_of
from rove.plan.verbs.owners import passed, together

if TYPE_CHECKING:
    from rove.api.session import Session

_LEFT_ONLY = ("left_semi", "left_anti")  # joins that show the columns of their left side only


@checks_arguments
class JoinedStream(Stream):
    """A stream with columns of one name, such as two streams side by side."""

    def __init__(self, session: Session, relation: Relation) -> None:
        super().__init__(session, relation.plan)
        self._scope = relation.scope

    @property
    def plan(self) -> Operator:
        return shown(self._plan, [(c.name, c.column) for c in self._listed()])

    @property
    def relation(self) -> Relation:
        return Relation(self._plan, self._scope)

    def __getitem__(self, name: Any) -> Any:
        if not isinstance(name, str):
            return super().__getitem__(name)
        self._resolved(path(name))  # refuse an unknown or ambiguous name here, not later
        return Column(path(name))

    def _own(self, name: str) -> Column:
        named: Column = self[name]
        return named

    def alias(self, alias: str) -> Stream:
        others = (replace(c, listed=False) for c in self._scope.columns if c.relation)
        return self._under(Scope((*self._scope.under(alias).columns, *others)))

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
                found += self._read([item])[1]
        return stream_of(self._session, build.selected(self._plan, found))

    def withColumn(self, colName: str, col: Column) -> Stream:
        text = checked_column(col, f"withColumn(`{colName}`, …)").text
        name = free_name(colName, {n.lower() for n in self._plan.schema.names})
        plan = build.with_column(self._plan, name, self._resolved(text), unmarked(text))
        there = self._called(colName)
        if len(there) > 1:
            raise _ambiguous(colName, there)
        new, gone = Visible("", colName, name), {c.column for c in there}
        if not there:
            return stream_of(self._session, Relation(plan, Scope((*self._scope.columns, new))))
        columns = (new if c == there[0] else c for c in self._scope.columns if c == there[0] or c.column not in gone)
        return stream_of(self._session, Relation(plan, Scope(tuple(columns))))

    def withColumnRenamed(self, existing: str, new: str) -> Stream:
        found = self._called(existing)
        gone = {c.column for c in found}
        kept = (c for c in self._scope.columns if c in found or c.column not in gone)
        return self._under(Scope(tuple(Visible("", new, c.column) if c in found else c for c in kept)))

    def toDF(self, *cols: str) -> Stream:
        if len(cols) != len(self.columns):
            raise PlanError(f"toDF got {len(cols)} names for {len(self.columns)} columns")
        return self._under(self._scope.under("", cols))

    def drop(self, *cols: Column | str) -> Stream:
        """All columns except these: a name leaves out the columns of both sides, `b.id` that of one side."""
        gone = {c.column for n in cols if isinstance(n, str) for c in self._called(n)}
        for each in cols:
            if isinstance(each, Column):
                node = self._resolved(each.text)
                if not isinstance(node, exp.Column):
                    raise PlanError(f"drop takes columns, and `{unmarked(each.text)}` is an expression")
                gone.add(node.name)
        scope = Scope(tuple(c for c in self._scope.columns if c.column not in gone))
        if not scope.starred(""):
            raise PlanError(
                f"drop({', '.join(c if isinstance(c, str) else unmarked(c.text) for c in cols)}) would leave no column"
            )
        return self._under(scope)

    def withWatermark(self, eventTime: str, delayThreshold: str) -> Stream:
        time = self._resolved(path(eventTime))
        plan = Watermark(self._plan, time.name, parse_duration(delayThreshold, "delay"))
        return JoinedStream(self._session, Relation(plan, self._scope))

    def _deduplicated(self, subset: list[str] | None, within_watermark: bool) -> Stream:
        for name in subset or ():
            if not self._called(name):
                raise PlanError(f"no column `{name}`; {nearest(name, self.columns)}")
        keys = tuple(dict.fromkeys(c.column for name in subset or () for c in self._called(name)))
        return self._with(below_names(self.plan, lambda rows: Deduplicate(rows, keys, within_watermark)))

    def _listed(self) -> list[Visible]:
        return self._scope.starred("")

    def _called(self, name: str) -> list[Visible]:
        return [c for c in self._listed() if c.name.lower() == name.lower()]

    def _under(self, scope: Scope) -> Stream:
        return stream_of(self._session, Relation(self._plan, scope))

    def _readable(self, text: str) -> str:
        return by_owner(text)

    def _resolved(self, text: str) -> exp.Expression:
        return _meant(text, self._scope)

    def _result(self) -> Operator:
        return self.plan

    def _read(self, items: list[Item]) -> tuple[Operator, list[Item]]:
        found = [replace(i, node=resolved(i.node, self._scope, i.text)) for i in items]
        named = [i if i.aliased else replace(i, name=spark_name(i.node, self._types()) or i.name) for i in found]
        return self._plan, named

    def _rows(self) -> NoReturn:
        names = [c.name.lower() for c in self._listed()]
        twice = next((n for n in names if names.count(n) > 1), names[0])
        raise PlanError(
            f"column `{twice}` appears twice; select the columns first, such as select(a.x, b.y), or drop(b.{twice}), "
            "or give all names with toDF(…)"
        )


def _ambiguous(name: str, found: Sequence[Visible]) -> UnknownColumn:
    return UnknownColumn(f"`{name}` is ambiguous: {len(found)} columns have this name; select or rename one of them")


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
    scope = one.scope if kind in _LEFT_ONLY else both
    listed = scope.starred("")
    if len({c.name.lower() for c in listed}) == len(listed) and all(c.name == c.column for c in listed):
        owners = (passed(side._owners, side._plan, plan) for side in (left, right))
        return Stream(left.session, plan, "", together(*owners))
    return JoinedStream(left.session, Relation(plan, scope))


def joined_by_name(left: Stream, right: Stream, on: str | list[str] | None, how: str) -> Stream:
    """A join on columns that both sides have. Other columns of one name stay apart, as in `joined`."""
    names = [on] if isinstance(on, str) else list(on or ())
    mixed = isinstance(left, JoinedStream) or isinstance(right, JoinedStream)
    kind = JOINS.get(how.lower().replace(" ", ""), "")
    keys, ours = {n.lower() for n in names}, {n.lower() for n in left.columns}
    shared = {n.lower() for n in right.columns} & ours - keys
    if not names or not kind or not (mixed or shared) or kind in _LEFT_ONLY:
        plan = build.joined(left._rows(), right._rows(), names if on is not None else None, how, str(on))
        return Stream(left.session, plan, "", together(*(passed(s._owners, s._plan, plan) for s in (left, right))))
    one, other = relation_of_stream(left, right), relation_of_stream(right, left)
    return stream_of(left.session, joined_using(one, other, names, kind, exp.Join(), str(on)))


def stream_of(session: Session, made: Operator | Relation) -> Stream:
    """A plan or a relation as a stream: a plain one if no two of its columns have one name."""
    if isinstance(made, Operator) and not isinstance(made, Shown):
        return Stream(session, made)
    relation = Relation.of(made) if isinstance(made, Operator) else made
    plan, listed = relation.plan, relation.scope.starred("")
    if len({c.name.lower() for c in listed}) < len(listed):
        return JoinedStream(session, relation)
    owners: dict[int, frozenset[str]] = {}
    shown = {c.column: c.name for c in listed}
    for each in relation.scope.columns:
        if is_owner(each.relation) and shown.get(each.column) == each.name:
            number = owner_of(each.relation)
            owners[number] = owners.get(number, frozenset()) | {each.name}
    items = [Item(exp.column(c.column, quoted=True), c.name, c.name) for c in listed]
    return Stream(session, build.selected(plan, items), "", owners)


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

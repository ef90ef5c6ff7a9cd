"""Translates SQL statements over a session's streams to the same functions that the verbs use.

Law: a statement means the same as in Spark. Clauses that a stream cannot have (ORDER BY, LIMIT, DISTINCT aggregates)
are refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from rove.api.stream import Stream
from rove.model.errors import ParseError, PlanError
from rove.model.names import quoted
from rove.plan import build
from rove.plan.aggregates import AGGREGATE_NAMES
from rove.plan.build import Item
from rove.plan.expressions.parse import parse_expression, parse_query
from rove.plan.operators import Operator

if TYPE_CHECKING:
    from rove.api.session import Session

# The clauses that each part of a statement may have. Others are refused, not ignored.
_CLAUSES: dict[type[exp.Expression], set[str]] = {
    exp.Select: {"expressions", "from_", "where", "group", "having", "joins", "hint", "with_"},
    exp.Union: {"this", "expression", "distinct", "with_"},
    exp.Subquery: {"this", "alias"},
    exp.Table: {"this", "alias", "joins"},
    exp.Group: {"expressions"},
    exp.Join: {"this", "on", "using", "side", "kind", "method"},
}


def statement(session: Session, text: str) -> Stream:
    """The stream of a SELECT statement."""
    return Stream(session, _Translator(session, text).query(parse_query(text)))


class _Translator:
    def __init__(self, session: Session, text: str) -> None:
        self.session, self.text = session, text
        self.named: dict[str, Operator] = {}

    def query(self, node: exp.Expression) -> Operator:
        _refuse_others(node)
        if given := node.args.get("with_"):
            for cte in given.expressions:
                self.named[cte.alias.lower()] = self.query(cte.this)
        match node:
            case exp.Subquery():
                return self.query(node.this)
            case exp.Union():
                if node.args.get("distinct", True):
                    raise PlanError(
                        "UNION removes duplicates, which needs all rows of a stream that never ends; use UNION ALL"
                    )
                return build.united(self.query(node.this), self.query(node.expression))
            case exp.Select():
                return self._select(node)
        raise ParseError(f"expected a SELECT, got {type(node).__name__.upper()}", self.text)

    def _select(self, node: exp.Select) -> Operator:
        source = node.args.get("from_")
        if source is None:
            raise PlanError("the statement reads no stream; add FROM")
        plan = self._table(source.this)
        for join in node.args.get("joins") or []:
            plan = self._join(plan, join)
        self._strip_qualifiers(node)
        if where := node.args.get("where"):
            plan = build.filtered(plan, where.this, self.text)
        items = [self._item(e) for e in node.expressions]
        group = node.args.get("group")
        if group is None:
            return build.selected(plan, items)
        return self._grouped(plan, items, group, node.args.get("having"))

    def _grouped(self, plan: Operator, items: list[Item], group: exp.Group, having: exp.Having | None) -> Operator:
        """A grouping expression gets the name of the equal expression in the select list."""
        _refuse_others(group)
        group = exp.Group(expressions=[self._grouping(g, items, plan) for g in group.expressions])
        names: dict[str, str] = {}
        for each in items:
            names.setdefault(each.node.sql(), each.name)
        groups = [Item(g, self.text, names.get(g.sql(), build.item_of(g, self.text).name)) for g in group.expressions]
        keys = {g.node.sql(): g.name for g in groups}
        outputs: list[Item] = []
        shown: list[str | Item] = []
        for each in items:
            if each.node.sql() in keys:
                shown.append(Item(exp.column(keys[each.node.sql()], quoted=True), self.text, each.name))
            elif self._reads_window(each.node, groups):
                shown.append(each)
            else:
                outputs.append(each)
                shown.append(each.name)
        condition = having.this if having is not None else None
        hidden: list[str] = []
        if condition is not None:
            condition, extra = self._lift_having(condition, outputs)
            outputs += extra
            hidden = [e.name for e in extra]
        result = build.grouped(plan, groups, outputs)
        if condition is not None:
            result = build.filtered(result, condition, self.text)
        wanted = [s if isinstance(s, Item) else Item(exp.column(s, quoted=True), s, s) for s in shown]
        if hidden or [w.name for w in wanted] != result.schema.names:
            result = build.selected(result, wanted)
        return result

    def _grouping(self, node: exp.Expression, items: list[Item], plan: Operator) -> exp.Expression:
        """`GROUP BY 1` and `GROUP BY alias` refer to entries of the select list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this)
            if not 1 <= place <= len(items):
                raise PlanError(f"GROUP BY {place}: the select list has {len(items)} entries")
            return items[place - 1].node.copy()
        if isinstance(node, exp.Column) and node.name.lower() not in {n.lower() for n in plan.schema.names}:
            return next((i.node.copy() for i in items if i.name.lower() == node.name.lower()), node)
        return node

    def _reads_window(self, node: exp.Expression, groups: list[Item]) -> bool:
        """`window.start` beside `GROUP BY window(ts, …)`."""
        names = {g.name.lower() for g in groups}
        columns = list(node.find_all(exp.Column))
        return (
            bool(columns)
            and all(c.parts[0].name.lower() in names for c in columns)
            and not any(n.name.lower() in AGGREGATE_NAMES for n in node.find_all(exp.Anonymous))
        )

    def _lift_having(self, node: exp.Expression, outputs: list[Item]) -> tuple[exp.Expression, list[Item]]:
        """Replace aggregates in HAVING by columns: those of the select list, or hidden ones."""
        known = {o.node.sql(): o.name for o in outputs}
        extra: list[Item] = []
        copy = node.copy()
        for call in [n for n in copy.find_all(exp.Anonymous) if n.name.lower() in AGGREGATE_NAMES]:
            text = call.sql()
            if text not in known:
                known[text] = f"__having_{len(extra)}"
                extra.append(Item(call.copy(), self.text, known[text]))
            call.replace(exp.column(known[text], quoted=True))
        return copy, extra

    def _item(self, node: exp.Expression) -> Item:
        return build.item_of(node, self.text if not isinstance(node, exp.Star) else "*")

    def _table(self, node: exp.Expression) -> Operator:
        _refuse_others(node)
        if isinstance(node, exp.Subquery):
            return self.query(node.this)
        if isinstance(node, exp.Table):
            name = node.name
            return self.named.get(name.lower()) or self.session.stream(name).plan
        raise PlanError(f"cannot read from `{node.sql('spark')}`; name a stream or a subquery")

    def _join(self, left: Operator, join: exp.Join) -> Operator:
        _refuse_others(join)
        right = self._table(join.this)
        how = " ".join(w for w in (join.side, join.kind) if w).lower().replace("outer", "").strip() or "inner"
        if using := join.args.get("using"):
            return build.joined(left, right, [u.name for u in using], how, self.text)
        on = join.args.get("on")
        if on is not None:
            self._strip_qualifiers(on)
        return build.joined(left, right, on, how, self.text)

    def _strip_qualifiers(self, node: exp.Expression) -> None:
        """`t.price` becomes `price` if `t` names a table. The join refuses names that both sides have."""
        top = node.find_ancestor(exp.Select) or node
        tables = {t.alias_or_name.lower() for t in top.find_all(exp.Table, exp.Subquery)}
        for column in node.find_all(exp.Column):
            if column.parts[0].name.lower() in tables and len(column.parts) > 1:
                rest = [p.name for p in column.parts[1:]]
                column.replace(exp.Star() if rest == ["*"] else parse_expression(".".join(map(quoted, rest))))


def _refuse_others(node: exp.Expression) -> None:
    """Refuse clauses that are not supported. Ignoring one would change the answer."""
    allowed = _CLAUSES.get(type(node))
    extra = sorted(k for k, v in node.args.items() if v and allowed is not None and k not in allowed)
    if extra:
        raise PlanError(f"{extra[0].upper()} has no meaning on an unbounded stream; do it with inSpark(…)")

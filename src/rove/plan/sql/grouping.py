"""GROUP BY and HAVING: which expressions are keys, which are aggregates, and how the list is made of both.

Law: a name in GROUP BY is a column of FROM, or else an entry of the select list, as in Spark. Above the aggregate
nothing but keys and results can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from rove.model.errors import ExpressionError, UnknownColumn
from rove.plan import build
from rove.plan.aggregates import AggregateCall
from rove.plan.build import Item
from rove.plan.expressions.parse import SHOWN, span
from rove.plan.expressions.syntax import written
from rove.plan.operators import Operator
from rove.plan.sql.column_names import spark_name
from rove.plan.sql.entries import WINDOWS, Entry, alias_of, is_alias, listed
from rove.plan.sql.filters import without_filters
from rove.plan.sql.reading import Reading
from rove.plan.sql.resolve import resolved, same_text
from rove.plan.sql.scope import Scope, column


def aggregated(
    plan: Operator,
    scope: Scope,
    entries: Sequence[Entry],
    group: exp.Group | None,
    having: exp.Having | None,
    text: str,
) -> Operator:
    """The plan of a select list over groups."""
    keys = [] if group is None else _keys(group, entries, scope, text)
    over = _Over(plan, text, entries, _named(keys, entries))
    shown = [Entry(over.rewritten(e.node, e), e.name, e.aliased) for e in entries]
    condition = None
    if having is not None:
        condition = over.having(Reading(having, text).take("this"), scope, entries, shown)
    grouping = build.Grouping.of(plan, [Item(node, text, name) for name, node in over.keys.items()])
    base = grouping.aggregate(tuple(over.calls.values()) or (build.every_row(),))
    if condition is not None:
        base = build.filtered(base, condition, text)
    return listed(base, shown, text)


def _keys(group: exp.Group, entries: Sequence[Entry], scope: Scope, text: str) -> list[exp.Expression]:
    """The expressions to group by, each once."""
    with Reading(group, text) as part:
        written, everything = part.list("expressions"), part.take("all")
    if bool(everything) == bool(written):
        raise ExpressionError("GROUP BY needs expressions, or ALL and nothing else", text, span(group))
    if everything:
        found = [e.node for e in entries if not build.has_aggregate(e.node)]
    else:
        found = [_key(g, entries, scope, text) for g in written]
    for node in found:
        if alias := next((c for c in node.find_all(exp.Column) if is_alias(c)), None):
            raise ExpressionError("GROUP BY cannot read an alias through another alias", text, span(alias))
        build.refuse_aggregate(node, text, "GROUP BY")
    return list({same_text(node): node for node in found}.values())


def refuse_ordinals(group: exp.Group, text: str) -> None:
    """Refuse GROUP BY 1 beside a star, as Spark does."""
    for node in map(build.bare, Reading(group, text).list("expressions")):
        if _is_ordinal(node):
            raise ExpressionError(f"GROUP BY {node.name} cannot stand beside `*`; name the columns", text, span(node))


def _is_ordinal(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()


def _key(node: exp.Expression, entries: Sequence[Entry], scope: Scope, text: str) -> exp.Expression:
    node = build.bare(node)
    if _is_ordinal(node):
        place = int(node.name)
        if not 1 <= place <= len(entries):
            raise ExpressionError(f"GROUP BY {place}: the select list has {len(entries)} entries", text, span(node))
        return entries[place - 1].node

    def entry(name: exp.Column) -> exp.Expression | None:
        parts = [p.name.lower() for p in name.parts]
        found = [e.node for e in entries if len(parts) == 1 and e.name.lower() == parts[0]]
        return exp.Paren(this=found[0].copy()) if found else None

    return build.bare(resolved(node, scope, text, otherwise=entry))


def _named(keys: Sequence[exp.Expression], entries: Sequence[Entry]) -> dict[str, exp.Expression]:
    """The keys by the names that they get in the plan: that of the entry with the same expression, if there is one."""
    named: dict[str, exp.Expression] = {}
    taken = {e.name.lower() for e in entries}
    for n, node in enumerate(keys):
        same = next((e.name for e in entries if same_text(e.node) == same_text(node)), None)
        name = same or spark_name(node) or f"__key_{n}"
        if name.lower() in {k.lower() for k in named} or (same is None and name.lower() in taken):
            name = f"__key_{n}"
        named[name] = node
    return named


@dataclass(slots=True)
class _Over:
    """Expressions over the columns of FROM, written again over keys and results of aggregates."""

    plan: Operator
    text: str
    entries: Sequence[Entry]
    keys: dict[str, exp.Expression]
    calls: dict[str, AggregateCall] = field(default_factory=dict)  # by their text

    def rewritten(self, node: exp.Expression, entry: Entry | None = None) -> exp.Expression:
        """The expression over the aggregate's columns. An entry that is one aggregate gives the result its name."""
        node = build.bare(node)
        return self._replaced(node.copy(), entry.name if entry is not None else "")

    def having(
        self, node: exp.Expression, scope: Scope, entries: Sequence[Entry], shown: Sequence[Entry]
    ) -> exp.Expression:
        """The condition of HAVING."""

        def entry(name: exp.Column) -> exp.Expression | None:
            parts = [p.name.lower() for p in name.parts]
            found = [e.node for e in entries if len(parts) == 1 and e.name.lower() == parts[0]]
            if len(found) > 1:
                why = f"`{name.name}` is ambiguous: {len(found)} columns have this name; give them names of their own"
                raise UnknownColumn(why, self.text, span(name))
            return exp.Paren(this=_spelled(found[0], entries)) if found else None

        def is_key(name: exp.Column) -> bool:
            found = scope.resolve(name, self.text) if len(scope.find([p.name for p in name.parts])[0]) == 1 else None
            return found is not None and same_text(found) in {same_text(key) for key in self.keys.values()}

        def alias(name: exp.Column) -> exp.Expression | None:
            return None if _in_aggregate(name) or is_key(name) else entry(name)

        def window(name: exp.Column) -> exp.Expression | None:
            return entry(name) or self._window(name)

        return self.rewritten(without_filters(resolved(node, scope, self.text, otherwise=window, first=alias)))

    def _replaced(self, node: exp.Expression, name: str = "") -> exp.Expression:
        key = next((k for k, g in self.keys.items() if same_text(g) == same_text(node)), None)
        if key is not None:
            return column(key, (), node, written(node))
        if build.is_aggregate(node):
            return self._result(node, name)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Anonymous) and node.name.lower() == "window_time":
            raise ExpressionError("Spark has window_time(…) only over the results of a group", self.text, span(node))
        for child in list(node.iter_expressions()):
            child.replace(self._replaced(child))
        return node

    def _column(self, node: exp.Column) -> exp.Expression:
        if is_alias(node):
            return node
        if node.name.lower() in WINDOWS and (found := self._window(node)):
            return found
        shown = node.meta.get(SHOWN, node.name)
        raise ExpressionError(
            f"`{shown}` is neither in GROUP BY nor in an aggregate; add it to GROUP BY, or wrap it in any_value(…)",
            self.text,
            span(node),
        )

    def _window(self, name: exp.Column) -> exp.Expression | None:
        """`window.start` beside `GROUP BY window(ts, …)`."""
        first, *fields = (p.name for p in name.parts)
        for key, node in self.keys.items():
            if isinstance(node, exp.Anonymous) and node.name.lower() == first.lower() and first.lower() in WINDOWS:
                return column(key, fields, name, ".".join([first, *fields]))
        return None

    def _result(self, node: exp.Expression, name: str) -> exp.Expression:
        """The column that holds the result of an aggregate."""
        for inner in node.find_all(exp.Anonymous):
            if inner is not node and build.is_aggregate(inner):
                raise ExpressionError("an aggregate cannot be inside another", self.text, span(inner))
        if alias := next((c for c in node.find_all(exp.Column) if is_alias(c)), None):
            raise ExpressionError("an aggregate cannot read an alias of its own list", self.text, span(alias))
        text = same_text(node)
        if text not in self.calls:
            names = {c.name.lower() for c in self.calls.values()} | {k.lower() for k in self.keys}
            if not name or name.lower() in names:
                name = f"__{len(self.calls)}"
            self.calls[text] = build.aggregate_call(node, self.plan.schema, self.text, name)
        return column(self.calls[text].name, (), node, written(node))


def _spelled(node: exp.Expression, entries: Sequence[Entry]) -> exp.Expression:
    """The expression with the aliases of its list written out."""
    root = exp.Paren(this=node.copy())
    for each in [c for c in root.find_all(exp.Column) if is_alias(c)]:
        each.replace(exp.Paren(this=_spelled(entries[alias_of(each)].node, entries)))
    return build.bare(root)


def _in_aggregate(node: exp.Expression) -> bool:
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Expression) and build.is_aggregate(above):
            return True
        above = above.parent
    return False

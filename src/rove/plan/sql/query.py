"""Translates a statement to a plan: WITH, set operations, and what FROM names.

Law: a statement means the same as in Spark, or it is refused by name. Names of WITH hide streams and outer names of
WITH, as in Spark, and no name ever reaches Spark's own catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from rove.model.errors import ExpressionError, ParseError, PlanError
from rove.plan import build
from rove.plan.expressions.parse import parse_query, span
from rove.plan.operators import Deduplicate, Operator
from rove.plan.sql.joins import Relation, joined
from rove.plan.sql.pivots import pivoted
from rove.plan.sql.reading import Reading
from rove.plan.sql.scope import Scope

Lookup = Callable[[str], Operator]
Names = Mapping[str, Relation]  # what WITH has named, in small letters
_NO_SET = "{} needs all rows of a stream that never ends, and streaming Spark refuses it; use a join, or IN (SELECT …)"


def translate(text: str, lookup: Lookup) -> Operator:
    """The plan of a SELECT statement. `lookup` gives the plan of a stream."""
    try:
        return Translator(text, lookup).query(parse_query(text), {})
    except RecursionError as error:
        raise ParseError("the statement is nested too deeply", text[:200]) from error


@dataclass(frozen=True, slots=True)
class Translator:
    """The text of a statement, for errors, and the streams it may read."""

    text: str
    lookup: Lookup

    def query(self, node: exp.Expr, names: Names) -> Operator:
        """The plan of a SELECT, a set operation, or one of them in parentheses."""
        from rove.plan.sql.select import select

        with Reading(node, self.text) as part:
            names = self._with(part.take("with_"), names)
            match node:
                case exp.Select():
                    return select(self, part, names)
                case exp.Union():
                    part.skip("side", "kind")
                    return self._union(part, names)
                case exp.SetOperation():
                    word = type(node).__name__.upper()
                    raise ExpressionError(_NO_SET.format(word), self.text, span(part.take("expression")))
                case exp.Subquery():
                    if not isinstance(inner := part.take("this"), exp.Query):
                        raise ParseError("expected a SELECT in the parentheses", self.text, span(inner))
                    return self.query(inner, names)
            raise ParseError(f"expected a SELECT, got {type(node).__name__.upper()}", self.text, span(node))

    def relation(self, node: exp.Expression, names: Names, inside: bool = False) -> Relation:
        """What one entry of FROM names: a stream, a name of WITH, a subquery, or a join in parentheses. `inside` those
        parentheses a table has joins of its own."""
        with Reading(node, self.text) as part:
            match node:
                case exp.Subquery():
                    inner = part.take("this")
                    if isinstance(inner, exp.Query):
                        plan = self.query(inner, self._with(part.take("with_"), names))
                        found = Relation(plan, Scope.of(plan, ""))
                    else:
                        found = self.relation(inner, names, inside=True)
                case exp.Table():
                    found = self.named(part.take("this"), names)
                case _:
                    raise ExpressionError("name a stream or a subquery after FROM", self.text, span(node))
            if alias := part.take("alias"):
                found = self._renamed(found, alias)
            for pivot in part.list("pivots"):
                found, alias = pivoted(found, pivot, self.text)
                found = found if alias is None else self._renamed(found, alias)
            for join in part.list("joins") if inside else []:
                found = joined(found, self.joins_to(join, names), join, self.text)
            return found

    def joins_to(self, join: exp.Join, names: Names) -> Relation:
        """The right side of a join."""
        return self.relation(Reading(join, self.text).take("this"), names)

    def named(self, identifier: exp.Expression, names: Names) -> Relation:
        """What a name after FROM stands for."""
        if not isinstance(identifier, exp.Identifier):
            raise ExpressionError("name a stream or a subquery after FROM", self.text, span(identifier))
        if found := names.get(identifier.name.lower()):
            return Relation(found.plan, found.scope.under(identifier.name))
        try:
            plan = self.lookup(identifier.name)
        except PlanError as error:
            raise ExpressionError(str(error), self.text, span(identifier)) from None
        return Relation(plan, Scope.of(plan, identifier.name))

    def _union(self, part: Reading, names: Names) -> Operator:
        left, right = self.query(part.take("this"), names), self.query(part.take("expression"), names)
        both = build.united(left, right)
        return Deduplicate(both, ()) if part.take("distinct") else both

    def _with(self, node: exp.Expression | None, names: Names) -> Names:
        if node is None:
            return names
        found, own = dict(names), set[str]()
        with Reading(node, self.text) as part:
            for each in part.list("expressions"):
                with Reading(each, self.text) as cte:
                    plan = self.query(cte.take("this"), found)
                    relation = self._renamed(Relation(plan, Scope.of(plan, "")), alias := cte.take("alias"))
                name = alias.name.lower()
                if name in own:
                    raise ExpressionError(f"WITH names `{alias.name}` twice", self.text, span(alias))
                own.add(name)
                found[name] = relation
        return found

    def _renamed(self, relation: Relation, alias: exp.Expression) -> Relation:
        """The relation under another name: `t AS x`, `t AS x(a, b)`."""
        with Reading(alias, self.text) as part:
            name, columns = part.word("this"), [c.name for c in part.list("columns")]
        listed = [c for c in relation.scope.columns if c.listed]
        if columns and len(columns) != len(listed):
            raise ExpressionError(
                f"`{name}` names {len(columns)} columns, and there are {len(listed)}", self.text, span(alias)
            )
        return Relation(relation.plan, relation.scope.under(name, columns))

"""Translates a statement to a plan: WITH, set operations, and what FROM names.

Law: a statement means the same as in Spark, or it is refused by name. Names of WITH hide streams and outer names of
WITH, as in Spark, and no name ever reaches Spark's own catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rove.model.errors import ExpressionError, ParseError, PlanError
from rove.model.schema import is_spark_only
from rove.plan import build
from rove.plan.expressions.bind import bind_node
from rove.plan.expressions.functions.registry import coerce
from rove.plan.expressions.parse import parse_query, span
from rove.plan.expressions.tree import sql
from rove.plan.expressions.types import Refused, common_type
from rove.plan.operators import INLINE, Deduplicate, Operator, Table
from rove.plan.shown import below_names
from rove.plan.sql.joins import Relation, joined
from rove.plan.sql.pivots import pivoted
from rove.plan.sql.reading import Reading, refused

Lookup = Callable[[str], Operator]
Names = Mapping[str, Relation]  # what WITH has named, in small letters
_NO_SET = "{} needs all rows of a stream that never ends, and streaming Spark refuses it; use a join, or IN (SELECT …)"


def translate(text: str, lookup: Lookup) -> Operator:
    """The plan of a SELECT statement. `lookup` gives the plan of a stream."""
    try:
        statement = parse_query(text)
        if isinstance(statement, exp.Select) and Reading(statement, text).look().get("from_") is None:
            raise PlanError("the statement reads no stream; add FROM")
        return Translator(text, lookup).query(statement, {})
    except RecursionError as error:
        raise ParseError("the statement is nested too deeply", text[:200]) from error


def inline_table(rows: Sequence[exp.Expression], text: str) -> Table:
    """`VALUES (1, 'x'), (2, 'y')`: a table with the columns `col1`, `col2`, … of the types that hold all rows."""
    bound = [[bind_node(v, pa.schema([]), text) for v in Reading(row, text).list("expressions")] for row in rows]
    if len(counts := {len(row) for row in bound}) > 1:
        raise ExpressionError(f"rows of VALUES have {min(counts)} and {max(counts)} values", text, span(rows[0]))
    types = []
    for column in zip(*bound, strict=True):
        if any(is_spark_only(value.dtype) for value in column):
            raise ExpressionError("only Spark knows the type of a value of VALUES; cast it", text, span(rows[0]))
        try:
            types.append(common_type([value.dtype for value in column]))
        except Refused as refused:
            raise ExpressionError(f"VALUES: {refused.reason}", text, span(rows[0])) from None
        except ExpressionError as error:
            raise error.at(text, span(rows[0])) from None
    written = [", ".join(sql(coerce(v, t)) for v, t in zip(row, types, strict=True)) for row in bound]
    columns = pa.schema([(f"col{n}", dtype) for n, dtype in enumerate(types, 1)])
    return Table(f"VALUES {', '.join(f'({row})' for row in written)}", columns, INLINE)


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
            raise ParseError("expected a SELECT in the parentheses", self.text, span(node))

    def relation(self, node: exp.Expression, names: Names, inside: bool = False) -> Relation:
        """What one entry of FROM names: a stream, a name of WITH, a subquery, or a join in parentheses. `inside` those
        parentheses a table has joins of its own."""
        with Reading(node, self.text) as part:
            match node:
                case exp.Subquery():
                    inner = part.take("this")
                    if isinstance(inner, exp.Query):
                        plan = self.query(inner, self._with(part.take("with_"), names))
                        found = Relation.of(plan)
                    else:
                        found = self.relation(inner, names, inside=True)
                case exp.Table():
                    found = self.named(part.take("this"), names)
                case exp.Values():
                    plan = inline_table(part.list("expressions"), self.text)
                    found = Relation.of(plan)
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
        return Relation.of(plan, identifier.name)

    def _union(self, part: Reading, names: Names) -> Operator:
        second = part.take("expression")
        left, right = self.query(part.take("this"), names), self.query(second, names)
        try:
            both = build.united(left, right)
        except ExpressionError as error:
            raise error.at(self.text, span(second)) from None
        except PlanError as error:
            raise ExpressionError(str(error), self.text, span(second)) from None
        return below_names(both, lambda rows: Deduplicate(rows, ())) if part.take("distinct") else both

    def _with(self, node: exp.Expression | None, names: Names) -> Names:
        if node is None:
            return names
        found, own = dict(names), set[str]()
        with Reading(node, self.text) as part:
            if part.look().get("recursive"):
                raise refused("recursive", node, self.text)
            for each in part.list("expressions"):
                with Reading(each, self.text) as cte:
                    plan = self.query(cte.take("this"), found)
                    relation = self._renamed(Relation.of(plan), alias := cte.take("alias"))
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

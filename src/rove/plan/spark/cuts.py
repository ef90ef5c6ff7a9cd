"""Where a plan can be cut in two: the lower part at the edge, the upper part in Spark.

Law: every legal cut gives the same rows, apart from rows that are late at their origin. A cut lies between an operator
and its reader. The two halves of a windowed aggregate are two operators, so a cut may lie between them too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from rove.model.errors import PlanError
from rove.plan.operators import At, Operator, Received, Table
from rove.plan.rules.rewrite import with_inputs
from rove.plan.sites import refuse_tables_alone, site


@dataclass(frozen=True, slots=True)
class Cut:
    """`lower` holds plans by the name under which `upper` receives their rows. Without an upper plan no Spark is
    needed."""

    lower: tuple[tuple[str, Operator], ...]
    upper: Operator

    @property
    def needs_spark(self) -> bool:
        return not isinstance(self.upper, Received)


def legal_cuts(plan: Operator) -> Iterator[Cut]:
    """Every legal cut, from everything at the edge (if possible) to everything in Spark."""
    for upper in _uppers(plan):
        yield _named(upper)


def highest_cut(plan: Operator) -> Cut:
    """The cut that leaves as much as possible at the edge."""
    return _named(_highest(plan))


def _uppers(operator: Operator) -> Iterator[Operator]:
    """The plan with lower parts replaced by `_Lower` placeholders, in every legal way."""
    found = site(operator)
    if isinstance(operator, At):  # a cut above the hint and a cut below it are the same cut
        for upper in _uppers(operator.input):
            yield _mark(operator) if isinstance(upper, _Lower) else with_inputs(operator, (upper,))
        return
    if isinstance(operator, Table):
        yield operator
        return
    if found.edge:
        yield _mark(operator)
    if not operator.inputs or not found.spark:
        if not found.edge:
            raise PlanError(f"{type(operator).__name__} can run nowhere: {found.why}")
        return
    for inputs in product(*(list(_uppers(i)) for i in operator.inputs)):
        yield with_inputs(operator, inputs)


def _highest(operator: Operator) -> Operator:
    found = site(operator)
    if found.edge:
        return _mark(operator)
    if not found.spark:
        raise PlanError(f"{type(operator).__name__} can run nowhere: {found.why}")
    return with_inputs(operator, tuple(_highest(i) for i in operator.inputs))


@dataclass(frozen=True, slots=True)
class _Lower(Received):
    """A placeholder in an upper plan, which still holds the lower part it replaces."""

    part: Operator | None = None


def _mark(part: Operator) -> Operator:
    return _Lower("", part.schema, part.traits, part)


def _named(upper: Operator) -> Cut:
    """Give each lower part a name. Equal parts share one name."""
    refuse_tables_alone(upper)
    names: dict[Operator, str] = {}

    def settle(operator: Operator) -> Operator:
        if isinstance(operator, _Lower) and operator.part is not None:
            name = names.setdefault(operator.part, f"edge{len(names)}")
            return Received(name, operator.columns, operator.carried)
        return with_inputs(operator, tuple(settle(i) for i in operator.inputs))

    settled = settle(upper)
    return Cut(tuple((name, part) for part, name in names.items()), settled)

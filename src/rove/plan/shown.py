"""A result with columns of one name, such as that of `SELECT t.ts, u.ts`.

Law: inside a plan every column has a name of its own. The names that users see twice are given at the end, by the last
step. Nothing but a user's function in Spark can stand above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rove.model.errors import PlanError
from rove.plan.expressions.tree import Column
from rove.plan.operators import Named, Operator, Project, Traits, Unary, column_of


@dataclass(frozen=True, slots=True)
class Shown(Unary):
    """The result of a plan: each column's name, and the column of the input that it is."""

    columns: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        fields = [(name, column_of(self.input.schema, column).dtype) for name, column in self.columns]
        if unread := set(self.input.schema.names) - {column for _, column in self.columns}:
            raise PlanError(f"column `{min(unread)}` is computed for a result that does not show it")
        before = self.input.traits
        time = next((name for name, column in self.columns if column == before.event_time), None)
        self._settle(pa.schema(fields), Traits(time, before.delay_us))


def shown(plan: Operator, columns: Sequence[tuple[str, str]]) -> Operator:
    """The columns of a plan under other names: a projection, or, if names are given twice, the end of the plan."""
    if repeated(name for name, _ in columns) is not None:
        used = dict.fromkeys(column for _, column in columns)
        return Shown(shown(plan, [(column, column) for column in used]), tuple(columns))
    if [name for name, _ in columns] == plan.schema.names and all(name == column for name, column in columns):
        return plan
    return Project(plan, tuple((name, Column(plan.schema.field(c).type, c)) for name, c in columns))


def projection(plan: Operator, columns: Sequence[Named], copies: Sequence[bool] = ()) -> Operator:
    """Computed columns, of which several may have one name. `copies` says which are columns of the plan as they are:
    such a column, listed twice, is one column."""
    if repeated(name for name, _ in columns) is None:
        return Project(plan, tuple(columns))
    own: dict[str, Named] = {}
    names: list[tuple[str, str]] = []
    taken = {name.lower() for name, _ in columns}
    for n, (name, expr) in enumerate(columns):
        is_copy = bool(copies) and copies[n] and isinstance(expr, Column)
        same = next((k for k, each in own.items() if is_copy and each == (name, expr)), None)
        if same is None:
            same = name if name.lower() not in {k.lower() for k in own} else free_name(name, taken)
            taken.add(same.lower())
            own[same] = (name, expr) if is_copy else ("", expr)
        names.append((name, same))
    return Shown(Project(plan, tuple((key, expr) for key, (_, expr) in own.items())), tuple(names))


def free_name(name: str, taken: set[str]) -> str:
    """A name that no column has. `taken` are in small letters."""
    n = 1
    while (new := f"__{n}_{name}").lower() in taken:
        n += 1
    return new


def repeated(names: Iterable[str]) -> str | None:
    """The first name that was given before, ignoring case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


def below_names(plan: Operator, step: Callable[[Operator], Operator]) -> Operator:
    """A step that does not touch the columns, over a plan."""
    return replace(plan, input=step(plan.input)) if isinstance(plan, Shown) else step(plan)


def by_position(plan: Operator) -> Operator:
    """The columns of a plan, each with a name of its own."""
    if not isinstance(plan, Shown):
        return plan
    taken: set[str] = set()
    columns: list[Named] = []
    for name, column in plan.columns:
        new = name if name.lower() not in taken else free_name(name, taken | {n.lower() for n, _ in plan.columns})
        taken.add(new.lower())
        columns.append((new, Column(plan.input.schema.field(column).type, column)))
    return Project(plan.input, tuple(columns))

"""Statements made of clauses: each clause alone, and any two that can stand in one statement.

A clause fills a slot of a statement. Two clauses of different slots make a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.differential.statements.around import AROUND
from tests.differential.statements.clause import Clause
from tests.differential.statements.doubles import DOUBLES
from tests.differential.statements.lists import LISTS
from tests.differential.statements.reasons import REASONS
from tests.differential.statements.relations import RELATIONS

CLAUSES = (*LISTS, *RELATIONS, *AROUND, *DOUBLES, *REASONS)


@dataclass(frozen=True, slots=True)
class Statement:
    """The text, and the clauses it is made of."""

    clauses: tuple[Clause, ...]
    text: str


def statement(*clauses: Clause) -> Statement:
    """The statement of clauses that fill different slots."""
    slots: dict[str, str] = {}
    for clause in clauses:
        for slot, text in clause.wants.items():
            slots.setdefault(slot, text)
    slots |= {c.slot: c.text for c in clauses}
    grouped = "group" in slots or "having" in slots
    fields = slots.get("list") or ("a, count(*) AS n" if grouped else "a, b")
    parts = [
        slots.get("with", ""),
        "SELECT",
        slots.get("kind", ""),
        fields,
        "FROM " + slots.get("from", "t"),
        slots.get("join", ""),
        slots.get("lateral", ""),
        "WHERE " + slots["where"] if "where" in slots else "",
        "GROUP BY " + slots["group"] if "group" in slots else "",
        "HAVING " + slots["having"] if "having" in slots else "",
        slots.get("set", ""),
        slots.get("tail", ""),
    ]
    text = " ".join(p.strip() for p in parts if p)
    return Statement(clauses, slots["whole"].format(text) if "whole" in slots else text)


def alone() -> list[Statement]:
    return [statement(c) for c in CLAUSES]


def in_pairs() -> Iterator[Statement]:
    """All pairs of clauses that fill different slots and do not need each other's."""
    for i, first in enumerate(CLAUSES):
        for second in CLAUSES[i + 1 :]:
            if first.slot == second.slot or "whole" in (first.slot, second.slot):
                continue
            yield statement(first, second)

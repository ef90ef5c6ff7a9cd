"""A clause: one way to fill a slot of a statement.

What a clause needs beside it (a list that fits a join, a name in FROM) is in `wants`, and gives way to the other clause
of a pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SLOTS = ("with", "list", "kind", "from", "join", "lateral", "where", "group", "having", "tail", "set", "whole")


@dataclass(frozen=True, slots=True)
class Clause:
    """One way to fill a slot."""

    slot: str
    text: str
    wants: dict[str, str] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.slot}: {self.text}"


def every(slot: str, lines: str, **wants: str) -> list[Clause]:
    return [Clause(slot, line.strip(), wants) for line in lines.strip().splitlines()]

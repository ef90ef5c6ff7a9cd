"""The forms: a piece of Spark SQL and the columns it is tried on, by family.

Law: a form says nothing of whether the edge computes it; the edge says so itself, and the tests hold it to
that.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """One expression over columns `a`, `b`, …; `ulps` is how far apart two C libraries may put its last
    digit."""

    family: str
    sql: str
    columns: str
    ulps: int = 0

    def __str__(self) -> str:
        return f"{self.sql} over {self.columns}".replace("\n", "\\n")


FORMS: list[Form] = []


def forms(family: str, columns: str, *texts: str, ulps: int = 0) -> None:
    FORMS.extend(Form(family, text, columns, ulps) for text in texts)

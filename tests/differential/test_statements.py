"""A statement gives Spark's columns and rows, or is refused by name. What Spark refuses is never accepted.

The statements are made by `statements/grammar.py`: each clause alone, and clauses in pairs. `docs/sql.md` says what
comes of each clause.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.differential.statements.clause import SLOTS
from tests.differential.statements.grammar import Statement, alone, in_pairs
from tests.differential.statements.verdicts import Judge, Verdict

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"
pytestmark = pytest.mark.slow  # it asks Spark more than a thousand questions; `.ci/run` runs it
PAIRS, ROWS = 1_150, 50  # so many pairs, and so many of them with their rows
SEED = 20261117
_HEAD = """# What a statement can say

This file is written by `pytest tests/differential/test_statements.py --rewrite-docs`; do not edit it by hand.

A statement is Spark SQL over streams. It gives the columns and rows that Spark 4.3 gives, or it is refused with a
reason before anything runs. Nothing in a statement is ignored. Every line below is asked of Rove and of a real Spark
over the same rows, alone and in pairs with other lines ({statements:,} statements in every run of `.ci/run`, all of
them for names and types, {rows} for their rows).

*edge* means that the whole statement can run at the edge, *Spark* that a part of it runs in Spark; `explain()` says
which part and why. *refused* means that Spark runs it over a table and Rove refuses it over a stream. *refused by both*
is a statement that Spark refuses too; where Rove has no reason of its own, Spark gives it before the query starts.
"""
_TITLES = {
    "list": "The select list",
    "kind": "Before the select list",
    "from": "FROM",
    "join": "Joins",
    "lateral": "LATERAL VIEW",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "tail": "At the end",
    "set": "Set operations",
    "with": "WITH",
    "whole": "Whole statements",
}


@pytest.fixture(scope="module")
def judge(spark: Any) -> Judge:
    return Judge(spark)


@pytest.fixture(scope="module")
def singles(judge: Judge) -> dict[Statement, Verdict]:
    statements = alone()
    return dict(zip(statements, judge.verdicts([s.text for s in statements]), strict=True))


def _bugs(found: dict[Statement, Verdict]) -> list[str]:
    return [f"{v.kind}: {s.text}\n    {v.why[:300]}" for s, v in found.items() if v.kind in ("different", "accepted")]


def test_a_clause_alone_gives_sparks_rows_or_is_refused(singles: dict[Statement, Verdict]) -> None:
    assert not (bugs := _bugs(singles)), "\n".join(bugs)


def pairs(singles: dict[Statement, Verdict], most: int) -> list[Statement]:
    """Pairs of clauses that are accepted alone, and a few others."""
    fine = {s.clauses[0] for s, v in singles.items() if v.kind == "equal"}
    both, others = [], []
    for pair in in_pairs():
        (both if set(pair.clauses) <= fine else others).append(pair)
    draw = random.Random(SEED)
    draw.shuffle(both)
    draw.shuffle(others)
    return [*both[: most * 9 // 10], *others[: most // 10]]


@pytest.mark.slow
def test_two_clauses_give_sparks_rows_or_are_refused(judge: Judge, singles: dict[Statement, Verdict]) -> None:
    asked = pairs(singles, PAIRS)
    assert len(asked) + len(singles) >= 1_500
    found = dict(zip(asked, judge.verdicts([s.text for s in asked], all_of_them=False, rows_max=ROWS), strict=True))
    assert not (bugs := _bugs(found)), "\n".join(bugs)
    kinds = Counter(v.kind for v in found.values())
    assert kinds["equal"] > len(asked) // 4, kinds


def document(singles: dict[Statement, Verdict]) -> str:
    kinds = Counter((v.kind, v.where if v.kind == "equal" else "") for v in singles.values())
    compared = sum(v.kind == "equal" for v in singles.values()) + ROWS
    parts = [_HEAD.format(statements=len(singles) + PAIRS, rows=compared)]
    parts.append(
        f"\nOf {len(singles)} forms {kinds['equal', 'edge']} are equal at the edge and {kinds['equal', 'Spark']} with "
        f"Spark; {kinds['refused', '']} are refused, and {kinds['both refuse', '']} are refused by both.\n"
    )
    for slot in sorted(SLOTS, key=list(_TITLES).index):
        parts.append(f"\n## {_TITLES[slot]}\n\n| form | what comes of it |\n|---|---|\n")
        for statement, verdict in singles.items():
            if statement.clauses[0].slot == slot:
                parts.append(f"| `{_cell(statement.text)}` | {_cell(_said(verdict))} |\n")
    return "".join(parts)


def _said(verdict: Verdict) -> str:
    match verdict.kind:
        case "equal":
            return f"equal, {verdict.where}"
        case "refused":
            return f"refused: {verdict.why}"
    return f"refused by both: {verdict.why}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_document_says_what_comes_of_each_clause(
    singles: dict[Statement, Verdict], pytestconfig: pytest.Config
) -> None:
    text = document(singles)
    if pytestconfig.getoption("--rewrite-docs"):
        DOCUMENT.write_text(text)
    assert DOCUMENT.exists(), "run with --rewrite-docs first"
    assert DOCUMENT.read_text() == text, "statements are read otherwise than the document says; run with --rewrite-docs"

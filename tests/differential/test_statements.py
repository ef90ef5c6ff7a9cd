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
from tests.differential.statements.inside import made_inside
from tests.differential.statements.streaming import MODES, Streamed, StreamingSpark
from tests.differential.statements.verdicts import Judge, Verdict

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"
pytestmark = pytest.mark.slow  # it asks Spark more than a thousand questions; `.ci/run` runs it
PAIRS = 1_150
SEED = 20261117
# Reasons that streaming Spark gives when a query starts, not when it is analyzed; and words about more than one clause.
PLANNED = (
    "a join of two streams needs an equality",
    "WINDOW cannot be used on a stream",
)
_HEAD = """# What a statement can say

This file is written by `pytest tests/differential/test_statements.py --rewrite-docs`; do not edit it by hand.

A statement is Spark SQL over streams. It gives the columns and rows that Spark 4.3 gives, or it is refused with a
reason before anything runs. Nothing in a statement is ignored. Every line below is asked of Rove and of a real Spark
over the same rows, alone and in pairs with other lines: {statements:,} statements in every run of `.ci/run`. Names,
types and rows are compared for each that both accept.

*edge* means that the whole statement can run at the edge, *Spark* that a part of it runs in Spark; `explain()` says
which part and why. *refused* means that Spark runs it over a table and Rove refuses it over a stream. *refused by both*
is a statement that Spark refuses too; where Rove has no reason of its own, Spark gives it before the query starts.

*As a stream* are the output modes in which the statement runs over a stream. Spark's own analysis of a stream has said
so: of the part that Rove leaves to it, and for a statement that Rove refuses, of the statement itself.
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


@pytest.fixture(scope="module")
def streams(spark: Any, singles: dict[Statement, Verdict]) -> dict[Statement, Streamed]:
    asked = StreamingSpark(spark)
    return {s: asked.streamed(s.text, v.plan) for s, v in singles.items() if v.kind in ("equal", "refused")}


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
    found = dict(zip(asked, judge.verdicts([s.text for s in asked], all_of_them=False), strict=True))
    assert not (bugs := _bugs(found)), "\n".join(bugs)
    kinds = Counter(v.kind for v in found.values())
    assert kinds["equal"] > len(asked) // 4, kinds
    assert not (shown := made_inside({s.text: v.said for s, v in found.items()})), "\n".join(shown)


def test_no_message_shows_what_is_inside(singles: dict[Statement, Verdict]) -> None:
    assert not (shown := made_inside({s.text: v.said for s, v in singles.items()})), "\n".join(shown)


def test_what_streaming_spark_refuses_is_refused_in_the_same_output_modes(
    singles: dict[Statement, Verdict], streams: dict[Statement, Streamed]
) -> None:
    """By the list, which needs no Spark, as by Spark. What Spark runs as it is written, Rove runs too."""
    wrong = []
    for statement, found in streams.items():
        if singles[statement].plan is None:
            continue
        unread = any(why.startswith("Spark refuses this query") for why in found.ours.values())
        if found.listed.keys() != found.ours.keys() and not unread:
            wrong.append(f"{statement.text}\n    the list: {found.listed}\n    Spark: {found.ours}")
        if found.ours.keys() - found.theirs.keys():
            wrong.append(f"{statement.text}\n    Rove: {found.ours}\n    Spark: {found.theirs}")
    assert not wrong, "\n".join(wrong)


def test_a_reason_that_names_streaming_spark_is_its_own(
    singles: dict[Statement, Verdict], streams: dict[Statement, Streamed]
) -> None:
    said = {s.text: singles[s].why for s, found in streams.items() if len(found.theirs) < len(MODES)}
    wrong = {t: why for t, why in said.items() if "streaming Spark" in why and not why.startswith(PLANNED)}
    assert not wrong


def document(singles: dict[Statement, Verdict], streams: dict[Statement, Streamed]) -> str:
    kinds = Counter((v.kind, v.where if v.kind == "equal" else "") for v in singles.values())
    parts = [_HEAD.format(statements=len(singles) + PAIRS)]
    parts.append(
        f"\nOf {len(singles)} forms {kinds['equal', 'edge']} are equal at the edge and {kinds['equal', 'Spark']} with "
        f"Spark; {kinds['refused', '']} are refused, and {kinds['both refuse', '']} are refused by both.\n"
    )
    for slot in sorted(SLOTS, key=list(_TITLES).index):
        parts.append(f"\n## {_TITLES[slot]}\n\n| form | what comes of it | as a stream |\n|---|---|---|\n")
        for statement, verdict in singles.items():
            if statement.clauses[0].slot == slot:
                cells = (f"`{statement.text}`", _said(verdict), _streamed(verdict, streams.get(statement)))
                parts.append(f"| {' | '.join(map(_cell, cells))} |\n")
    return "".join(parts)


def _said(verdict: Verdict) -> str:
    match verdict.kind:
        case "equal":
            return f"equal, {verdict.where}"
        case "refused":
            return f"refused: {verdict.why}"
    return f"refused by both: {verdict.why}"


def _streamed(verdict: Verdict, found: Streamed | None) -> str:
    """The output modes, or why there are none."""
    if found is None:
        return ""
    refusals, by = (found.ours | found.listed, "") if verdict.kind == "equal" else (found.theirs, "Spark: ")
    modes = ", ".join(mode for mode in MODES if mode not in refusals)
    return by + (modes or refusals["append"].removeprefix("streaming Spark refuses this query: "))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_document_says_what_comes_of_each_clause(
    singles: dict[Statement, Verdict], streams: dict[Statement, Streamed], pytestconfig: pytest.Config
) -> None:
    text = document(singles, streams)
    if pytestconfig.getoption("--rewrite-docs"):
        DOCUMENT.write_text(text)
    assert DOCUMENT.exists(), "run with --rewrite-docs first"
    assert DOCUMENT.read_text() == text, "statements are read otherwise than the document says; run with --rewrite-docs"

"""Every reason for which a statement is refused is on the page of statements, beside a form that meets it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "src" / "rove" / "plan"
TABLES = ("column_names", "constant_names", "name_table")  # they hold names of columns, and refuse nothing
SOURCES = [
    *(source for source in sorted((PLAN / "sql").rglob("*.py")) if source.stem not in TABLES),
    PLAN / "expressions" / "tokens.py",
]
PAGE = (ROOT / "docs" / "sql.md").read_text().replace("\\|", "|")
NOT_ON_THE_PAGE = {
    "explain() shows these": (
        "a subquery in an expression is computed by Spark",
        "grouping sets are computed by Spark",
        "an aggregate with IGNORE NULLS is computed by Spark",
        "an aggregate WITHIN GROUP is computed by Spark",
        "LATERAL is computed by Spark",
        "UNPIVOT is computed by Spark",
        "FILTER on an aggregate that Spark computes",
        "`{}` makes several rows of one, which Spark computes",
    ),
    "only verbs of streams meet these": (
        "`{}` cannot stand after pivot(…), as in Spark; use count(), or F.count(F.lit(1))",
        "both sides of the join have it from the same stream; give each an alias, and write F.col('x.y')",
        "belongs to a stream that is not here, or was renamed or computed anew since; write F.col(…)",
    ),
    "the parser refuses it first": (
        "PIVOT has one FOR … IN (…)",
        "PIVOT needs aggregates before FOR",
        "the statement is nested too deeply",
        "the statement reads no stream; name one after FROM",
    ),
}
_HOLE = re.compile(r"\{\w*\}")


def texts(tree: ast.Module) -> Iterator[str]:
    """All texts of a module that are no docstrings. A value in a text is a hole."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    within = {
        id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, documented) and isinstance(n.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if id(node) in within:
            continue
        if isinstance(node, ast.JoinedStr):
            within |= {id(part) for part in ast.walk(node)}
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def reasons(source: Path) -> list[str]:
    """The texts of a module that are sentences. Lists of words are not."""
    found = [text for text in texts(ast.parse(source.read_text())) if len(text.split()) > 2]
    return [text for text in found if not re.fullmatch(r"[\s\w,:-]*", text) or text.startswith("is ")]


def is_on_the_page(reason: str) -> bool:
    return re.search(".*?".join(map(re.escape, _HOLE.split(reason))), PAGE) is not None


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem)
def test_every_reason_is_on_the_page(source: Path) -> None:
    known = {text for each in NOT_ON_THE_PAGE.values() for text in each}
    assert [text for text in reasons(source) if text not in known and not is_on_the_page(text)] == []


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_names_refuses_nothing(table: str) -> None:
    tree = ast.parse((PLAN / "sql" / f"{table}.py").read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]


def test_what_is_not_on_the_page_is_in_the_source_and_not_on_the_page() -> None:
    there = {text for source in SOURCES for text in texts(ast.parse(source.read_text()))}
    known = [text for each in NOT_ON_THE_PAGE.values() for text in each]
    assert [text for text in known if text not in there or is_on_the_page(text)] == []

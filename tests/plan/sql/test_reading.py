"""Nothing in a statement is dropped: the reader marks what it has read and refuses the rest."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sqlglot import exp

import rove
from rove.model.errors import ExpressionError, PlanError
from rove.plan.expressions.parse import parse_query
from rove.plan.expressions.syntax import READS, unread_argument
from rove.plan.sql.reading import Reading

FOLDER = Path(rove.__file__).parent / "plan" / "sql"
# Attributes of a parsed node that give one of its arguments.
ARGUMENTS = {"alias", "alias_or_name", "args", "expression", "expressions", "kind", "method", "side", "this"}
# These hand text to Spark as it is, or work on one kind of node: each refuses other arguments by a table of its own.
READ_WHOLE = set(
    "column_names.py constant_names.py reading.py left_to_spark.py outputs.py filters.py resolve.py scope.py".split()
)


def test_an_argument_that_nobody_takes_is_refused_by_its_name() -> None:
    text = "SELECT a FROM t LIMIT 5"
    part = Reading(parse_query(text), text)
    part.take("expressions")
    part.take("from_")
    with pytest.raises(ExpressionError, match="LIMIT cannot be used") as caught, part:
        pass
    assert str(caught.value).endswith("in: SELECT a FROM t LIMIT 5\n                      ^^^^^")


def test_a_reading_that_takes_everything_ends_in_peace() -> None:
    text = "SELECT a FROM t"
    with Reading(parse_query(text), text) as part:
        assert [e.name for e in part.list("expressions")] == ["a"]
        part.take("from_")


def test_the_error_of_a_part_is_not_hidden_by_what_is_left() -> None:
    text = "SELECT a FROM t LIMIT 5"
    with pytest.raises(KeyError), Reading(parse_query(text), text):
        raise KeyError("of the part")


@pytest.mark.parametrize(
    "path", sorted(p for p in FOLDER.rglob("*.py") if p.name not in READ_WHOLE), ids=lambda p: p.name
)
def test_a_translator_reaches_arguments_through_a_reading_only(path: Path) -> None:
    nodes = ast.walk(ast.parse(path.read_text()))
    used = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr in ARGUMENTS]
    assert not [f"{path.name}:{n.lineno} .{n.attr}" for n in used if not _own(n)]


def _own(node: ast.Attribute) -> bool:
    """Whether the attribute is one of our own values: `self.…`."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


@pytest.mark.parametrize("kind", READS, ids=lambda k: k.__name__)
def test_an_argument_that_the_binder_does_not_read_is_found(kind: type[exp.Expression]) -> None:
    extra = next((name for name in kind.arg_types if name not in READS[kind] and name not in FLAGS), None)
    if extra is not None:
        assert unread_argument(kind(**{extra: exp.Null()})) == extra.strip("_").replace("_", " ").upper()
    assert not unread_argument(kind(**{name: exp.Null() for name in READS[kind]}))


FLAGS = {"safe", "typed", "coalesce", "is_string", "quoted"}

CARETS = {
    "TABLE t": "TABLE",
    "-- all\nDELETE FROM t": "DELETE",
    "EXPLAIN SELECT a FROM t": "EXPLAIN",
    "SELEC a FROM t": "SELEC",
    "SELECT a FROM t LIMIT 5": "LIMIT",
    "SELECT nope FROM t": "nope",
    "SELECT a FROM nowhere": "nowhere",
    "SELECT t.nope FROM t": "t.nope",
    "SELECT a FROM t WHERE u.a > 1": "u.a",
    "SELECT a FROM t WHERE sum(a) > 1": "sum(a",
    "SELECT a FROM t ORDER BY a": "ORDER",
    "SELECT b, count(*) AS n FROM t GROUP BY a": "b",
    "SELECT uper(s) AS q FROM t": "uper(s",
    "SELECT row_number() OVER (ORDER BY a) AS q FROM t": "row_number() OVER (ORDER BY a",
    "SELECT a FROM t UNION ALL SELECT array(b) AS q FROM t": "array(b) AS q FROM t",
    "SELECT a,\n       nope,\n       b\nFROM t": "nope",
}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT * FROM", "Expected table name but got nothing"),
        ("SELECT a FROM t JOIN", "Expected table name but got nothing"),
        ("SELECT * EXCEPT (st.x) FROM t", "EXCEPT takes whole columns; write the struct without this field"),
    ],
)
def test_an_error_is_said_in_words_of_users(text: str, why: str) -> None:
    session = rove.Session.local()
    session.stream("t", schema="a int, st struct<x: int>")
    with pytest.raises(PlanError, match=why) as caught:
        session.sql(text)
    assert "<Token" not in str(caught.value)


@pytest.mark.parametrize("text", CARETS)
def test_the_caret_stands_under_the_word_that_is_meant(text: str) -> None:
    session = rove.Session.local()
    session.stream("t", schema="a int, b int, s string")
    with pytest.raises(PlanError) as caught:
        session.sql(text)
    *_, shown, carets = str(caught.value).splitlines()
    start = len(carets) - len(carets.lstrip())
    assert shown[start : start + carets.count("^")] == CARETS[text]

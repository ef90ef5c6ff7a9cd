"""A statement that is broken anywhere is refused with one of our errors, never with one of Python's or the parser's."""

from __future__ import annotations

import random

import pytest

import rove
from rove.model.errors import RoveError
from tests import depth
from tests.differential.statements.grammar import alone, in_pairs
from tests.differential.statements.verdicts import COLUMNS

EACH = 400
SEEDS = 30


@pytest.fixture(scope="module")
def session() -> rove.Session:
    session = rove.Session.local()
    for name, columns in COLUMNS.items():
        stream = session.stream(name, schema=columns)
        session.name(name, stream.withWatermark("ts", "1 minute") if "ts " in columns else stream)
    return session


def broken(text: str, draw: random.Random) -> str:
    """A word left out, said twice, moved, or replaced by another."""
    words = text.split()
    at, other = draw.randrange(len(words)), draw.randrange(len(words))
    match draw.randrange(4):
        case 0:
            del words[at]
        case 1:
            words.insert(at, words[at])
        case 2:
            words[at], words[other] = words[other], words[at]
        case _:
            words[at] = draw.choice(["(", ")", ",", "SELECT", "FROM", "*", "NULL", "t", "1", "'x'", "AS", "."])
    return " ".join(words)


LOOSE = {
    "SELECT , a FROM t": "a comma with nothing on one side",
    "SELECT a, FROM t": "a comma with nothing on one side",
    "SELECT a, , b FROM t": "a comma with nothing on one side",
    "SELECT AS a FROM t": "AS with nothing before it",
    "SELECT a AS 'x' FROM t": "an alias is a name",
    "SELECT substring(s FROM FROM 1) AS q FROM t": "a word said twice",
    "SELECT sum(b) AS n FROM t GROUP BY ALL ALL": "a word said twice",
    "SELECT sum(b) AS n FROM t GROUP BY ALL a": "GROUP BY needs expressions",
    "SELECT sum(b) AS n FROM t GROUP BY": "GROUP BY needs expressions",
    "SELECT a FROM t WHERE a NOT NULL": "write IS NOT NULL",
    "SELECT a FROM t WHERE a NOT IS NULL": "write IS NOT",
    "SELECT * EXCEPT FROM t": "EXCEPT needs names",
    "SELECT t.a FROM t JOIN u USING": "USING needs names",
    "SELECT a, count(DISTINCT ) AS n FROM t GROUP BY a": "DISTINCT needs a value",
    "SELECT sum(DISTINCT ) FILTER (WHERE b > 1) AS q FROM t GROUP BY CUBE (a)": "DISTINCT needs a value",
    "SELECT a FROM t * JOIN u ON t.a = u.a": "a star after a name",
    "SELECT a AS 1 FROM t": "AS with no name after it",
    "SELECT a AS , b FROM t": "AS with no name after it",
    "SELECT a FROM t WHERE a BETWEEN 1 3": "two numbers side by side",
    "SELECT a FROM t, JOIN u USING (a)": "a comma with nothing on one side",
    "SELECT * EXCEPT (1) FROM t": "is not one column",
    "SELECT * EXCEPT ('x') FROM t LATERAL VIEW explode(arr) e AS x": "is not one column",
    "SELECT +a FROM t": "a plus sign",
    "SELECT a FROM t WHERE a > 1 AND +b > 1": "a plus sign",
    "SELECT CASE WHEN a > 1 THEN +a END AS q FROM t": "a plus sign",
    "SELECT a + +b AS q FROM t": "a plus sign",
    "SELECT a + nope(b) FROM t": "no function `nope`",
    "SELECT s:x FROM t": "`:` is not read here",
    "SELECT rank() OVER w FROM t WINDOW w AS (PARTITION BY a)": "WINDOW cannot be used on a stream: streaming Spark",
    "SELECT count(*) AS n FROM t GROUP BY window(ts, INTERVAL 10 SECONDS)": "write the lengths of a window as text",
    "SELECT count(*) AS n FROM t JOIN u USING (a) GROUP BY window(u.ts, '1 second')": "event time is `ts` here",
    "SELECT window_time(window) AS w FROM t GROUP BY window(ts, '1 second')": "only over the results of a group",
    "SELECT t.a FROM t JOIN u ON t.a = u.a AND t.b": "a condition must be boolean",
    "SELECT a FROM t |> WHERE a > 1": "is not read here",
}


@pytest.mark.parametrize("text", LOOSE)
def test_what_the_parser_would_drop_is_refused(session: rove.Session, text: str) -> None:
    with pytest.raises(RoveError, match=LOOSE[text]):
        session.sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE NOT NULL",
        "SELECT q FROM (SELECT a AS date, ts AS timestamp FROM t) LATERAL VIEW explode(array(date + 1)) e AS q",
        "SELECT timestamp + INTERVAL 1 DAY AS q FROM (SELECT ts AS timestamp FROM t)",
        "SELECT CAST(st AS struct<x: int, y: string>) AS q FROM t",
        "SELECT a - -1 AS q FROM t",
        "SELECT (a) AS q FROM t",
        "SELECT t.a FROM t JOIN u ON t.a = u.a AND soundex(t.s) = u.s AND t.b > soundex(u.s)",
    ],
)
def test_what_only_looks_loose_is_read(session: rove.Session, text: str) -> None:
    assert session.sql(text).columns in (["a"], ["q"])


@pytest.mark.parametrize("seed", depth.some_slow(range(SEEDS), 2))
def test_a_broken_statement_is_refused_with_an_error_of_ours(session: rove.Session, seed: int) -> None:
    draw = random.Random(seed)
    statements = draw.sample([*alone(), *in_pairs()], EACH)
    for statement in statements:
        text = broken(statement.text, draw)
        try:
            session.sql(text)
        except RoveError:
            continue
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} from: {text}") from error

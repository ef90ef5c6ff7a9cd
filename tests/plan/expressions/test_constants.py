"""A constant with its type before it is a value of that type, or refused where it is written."""

from __future__ import annotations

import pytest

import rove
from rove.model.errors import ExpressionError


@pytest.mark.parametrize(
    ("text", "under"),
    [
        ("date '2020-13-01'", "'2020-13-01'"),
        ("timestamp '2020-01-01 25:00:00'", "'2020-01-01 25:00:00'"),
        ("timestamp_ntz '2020-01-01 25:00:00'", "'2020-01-01 25:00:00'"),
        ("time '25:00:00'", "'25:00:00'"),
        ("ts > timestamp 'nope'", "'nope'"),
        ("percentile(b, 0.5) > extract(DAY FROM date 'nope')", "'nope'"),
        ("explode(array(date 'nope'))", "'nope'"),
        ("1e400", "1e400"),
        ("a + 1e400", "1e400"),
        ("1e400D", "1e400D"),
        ("1e39F", "1e39F"),
        ("-1e400", "1e400"),
    ],
)
def test_a_constant_that_is_no_value_is_refused_with_its_place(text: str, under: str) -> None:
    session = rove.Session.local()
    session.stream("t", schema="a int, b int, ts timestamp")
    with pytest.raises(ExpressionError) as caught:
        session.sql(f"SELECT {text} AS q FROM t")
    *_, shown, carets = str(caught.value).splitlines()
    start = len(carets) - len(carets.lstrip())
    assert shown[start : start + carets.count("^")] == under


@pytest.mark.parametrize(
    "text",
    [
        "date '2020-1-1'",
        "date 'today'",
        "timestamp '2020'",
        "timestamp '2020-01-01 00:00:00 Europe/Berlin'",
        "CAST('nope' AS date)",
        "CAST(1e39 AS float)",
        "1e-400",
        "1e300",
    ],
)
def test_other_constants_and_casts_are_read(text: str) -> None:
    session = rove.Session.local()
    session.stream("t", schema="a int, ts timestamp")
    assert session.sql(f"SELECT {text} AS q FROM t").columns == ["q"]

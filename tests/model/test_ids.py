"""Names: what a node, a stream, a query and a table can be called."""

from __future__ import annotations

import pytest

from rove.model.errors import BadName
from rove.model.ids import NAME_BYTES_MAX, checked_name


@pytest.mark.parametrize("name", ["a", "xrays", "tram-7", "-", "_x", "7", "a.b", "S41-01", "x" * NAME_BYTES_MAX])
def test_letters_digits_dashes_underscores_and_dots_make_a_name(name: str) -> None:
    assert checked_name(name, "a stream") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        ".a",
        "a b",
        "a/b",
        "a~1",
        "a|0",
        "+a",
        "?a",
        "a\n",
        "a\0",
        "züge",
        "x" * (NAME_BYTES_MAX + 1),
    ],
)
def test_anything_else_is_refused_by_what_it_should_have_named(name: str) -> None:
    with pytest.raises(BadName, match="cannot name a query; use letters a to z, digits"):
        checked_name(name, "a query")


def test_a_refusal_is_short_however_long_the_name_is() -> None:
    with pytest.raises(BadName) as refused:
        checked_name("x" * 1_000_000, "a node")
    assert len(str(refused.value)) < 300

"""An account says whether it adds up."""

from __future__ import annotations

from rove.api.accounts import excess, total, verdict
from rove.control.asks.requests import AccountLine


def line(origin: str, **counts: int | None) -> AccountLine:
    nothing = dict.fromkeys(AccountLine.__struct_fields__, 0)
    return AccountLine(**{**nothing, "query": "q", "origin": origin, "missing_batches": "", "liar": "", **counts})  # type: ignore[arg-type]


def test_lines_that_add_up_are_one_equation() -> None:
    lines = [
        line("a", produced=1_000, delivered=990, late=10, watermark_lag_ms=70),
        line("b", produced=5, in_flight=4, lost=1, watermark_lag_ms=None),
    ]
    assert verdict(lines) == (
        "The sums add up: 1,005 produced = 990 delivered + 0 evicted + 10 late + 1 lost + 0 faulted + 4 in flight."
    )
    assert total(lines).watermark_lag_ms == 70


def test_a_line_that_does_not_is_named_even_where_another_makes_up_for_it() -> None:
    lines = [line("a", produced=10, delivered=12), line("b", produced=10, delivered=8)]
    assert [excess(each) for each in lines] == [2, -2]
    assert "do not add up: `a` of query `q` has 2 rows too many for the 10 it produced" in verdict(lines)


def test_before_the_first_row_there_is_nothing_to_add() -> None:
    assert verdict([]) == "Nothing has been produced yet."

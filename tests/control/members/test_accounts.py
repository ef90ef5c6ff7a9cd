"""Counts of different moments are added up by the names of batches."""

from __future__ import annotations

from rove.api.accounts import excess
from rove.control.asks.requests import AccountLine
from rove.control.members.accounts import account_lines
from rove.model.ids import Origin, QueryId
from rove.model.messages import Tally

ORIGIN = Origin("fixes", "van-7")


def account(*counts: dict[str, int]) -> AccountLine:
    """The account of an origin, from the reports of several nodes."""
    tallies = [Tally(query=QueryId("q"), origin=ORIGIN, **each) for each in counts]  # type: ignore[arg-type]
    (line,) = account_lines(tallies, 0, {ORIGIN})
    return line


def test_an_end_that_has_seen_more_than_its_maker_has_reported_knows_that_it_was_produced() -> None:
    line = account({"produced": 50, "made": 5}, {"delivered": 70, "seen": 7})
    assert (line.produced, line.delivered, line.in_flight, excess(line)) == (70, 70, 0, 0)


def test_rows_that_are_counted_twice_do_not_add_up_whenever_they_are_asked_for() -> None:
    line = account({"produced": 50, "made": 5}, {"delivered": 60, "seen": 5})
    assert excess(line) == 10


def test_rows_that_no_end_has_seen_are_in_flight() -> None:
    line = account({"produced": 50, "made": 5}, {"delivered": 10, "seen": 1}, {"late": 10, "seen": 4})
    assert (line.produced, line.in_flight, excess(line)) == (50, 30, 0)

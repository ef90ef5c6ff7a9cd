"""Counts of different moments are added up by the names of batches."""

from __future__ import annotations

from rove.api.accounts import excess
from rove.control.asks.requests import AccountLine
from rove.control.members.accounts import account_lines
from rove.control.members.ended import Ended
from rove.control.members.missing.missing import Missing
from rove.model.ids import NodeId, Origin, QueryId
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


def reported(*reports: tuple[str, dict[str, int]]) -> AccountLine:
    """The account of an origin after these reports of nodes, one after the other."""
    missing, last = Missing(Ended()), dict[str, Tally]()
    for node, counts in reports:
        last[node] = Tally(query=QueryId("q"), origin=ORIGIN, **counts)  # type: ignore[arg-type]
        missing.take(NodeId(node), [last[node]], whole=False)
    (line,) = account_lines(last.values(), 0, {ORIGIN}, missing=missing)
    return line


def test_an_end_that_is_ahead_of_its_maker_hides_no_rows_that_were_counted_twice() -> None:
    maker, end = ("van-7", {"produced": 100, "made": 10}), {"delivered": 200, "seen": 10}
    assert excess(reported(maker, ("gateway", end))) == 100
    line = reported(maker, ("gateway", end), ("gateway", {"delivered": 220, "seen": 11}))
    assert (line.produced, excess(line)) == (120, 100), "at most 20 rows are of batches that were not reported yet"
    honest = reported(maker, ("gateway", {"delivered": 100, "seen": 10}), ("gateway", {"delivered": 110, "seen": 11}))
    assert (honest.produced, excess(honest)) == (110, 0)
    unknown = reported(maker, ("gateway", {"delivered": 220, "seen": 11}))
    assert excess(unknown) == 0, "its first report tells nothing of the batches before"


def test_rows_of_an_origin_that_has_ended_are_not_produced_by_counting_them_twice() -> None:
    made = Tally(query=QueryId("q"), origin=ORIGIN, produced=100, made=10)
    twice = Tally(query=QueryId("q"), origin=ORIGIN, delivered=200, seen=10)
    (line,) = account_lines([made, twice], 0, ())
    assert excess(line) == 100
    later = Tally(query=QueryId("q"), origin=ORIGIN, delivered=120, seen=12)
    (line,) = account_lines([made, later], 0, ())
    assert (line.produced, excess(line)) == (120, 0), "it died before it had reported its last two batches"


def test_a_lost_row_of_a_query_hides_no_output_that_was_counted_twice() -> None:
    window = Origin("q", stage=3)
    lost = Tally(query=QueryId("q"), origin=ORIGIN, produced=1, lost=1, made=1)
    made = Tally(query=QueryId("q"), origin=window, produced=100, made=10)
    twice = Tally(query=QueryId("q"), origin=window, delivered=200, seen=10)
    assert excess(account_lines([lost, made, twice], 0, {ORIGIN, window})[1]) == 100


def test_rows_that_no_end_has_seen_are_in_flight() -> None:
    line = account({"produced": 50, "made": 5}, {"delivered": 10, "seen": 1}, {"late": 10, "seen": 4})
    assert (line.produced, line.in_flight, excess(line)) == (50, 30, 0)


def test_rows_in_an_open_window_are_not_lost_when_their_origin_is_gone_but_when_their_query_is_stopped() -> None:
    made = Tally(query=QueryId("q"), origin=ORIGIN, produced=50, made=5)
    taken = Tally(query=QueryId("q"), origin=ORIGIN, delivered=20, open=25, seen=5)
    (line,) = account_lines([made, taken], 0, ())
    assert (line.delivered, line.open, line.in_flight, line.lost, excess(line)) == (20, 25, 25, 5, 0)
    (line,) = account_lines([made, taken], 0, {ORIGIN}, stopped={"q"})
    assert (line.delivered, line.open, line.in_flight, line.lost, excess(line)) == (20, 0, 0, 30, 0)


def test_an_operator_that_computes_again_without_lost_input_has_produced_what_arrived() -> None:
    window = Origin("q", stage=3)
    lost = Tally(query=QueryId("q"), origin=ORIGIN, produced=20, made=4, delivered=15, lost=5, seen=4)
    again = Tally(query=QueryId("q"), origin=window, produced=8, made=2)
    arrived = Tally(query=QueryId("q"), origin=window, delivered=9, seen=2)
    line = account_lines([lost, again, arrived], 0, {ORIGIN, window}, again=["q"])[1]
    assert (line.produced, line.delivered, excess(line)) == (9, 9, 0)
    (line,) = account_lines([again, arrived], 0, {ORIGIN, window}, troubled=["q"], again=["q"])
    assert excess(line) == 0, "its input is damaged"
    line = account_lines([lost, again, arrived], 0, {ORIGIN, window})[1]
    assert excess(line) == 1, "no node has started again, so that nothing was computed again"
    (line,) = account_lines([again, arrived], 0, {ORIGIN, window})
    assert excess(line) == 1, "nothing was lost, so that a row was counted twice"


def test_a_batch_that_two_starts_of_a_node_lost_is_lost_once() -> None:
    origin = Origin("s", "device", 1)
    made = Tally(query=QueryId("q"), origin=origin, produced=10, made=2)
    lost = Tally(query=QueryId("q"), origin=origin, lost=10, lost_here=10, seen=2, counted=(("", (0, 2)),))
    ended = Ended()
    ended.over(NodeId("gateway"), 1, [lost], [])
    (line,) = account_lines([made, lost, *ended.tallies()], 0, {origin})
    assert (line.lost, excess(line)) == (10, 0)


def test_a_batch_that_came_again_after_an_earlier_start_had_lost_it_is_not_lost() -> None:
    origin = Origin("s", "device", 1)
    made = Tally(query=QueryId("q"), origin=origin, produced=20, made=4)
    lost = Tally(query=QueryId("q"), origin=origin, lost=10, lost_here=10, seen=2, counted=(("", (0, 2)),))
    taken = Tally(query=QueryId("q"), origin=origin, delivered=15, seen=3, counted=(("out", (0, 3)),))
    (line,) = account_lines([made, lost, taken], 0, {origin})
    assert (line.delivered, line.lost, line.in_flight, excess(line)) == (15, 5, 0, 0)
    strange = Tally(query=QueryId("q"), origin=origin, delivered=15, seen=3, counted=(("out", (2, 4)),))
    (line,) = account_lines([made, lost, strange], 0, {origin})
    assert excess(line) == 5, "names that differ do not explain it: rows were counted twice"


def test_what_an_operator_that_has_moved_away_has_counted_outlives_the_next_start_of_its_node() -> None:
    past, window = Ended(), Origin("q", "gateway", stage=3)
    made = Tally(query=QueryId("q"), origin=window, produced=8, produced_here=8, delivered=5, made=4, seen=3)
    past.over(NodeId("gateway"), 1, [made], (), again=[QueryId("q")])
    arrived = Tally(query=QueryId("q"), origin=window, delivered=5, seen=3)  # its next start reads the log
    (line,) = account_lines([*past.tallies(), arrived], 0, {window})
    assert (line.produced, line.delivered, line.in_flight, excess(line)) == (8, 5, 3, 0)

"""Batches that nobody has any more are named; batches between two reports are not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rove.api.accounts import verdict
from rove.control.members.accounts import account_lines
from rove.control.members.ended import Ended
from rove.control.members.missing.missing import LOOK_US, NEVER, PATIENCE_US, Missing
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Tally
from rove.model.spans import Coverage, Spans

ORIGIN = Origin("fixes", "van-7")
QUERY = QueryId("q")
LINE = (QUERY, ORIGIN)
VAN, EDGE, GATEWAY = NodeId("van-7"), NodeId("edge-1"), NodeId("gateway")


def tally(counted: dict[str, Spans] | None = None, **counts: Any) -> Tally:
    return Tally(query=QUERY, origin=ORIGIN, counted=tuple((counted or {}).items()), **counts)


class Reports:
    """Reports of nodes to one machine. Every node is heard at every look."""

    def __init__(self) -> None:
        self.ended = Ended()
        self.missing = Missing(self.ended)
        self.now = 0

    def say(self, node: NodeId, **counts: Any) -> None:
        self.missing.take(node, [tally(**counts)], whole=False)

    def looks(self, seconds: int, known: bool = True) -> Spans | None:
        """Look once a second. Returns the batches that are missing then."""
        for _ in range(seconds):
            self.now += LOOK_US
            self.missing.look(lambda query, origin: self.now if known else NEVER, self.now)
        found = self.missing.of(*LINE)
        return None if found is None else found.batches


def test_batches_that_no_node_has_are_missing_after_a_while() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10, held=(7, 10), buffered=30)
    net.say(GATEWAY, delivered=30, seen=3, counted={"out": (0, 3)})
    assert net.looks(PATIENCE_US // LOOK_US) is None
    assert net.looks(1) == (3, 7)
    assert net.missing.rows(*LINE, in_flight=70) == 40
    ((origin, doubt),) = net.missing.lines(QUERY)
    assert (origin, doubt.since_us) == (ORIGIN, LOOK_US)


def test_batches_that_come_to_light_are_not_missing_any_more() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10)
    assert net.looks(8) == (0, 10)
    net.say(EDGE, held=(0, 10), buffered=100)
    assert net.looks(1) is None
    net.say(EDGE)
    assert net.looks(3) is None
    net.say(GATEWAY, delivered=100, counted={"out": (0, 10)})
    assert net.looks(9) is None


def test_batches_that_are_passed_on_between_reports_are_never_missing() -> None:
    """In each report one batch has left its sender, and is in the next report of its receiver."""
    net = Reports()
    for n in range(1, 40):
        net.say(VAN, produced=10 * n, made=n, held=(n - 1, n), buffered=10)
        if n > 3:
            net.say(GATEWAY, delivered=10 * (n - 3), counted={"out": (0, n - 3)})
        assert net.looks(1) is None


def test_a_batch_that_one_of_two_takers_never_got_is_missing() -> None:
    net = Reports()
    net.say(VAN, produced=40, made=2)
    net.say(GATEWAY, delivered=30, counted={"out": (0, 2), "3": (0, 1)})
    assert net.looks(8) == (1, 2)


def test_rows_in_flight_of_which_all_names_are_counted_should_have_gone_to_somebody_else() -> None:
    net = Reports()
    net.say(VAN, produced=40, made=2)
    net.say(GATEWAY, delivered=20, counted={"out": (0, 2)})
    assert net.looks(8) == (0, 2)


def test_batches_that_were_written_off_are_not_missing() -> None:
    net = Reports()
    net.say(VAN, produced=40, made=4)
    net.say(EDGE, lost=10, counted={"": (1, 2)})
    net.say(GATEWAY, delivered=20, counted={"out": (0, 1, 2, 3)})
    assert net.looks(8) == (3, 4)


def test_nothing_is_said_as_long_as_a_node_that_could_hold_it_is_silent() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10)
    assert net.looks(20, known=False) is None
    for _ in range(20):
        net.now += LOOK_US
        net.missing.look(lambda query, origin: LOOK_US, net.now)  # the edge was last heard when the doubt began
    assert net.missing.of(*LINE) is None
    assert net.looks(1) == (0, 10)


def test_a_line_that_is_over_is_not_missed() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10)
    assert net.looks(9) == (0, 10)
    net.missing.look(lambda query, origin: None, net.now + LOOK_US)
    assert net.missing.of(*LINE) is None
    assert list(net.missing.lines(QUERY)) == []


def test_what_an_earlier_start_counted_stays_counted_and_what_it_held_is_gone() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10)
    net.say(EDGE, delivered=60, open=20, buffered=20, held=(6, 10), counted={"2": (0, 6)})
    assert net.looks(9) is None
    net.ended.over(EDGE, 1, [tally(delivered=60, open=20, buffered=20, held=(6, 10), counted={"2": (0, 6)})], [])
    net.missing.take(EDGE, [], whole=True)
    assert net.looks(9) == (6, 10)
    net.ended.heard(EDGE, 1)
    net.say(EDGE, delivered=60, open=20, buffered=20, held=(6, 10), counted={"2": (0, 6)})
    assert net.looks(1) is None


def test_a_node_that_is_removed_holds_nothing() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10)
    net.say(EDGE, held=(0, 10), buffered=100)
    assert net.looks(9) is None
    net.missing.forget(EDGE)
    assert net.looks(9) == (0, 10)


def test_rows_that_two_nodes_hold_are_counted_once() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10, held=(4, 8), buffered=40)
    net.say(EDGE, held=(6, 8), buffered=20)
    assert net.looks(9) == (0, 4, 8, 10)
    assert net.missing.rows(*LINE, in_flight=100) == 60


def test_the_verdict_names_the_rows_and_batches_that_are_missing() -> None:
    net = Reports()
    net.say(VAN, produced=100, made=10, held=(9, 10), buffered=10)
    net.looks(9)
    tallies = [tally(produced=100, made=10, held=(9, 10), buffered=10)]
    (line,) = account_lines(tallies, 0, {ORIGIN}, missing=net.missing)
    assert (line.in_flight, line.missing, line.missing_batches) == (100, 90, "0 to 8")
    assert "But 90 rows of `fixes/van-7` for query `q` are missing. No node has batches 0 to 8" in verdict([line])
    (over,) = account_lines(tallies, 0, {ORIGIN}, stopped={"q"}, missing=net.missing)
    assert (over.lost, over.missing) == (100, 0)


BATCHES = st.integers(1, 8)


@given(st.data())
def test_named_batches_are_those_that_are_nowhere(data: st.DataObject) -> None:
    """The twin keeps a plain set for each node."""
    made = data.draw(BATCHES)
    numbers = st.sets(st.integers(0, made - 1))
    held = {node: data.draw(numbers) for node in (VAN, EDGE, GATEWAY)}
    takers = data.draw(st.sampled_from([("a",), ("a", "b")]))
    counted = {node: {taker: data.draw(numbers) for taker in takers} for node in (EDGE, GATEWAY)}
    off = data.draw(numbers)
    net = Reports()
    net.say(VAN, produced=100, made=made, held=spans(held[VAN]), counted={"": spans(off)})
    for node in (EDGE, GATEWAY):
        net.say(node, held=spans(held[node]), counted={t: spans(n) for t, n in counted[node].items()})
    got = {taker: counted[EDGE][taker] | counted[GATEWAY][taker] | off for taker in takers}
    all_got = set.intersection(*got.values())
    nowhere = set(range(made)) - all_got - set().union(*held.values())
    if len(all_got) == made and not any(held.values()):
        nowhere = set(range(made))
    assert net.looks(9) == (spans(nowhere) or None)


def spans(numbers: set[int]) -> Spans:
    coverage = Coverage()
    for n in numbers:
        coverage.add(n, n)
    return coverage.spans()

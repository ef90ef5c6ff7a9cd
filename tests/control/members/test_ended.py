"""The counts of nodes that are gone are kept, whatever else restarts meanwhile."""

from __future__ import annotations

import msgspec
import pytest

from rove.control.asks.requests import AccountLine, Named, from_body
from rove.control.commands import Command, Keep
from rove.control.coordinator import Coordinator
from rove.control.members.ended import EndedRecord
from rove.control.members.membership import NodeRecord
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import Goodbye, Orders, Refused, Sink, Tally
from tests.control.desk import Desk

DEVICE = NodeId("d1")
ROWS = 5  # in a batch


NOWHERE = Sink(kind="discard", node=NodeId("nowhere"))  # a query that waits, so that nothing is known of its routes


class Keeper(Desk):
    """A desk that keeps the catalog."""

    def __init__(self, kept: dict[tuple[str, str], bytes | None]) -> None:
        super().__init__()
        self._kept = kept

    def obey(self, commands: list[Command]) -> list[Command]:
        self._kept |= {(c.kind, c.name): c.record for c in commands if isinstance(c, Keep)}
        return super().obey(commands)


class Town:
    """A device and a gateway that has taken 70 rows of it; the catalog is kept."""

    def __init__(self) -> None:
        self.kept = dict[tuple[str, str], bytes | None]()
        self.desk = Keeper(self.kept)
        self.desk.submit(NOWHERE)
        self.gateway()
        self.device(1, produced=50)

    def gateway(self, start: int = 1, runs: bool = True, **counts: int) -> None:
        """A report of the gateway, which has a disk."""
        self.desk.running["gateway"] = {QueryId("q"): Version(1)} if runs else {}
        found = counts or {"delivered": 70}
        tally = self._tally(1, seen=found["delivered"] // ROWS, **found)
        self.desk.report("gateway", "gateway", tallies=(tally,), start=start)

    def edge(self, start: int, delivered_here: int = 0) -> None:
        """A report of a node with a disk, whose operators have left it after they had counted rows."""
        self.desk.running["edge"] = {QueryId("q"): Version(1)}
        tally = self._tally(1, delivered=delivered_here, delivered_here=delivered_here)
        self.desk.report("edge", "gateway", tallies=(tally,) if delivered_here else (), start=start)

    def device(self, start: int, produced: int) -> list[Command]:
        tally = self._tally(start, produced=produced, made=produced // ROWS)
        origins = (f"s/d1~{start}",)
        return self.desk.report(DEVICE, "device", "gateway", origins=origins, tallies=(tally,), start=start)

    def goodbye(self) -> None:
        self.desk.obey(self.desk.machine.handle(Arrived(b"d1", Goodbye(DEVICE)), self.desk.now))

    def restart(self) -> None:
        self.desk.machine = Coordinator()
        found = [(kind, name, data) for (kind, name), data in self.kept.items() if data is not None]
        self.desk.machine.restore(found)
        self.gateway()

    def accounts(self) -> dict[str, tuple[int, int, int, int]]:
        """By origin: produced, delivered, lost, in flight."""
        lines = from_body(self.desk.ask("status", Named()).body, list[AccountLine])
        return {line.origin: (line.produced, line.delivered, line.lost, line.in_flight) for line in lines}

    @staticmethod
    def _tally(start: int, **counts: int) -> Tally:
        return Tally(query=QueryId("q"), origin=Origin("s", "d1", start), **counts)  # type: ignore[arg-type]


def test_what_a_device_made_that_leaves_or_dies_is_remembered_and_what_did_not_arrive_is_lost() -> None:
    for end in (Town.goodbye, lambda town: town.device(2, produced=0)):
        town = Town()
        town.device(1, produced=100)
        assert town.accounts()["s/d1~1"] == (100, 70, 0, 30)
        end(town)
        assert town.accounts()["s/d1~1"] == (100, 70, 30, 0)


def test_what_arrived_was_made_even_if_its_maker_died_before_it_said_so() -> None:
    town = Town()
    assert town.accounts()["s/d1~1"] == (70, 70, 0, 0), "nodes report a second apart"
    town.device(2, produced=5)
    assert town.accounts() == {"s/d1~1": (70, 70, 0, 0), "s/d1~2": (5, 0, 0, 5)}


def test_what_arrived_of_a_device_that_is_away_was_made() -> None:
    town = Town()
    town.desk.now += 60_000_000
    assert town.accounts()["s/d1~1"] == (70, 70, 0, 0)


@pytest.mark.parametrize("restarts_at", ["never", "after", "before"])
def test_the_coordinator_may_be_started_anew_meanwhile(restarts_at: str) -> None:
    town = Town()
    town.device(1, produced=100)
    if restarts_at == "before":
        town.restart()
    town.device(2, produced=5)
    if restarts_at == "after":
        town.restart()
        town.device(2, produced=5)
    known = (70, 70, 0, 0) if restarts_at == "before" else (100, 70, 30, 0)  # its last report died with the coordinator
    assert town.accounts() == {"s/d1~1": known, "s/d1~2": (5, 0, 0, 5)}


def test_of_two_processes_under_one_name_the_later_is_believed_until_it_is_silent() -> None:
    town = Town()
    town.device(2, produced=5)
    before = town.accounts()
    (said,) = town.device(1, produced=100)
    refusal = said.message if isinstance(said, Send) else None
    assert isinstance(refusal, Refused)
    assert (refusal.why, "`d1`; stop one of them" in refusal.text) == ("identity", True)
    assert town.accounts() == before
    assert town.desk.machine.refused == {"identity": 1}
    town.desk.now += 10_000_000
    town.device(1, produced=100)  # a computer that does not know the time when it starts
    assert town.accounts() == {"s/d1~1": (100, 70, 0, 30), "s/d1~2": (5, 0, 5, 0)}


def test_whoever_comes_back_under_an_old_number_is_not_counted_twice() -> None:
    town = Town()
    town.goodbye()
    town.device(1, produced=100)
    assert town.accounts()["s/d1~1"] == (100, 70, 0, 30)
    town.restart()
    town.device(1, produced=100)
    assert town.accounts()["s/d1~1"] == (100, 70, 0, 30)


@pytest.mark.parametrize(("what", "lost"), [("lost", 5), ("evicted", 0)])
def test_what_a_node_with_a_disk_lost_without_a_trace_stays_lost_when_it_starts_anew(what: str, lost: int) -> None:
    town = Town()
    town.device(1, produced=100)
    town.gateway(delivered=70, **{what: 5, f"{what}_here": 3})
    assert town.accounts()["s/d1~1"] == (100, 70, lost, 25)
    town.gateway(start=2, delivered=70, **{what: 2})  # its disk knows of two
    assert town.accounts()["s/d1~1"] == (100, 70, lost, 25)


def test_a_node_without_a_disk_that_starts_anew_is_told_what_its_earlier_start_has_counted() -> None:
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("edge", "edge", "gateway")
    desk.report(DEVICE, "device", "edge", origins=("s/d1~1",))
    desk.submit()
    desk.report("gateway", "gateway")  # it runs its part, so the edge is told its own
    desk.report("edge", "edge", "gateway")
    assert desk.running["edge"] == {QueryId("q"): Version(1)}
    counted = (("1", Origin("s", "d1", 1), (0, 14)),)
    seen = Tally(query=QueryId("q"), origin=Origin("s", "d1", 1), delivered=70, counted=(("1", (0, 14)),))
    desk.report("edge", "edge", "gateway", tallies=(seen,))
    desk.running["edge"] = {}
    said = [c.message for c in desk.report("edge", "edge", "gateway", start=2) if isinstance(c, Send)]
    assert [m.counted for m in said if isinstance(m, Orders) and m.deploy] == [{QueryId("q"): counted}]


@pytest.mark.parametrize("dies", ["before", "while no coordinator runs", "later", "never"])
def test_what_operators_counted_that_have_left_a_node_is_known_when_the_coordinator_was_down_too(dies: str) -> None:
    town = Town()
    town.device(1, produced=100)
    town.edge(1, delivered_here=20)
    if dies == "before":
        town.edge(2)
    town.restart()
    if dies in ("later", "never"):
        town.edge(1, delivered_here=20)
    if dies in ("later", "while no coordinator runs"):
        town.edge(2)
    for _ in range(2):
        town.device(1, produced=100)
        assert town.accounts()["s/d1~1"] == (100, 90, 0, 10)
        town.restart()
        town.edge(1 if dies == "never" else 2, delivered_here=20 if dies == "never" else 0)


def test_what_arrived_of_a_query_that_was_stopped_counts_when_the_gateway_starts_anew() -> None:
    town = Town()
    town.device(1, produced=100)
    town.desk.ask("stop", Named(name="q"))
    assert town.accounts()["s/d1~1"] == (100, 70, 30, 0), "what has not arrived is given up"
    town.gateway(runs=False)
    town.gateway(start=2, runs=False, delivered=0)
    assert town.accounts()["s/d1~1"] == (100, 70, 30, 0)


def test_a_coordinator_that_restarts_knows_which_origins_are_gone_and_which_came_back() -> None:
    town = Town()
    town.goodbye()
    town.restart()
    assert list(town.desk.machine.membership.ended.gone) == [Origin("s", "d1", 1)]
    town.device(1, produced=100)
    town.restart()
    assert list(town.desk.machine.membership.ended.gone) == []


def test_records_of_the_catalog_keep_their_bytes() -> None:
    ended = EndedRecord(node=DEVICE, start=7, tallies=(), gone=())
    known = NodeRecord(node=DEVICE, kind="device", slots=1, memory_bytes=1, start=7)
    for record in (ended, known):
        stored = msgspec.msgpack.encode(record)
        assert msgspec.msgpack.decode(stored)["incarnation"] == 7
        assert msgspec.msgpack.decode(stored, type=type(record)) == record

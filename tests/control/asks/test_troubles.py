"""What holds a query up is said with who has the trouble and since when, and the state says whether rows flow."""

from __future__ import annotations

from typing import Any

import pytest

import rove
from rove import functions as F
from rove.control.asks.requests import CloudAsk, CloudQuery, Named, Progress, QueryLine, Trouble
from rove.model.errors import RoveError
from rove.model.ids import QueryId
from rove.model.messages import TroubleHere
from tests.api.desk import COLUMNS, START_US, Desk

SECOND = 1_000_000
RUNS = {"busy": 1}


class Town(Desk):
    """A gateway, an edge and a tram, and a query that they run. Each second all of them report."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.troubles: dict[str, tuple[TroubleHere, ...]] = {}
        self.down: set[str] = set()
        monkeypatch.setattr("rove.api.session._dialled", lambda url, keys: self)
        self.session = rove.Session("tcp://127.0.0.1:4700")
        self.trains = self.session.stream("trains", schema=COLUMNS)

    def second(self, times: int = 1) -> None:
        for _ in range(times):
            self.now += SECOND
            self._says("gateway", "gateway")
            self._says("mast", "edge", ("gateway",))
            self._says("tram", "device", ("mast",), ("trains",))
            self.tick()

    def _says(self, node: str, *facts: Any) -> None:
        if node not in self.down:
            troubles = {"busy": self.troubles[node]} if node in self.troubles else {}
            running = RUNS if "busy" in self.machine.queries else {}
            self.report(node, *facts, running=running, troubles=troubles)

    def line(self) -> QueryLine:
        (found,) = self.ask("queries", Named(name="busy"), list[QueryLine])
        return found

    def said(self) -> tuple[str, list[tuple[str, int, bool]]]:
        """The state; and of each trouble who has it, the second when it began, and whether it holds the query up."""
        line = self.line()
        assert self.line() == line, "reading changes nothing"
        return line.state, [(t.who, (t.since_us - START_US) // SECOND, t.holds) for t in line.troubles]

    def reason(self) -> str:
        (trouble,) = self.line().troubles
        return trouble.reason


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch) -> Town:
    return Town(monkeypatch)


def start(town: Town, timed: bool = False) -> None:
    town.second()
    found = town.trains.where("boarding > 3")
    if timed:
        windowed = found.withWatermark("ts", "5 seconds").groupBy(F.window("ts", "10 seconds"), "train")
        found = windowed.agg(F.sum("boarding").alias("on"))
    found.writeStream.format("files").on("gateway").queryName("busy").start("busy")
    town.second(2)


def test_a_query_that_runs_has_no_trouble(town: Town) -> None:
    start(town)
    assert town.said() == ("running", [])


def test_a_query_without_a_source_says_since_when_it_waits(town: Town) -> None:
    town.down = {"tram"}
    town.second()
    town.trains.writeStream.format("files").on("gateway").queryName("busy").start("busy")
    town.second(5)
    assert town.said() == ("waiting", [("", 1, True)])
    assert town.reason() == "waits for sources of `trains`; start a device that has one"
    assert town.line().troubles[0].for_ms == 5_000


def test_a_source_without_a_parent_is_named(town: Town) -> None:
    town.down = {"mast"}
    town.second()
    town.trains.writeStream.format("files").on("gateway").queryName("busy").start("busy")
    town.second(2)
    assert town.said() == ("waiting", [("", 1, True)])
    assert town.reason().startswith("`tram` has no route to `gateway`; start the nodes between them")


def test_a_second_source_without_a_route_is_named_beside_one_that_flows(town: Town) -> None:
    start(town)
    town.report("bus", "device", ("roof",), ("trains",))
    assert town.said() == ("running", [("bus", 3, False)])
    town.second(3)
    assert town.said() == ("running", [("bus", 3, False)])
    assert "`bus` has no route to `gateway`" in town.reason()


def test_a_node_that_does_not_answer_is_waited_for_by_name(town: Town) -> None:
    town.second()
    town.trains.writeStream.format("files").on("gateway").queryName("busy").start("busy")
    town.now += 2 * SECOND
    town.report("gateway", "gateway", running=RUNS)
    town.report("tram", "device", ("mast",), ("trains",), running=RUNS)
    assert town.said() == ("deploying", [("mast", 1, False)])
    assert town.reason() == "was told its part, and has not answered yet that it runs it"
    town.report("mast", "edge", ("gateway",), running=RUNS)
    assert town.said() == ("running", [])


def test_what_a_node_reports_keeps_its_time_until_it_ends(town: Town) -> None:
    start(town)
    town.troubles = {"gateway": (TroubleHere("log/busy: No space left on device", holds=True),)}
    town.second(4)
    assert town.said() == ("held up", [("gateway", 4, True)])
    town.troubles = {"gateway": (TroubleHere("its log is damaged"),)}
    town.second(2)
    assert town.said() == ("running", [("gateway", 8, False)])
    town.troubles = {}
    town.second()
    assert town.said() == ("running", [])


def test_a_device_that_is_away_holds_event_time_back_until_its_return_timeout(town: Town) -> None:
    start(town, timed=True)
    town.down = {"tram"}
    town.second(7)
    assert town.said() == ("held up", [("tram", 3, True)])
    assert "event time waits for it, for 300 s at most (returnTimeout)" in town.reason()
    town.report("bus", "device", ("mast",), ("trains",), running=RUNS)
    town.second(7)
    assert town.said()[0] in ("held up", "deploying")
    town.down = set()
    town.second(2)
    assert ("tram", 3, True) not in town.said()[1]


def test_a_device_that_is_away_holds_a_filter_up_only_if_it_is_the_last(town: Town) -> None:
    start(town)
    town.down = {"tram"}
    town.second(7)
    assert town.said() == ("held up", [("tram", 3, True)])
    assert "rows wait there and below it" in town.reason()
    for _ in range(2):
        town.report("bus", "device", ("mast",), ("trains",), running={"busy": 2})
        town.report("mast", "edge", ("gateway",), running={"busy": 2})
        town.report("gateway", "gateway", running={"busy": 2})
    assert [(t.who, t.holds) for t in town.line().troubles] == [("tram", False)]


def test_an_edge_that_reaches_no_parent_is_the_cause_and_the_devices_behind_it_are_not(town: Town) -> None:
    start(town)
    town.now += SECOND
    town.report("mast", "edge", ("gateway",), running=RUNS, reaches=())
    town.tick()
    assert town.said() == ("held up", [("mast", 4, True)])
    assert town.reason().startswith("reaches none of its parents")


def test_a_device_with_other_columns_is_trouble_of_the_queries_of_its_stream(town: Town) -> None:
    start(town)
    town.report("bus", "device", ("mast",), ("trains",), columns="train string")
    town.second(2)
    town.report("bus", "device", ("mast",), ("trains",), columns="train string")
    assert town.said() == ("running", [("bus", 3, False)])
    assert "stream `trains` has columns train string, coach int" in town.reason()
    assert "Give the source these columns" in town.reason()
    town.report("bus", "device", ("mast",), ())
    assert town.said() == ("running", [])


def test_of_many_the_first_three_are_named(town: Town) -> None:
    start(town)
    for n in range(9):
        town.report(f"bus-{n}", "device", ("mast",), ("trains",), columns="train string")
    troubles = town.line().troubles
    assert [t.who for t in troubles] == ["bus-0", "bus-1", "bus-2", ""]
    assert troubles[-1].reason == "and 6 more of this kind"


def test_a_query_whose_last_source_is_gone_waits_for_sources(town: Town) -> None:
    start(town)
    town.down = {"tram"}
    town.report("tram", "device", ("mast",), (), running=RUNS)
    town.report("mast", "edge", ("gateway",), running={"busy": 9})
    town.report("gateway", "gateway", running={"busy": 9})
    assert Trouble(
        reason="waits for sources of `trains`; start a device that has one", since_us=START_US + 3 * SECOND, holds=True
    ) in (town.line().troubles)


def test_a_failure_in_spark_is_shown_with_its_tries_until_it_works_again(town: Town) -> None:
    town.second()
    town.trains.writeStream.toTable("busy")
    town.second(2)
    asked = CloudAsk()
    town.ask("cloud", asked, list[CloudQuery])
    assert town.said() == ("running", [])
    for failures in (1, 2, 3):
        town.second(10)
        town.ask("cloud", asked, list[CloudQuery])
        said = Progress(query="busy", state="failed", trouble="DIVIDE_BY_ZERO", failures=failures, restarts=failures)
        town.ask("progress", said, Named)
        assert town.said() == ("held up", [("Spark", 13, True)])
        assert town.reason() == f"DIVIDE_BY_ZERO ({failures} failures in a row; it is tried again)"
        assert [t.final for t in town.line().troubles] == [failures == 3]
    town.ask("progress", Progress(query="busy", state="running", batch=1), Named)
    assert town.said() == ("running", [])


def test_a_query_that_ends_in_spark_says_that_spark_is_not_there(town: Town) -> None:
    town.second()
    town.trains.writeStream.toTable("busy")
    town.second(29)
    assert town.said() == ("running", [])
    town.second(3)
    assert town.said() == ("held up", [("Spark", 1, True)])
    assert town.reason().endswith("start it: rove cloud")
    town.ask("cloud", CloudAsk(), list[CloudQuery])
    assert town.said() == ("running", [])


def busy(batches: Any) -> Any:
    """A function that nodes import by its name."""
    return batches


NO_BUSY = TroubleHere("this node has no function", final=True, lacks=f"{__name__}:busy")


def hosts(town: Town) -> dict[str, tuple[str, ...]]:
    """The nodes on which the function was placed, and those on which rows that missed it are mapped."""
    fragments = town.machine.queries[QueryId("busy")].fragments
    placed = tuple(node for node, fragment in fragments.items() if fragment.loads)
    return {"placed": placed, "can": tuple(node for node, fragment in fragments.items() if fragment.runs)}


def test_a_function_moves_up_to_the_first_node_that_has_it(town: Town) -> None:
    town.second()
    mapped = town.trains.mapInArrow(busy, COLUMNS).where("boarding > 3")
    mapped.writeStream.format("files").on("gateway").queryName("busy").start("busy")
    assert hosts(town) == {"placed": ("tram",), "can": ("gateway", "tram", "mast")}
    for lacking, then in (("tram", "mast"), ("mast", "gateway")):
        town.troubles = {lacking: (NO_BUSY,)}
        town.second()
        town.machine.validate()
        assert hosts(town)["placed"] == (then,)
    town.troubles = {"gateway": (NO_BUSY,)}
    town.second()
    assert hosts(town)["placed"] == ("gateway",), "nobody else could have it"
    assert [(t.who, t.reason, t.final) for t in town.line().troubles if t.final] == [
        ("gateway", "this node has no function", True)
    ]
    again = town.trains.mapInArrow(busy, COLUMNS).writeStream.format("files").on("gateway").queryName("again")
    with pytest.raises(RoveError, match="`tram`, `mast`, `gateway` cannot load the function of `Map busy`; install"):
        again.start("again")
    again = town.trains.where("boarding > 3").mapInArrow(busy, COLUMNS).at("tram").writeStream.format("files")
    with pytest.raises(RoveError, match="`tram` cannot load the function of `Map busy`"):
        again.on("gateway").queryName("again").start("again")


def test_a_function_that_a_hint_keeps_where_it_is_missing_stays_and_is_trouble(town: Town) -> None:
    town.second()
    mapped = town.trains.mapInArrow(busy, COLUMNS).at("mast")
    mapped.writeStream.format("files").on("gateway").queryName("busy").start("busy")
    town.troubles = {"mast": (NO_BUSY,)}
    town.second(3)
    town.machine.validate()
    assert hosts(town)["placed"] == ("mast",)
    assert [(t.who, t.final) for t in town.line().troubles] == [("mast", True)]

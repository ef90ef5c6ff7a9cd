"""A node trusts no name that its coordinator, a peer or its own memory gives: a bad one is refused, and told."""

from __future__ import annotations

from dataclasses import replace as replaced
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from rove.data.events import DiskAnswer, DiskWork, Open, OpenFailed, Remember
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Fragment, Hello, Orders, Sink
from rove.plan import codec
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.network.bell import Bell
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.plans import named, plans_of
from tests.data.test_worker import PLAN, fragment, orders
from tests.lines import lines

Q = QueryId("q")
BAD_PATHS = ["../x", "/etc/x", "x/../log/p/out", "a\x00b", "a b", "x//y", "", "log/p/out", "memory-1/p", "places"]


def gateway() -> Worker:
    return Worker(WorkerSettings(node=NodeId("g"), kind="gateway"), 1, durable=True)


def files(path: str, query: str = "q") -> Fragment:
    return replace(fragment(), query=QueryId(query), sinks={Stage(0): Sink(kind="file", path=path)})


def opens(worker: Worker, part: Fragment) -> list[str]:
    """The folders that a node asks for."""
    return [each.folder for each in worker.handle(orders(part), 0) if isinstance(each, Open)]


def trouble(worker: Worker, query: str = "q") -> str:
    (said,) = (worker.report().troubles or {})[QueryId(query)]
    assert said.final
    return said.text


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_node_refuses_the_path_of_a_sink_that_leads_elsewhere_and_says_so(path: str) -> None:
    worker = gateway()
    assert opens(worker, files(path)) == []
    assert "own folder" in trouble(worker) or "of the node itself" in trouble(worker)
    assert worker.running() == {}


@pytest.mark.parametrize("name", ["../x", "a/b", ".hid", "late-0", "fault-0", "x" * 300, "a\x00b"])
def test_a_node_refuses_a_plan_whose_output_would_be_another_folder(name: str) -> None:
    worker, stages = gateway(), codec.decode(PLAN)
    plan = named(codec.encode(replaced(stages, outputs=((name, stages.outputs[0][1]),))))
    assert opens(worker, replace(fragment(), plan=plan, sinks={Stage(0): Sink(kind="log")})) == []
    assert "cannot name an output" in trouble(worker)


@pytest.mark.parametrize(
    "bad",
    [
        {"next": NodeId("a/b")},
        {"others": (NodeId("a b"),)},
        {"feeds": (Origin("a b", "g"),)},
        {"waits": {Stage(0): (Origin("s", "../d"),)}},
        {"knows": {Stage(0): (Origin("s", "a\x00b"),)}},
        {"makes": {Stage(0): Origin("q", ".g", stage=0)}},
        {"sends": {Stage(0): Origin("q", "g", -1, 0)}},
        {"leads": {Origin("q", "g", stage=0): NodeId("..")}},
    ],
)
def test_a_node_refuses_a_fragment_with_names_that_nothing_can_have(bad: dict[str, Any]) -> None:
    worker = gateway()
    assert opens(worker, replace(fragment(), **bad)) == []
    assert worker.running() == {}
    assert "cannot name" in trouble(worker) or "is not an origin" in trouble(worker)


@pytest.mark.parametrize("query", ["../q", "a/b", "a\x00b", ""])
def test_a_fragment_that_a_node_remembers_under_a_bad_name_does_not_run(query: str) -> None:
    worker = gateway()
    part = replace(fragment(), query=QueryId(query), sinks={Stage(0): Sink(kind="log")})
    said = worker.remembered(Remember((part,), (), plans_of(part)))
    assert [each for each in said if isinstance(each, Open)] == []
    assert worker.running() == {}
    assert worker.refused == {"BadName": 1}


def test_two_queries_do_not_write_into_one_folder() -> None:
    worker, shelf = gateway(), SimShelf(Random(1))
    done_at_once(worker, shelf, worker.handle(orders(files("alerts")), 0), 0)
    assert list(worker.running()) == ["q"]
    assert opens(worker, files("alerts", "p")) == []
    assert trouble(worker, "p") == "query `q` ends in `alerts` already; choose another path for the sink"
    worker.handle(Arrived(COORDINATOR, Orders(PROTOCOL, (), (Q,))), 1)
    assert opens(worker, replace(files("alerts", "p"), version=Version(2))) == ["alerts"]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "x" * 300])
def test_a_peer_with_a_name_that_no_node_can_have_is_refused(name: str) -> None:
    worker = gateway()
    said = worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId(name), 1)), 0)
    assert lines(said) == ["to c: Refused, identity"]
    assert worker.links() == {}


def answered(shelf: DiskShelf, order: DiskWork) -> DiskAnswer:
    shelf.ask(order)
    shelf.settle()
    (answer,) = shelf.done()
    return answer


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "x/../log/p/out", "a\x00b", "a b", "x//y", "", ".", "log/q/../../.."]
)
def test_a_disk_opens_no_folder_whose_path_leads_elsewhere(tmp_path: Path, path: str) -> None:
    bell = Bell()
    shelf = DiskShelf(tmp_path / "disk", bell)
    before = sorted(tmp_path.rglob("*"))
    answer = answered(shelf, Open(path, 1, codec.decode(PLAN).operators[0].schema))
    assert isinstance(answer, OpenFailed)
    assert "cannot name a folder" in answer.trouble
    assert sorted(tmp_path.rglob("*")) == before
    shelf.close()
    bell.close()


def test_a_node_with_a_real_disk_writes_nothing_for_a_query_with_a_bad_path_and_serves_the_next(tmp_path: Path) -> None:
    bell = Bell()
    shelf, worker = DiskShelf(tmp_path / "disk", bell), gateway()
    for number, path in enumerate(BAD_PATHS):
        for order in worker.handle(orders(files(path, f"q{number}")), 0):
            assert not isinstance(order, Open)
    (asked,) = [each for each in worker.handle(orders(files("alerts/today")), 0) if isinstance(each, Open)]
    worker.handle(answered(shelf, asked), 1)  # type: ignore[arg-type]
    worker.handle(Tick(), 2)
    assert list(worker.running()) == ["q"]
    folders = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_dir()]
    assert sorted(folders) == ["disk", "disk/alerts", "disk/alerts/today"]
    shelf.close()
    bell.close()

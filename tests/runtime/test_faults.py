"""Rows that cannot be computed on a node are counted, kept in the fault table, and may stop their query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rove.api.accounts import excess
from rove.control.asks.requests import AccountLine, QueryLine, Submit, Submitted
from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.plan.codec import encode
from rove.plan.optimizer import optimize
from rove.runtime.adapters.sources import SourceSpec, generated, read_spec
from rove.runtime.local import LocalNet
from tests.runtime.queries import COLUMNS, as_rows, in_log, staged, trains

GATEWAY, EDGE = NodeId("gateway"), NodeId("edge1")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[LocalNet]:
    found = LocalNet(tmp_path)
    found.add_node(WorkerSettings(node=GATEWAY, kind="gateway"), durable=True)
    found.add_node(WorkerSettings(node=EDGE, kind="edge", parents=(GATEWAY,)))
    yield found
    found.close()


def begin(net: LocalNet, where: str, stops: bool = False) -> SourceSpec:
    """A query that divides by zero for some rows, and a device whose source begins when the query runs."""
    plan = trains().selectExpr("coach", "boarding", "100 / (boarding - 40) AS x").at(where).plan
    asked = Submit(name="q", plan=encode(staged(optimize(plan))), sink=Sink(kind="log"), stops_at_fault=stops)
    net.ask("submit", asked, Submitted)
    go = net.folder / "go"
    spec = read_spec(f"trains=generate:start_us=1000000,rows=50,rate=50,batches=20,seed=7,when={go}", COLUMNS, "dev0")
    net.add_node(WorkerSettings(node=NodeId("dev0"), kind="device", parents=(EDGE,)), (spec,))
    assert net.run_until(
        lambda: [q.nodes for q in net.ask("queries", None, list[QueryLine]) if q.state == "running"] == [3], 20
    )
    go.touch()
    return spec


def query(net: LocalNet) -> QueryLine:
    (found,) = net.ask("queries", None, list[QueryLine])
    return found


def line(net: LocalNet) -> AccountLine:
    (found,) = net.ask("status", None, list[AccountLine]) or [NOTHING]
    return found


NOTHING = msgspec.convert(
    dict.fromkeys(AccountLine.__struct_fields__, 0) | {"query": "", "origin": "", "missing_batches": "", "liar": ""},
    AccountLine,
)


@pytest.mark.parametrize("where", ["device", "edge1", "gateway"])
def test_only_the_rows_at_fault_go_to_the_fault_table(net: LocalNet, tmp_path: Path, where: str) -> None:
    rows = [row for batch in generated(begin(net, where)) for row in batch.to_pylist()]
    bad = [row for row in rows if row["boarding"] == 40]
    assert 0 < len(bad) < len(rows)

    def arrived() -> bool:
        found = line(net)
        return found.produced == len(rows) and not found.in_flight

    assert net.run_until(arrived, 20), line(net)
    found = line(net)
    assert (found.faulted, found.delivered, found.lost, excess(found)) == (len(bad), len(rows) - len(bad), 0, 0)
    assert sum(b.num_rows for b in in_log(tmp_path / "gateway/log/q/out")[0]) == len(rows) - len(bad)
    (folder,) = (tmp_path / "gateway/log/q").glob("fault-*")
    assert net.run_until(lambda: sum(b.num_rows for b in in_log(folder)[0]) == len(bad), 10)
    kept = [row for batch in in_log(folder)[0] for row in batch.to_pylist()]
    assert all("division by zero" in row.pop("fault_reason") for row in kept)
    assert all("boarding" in row.pop("fault_operator") for row in kept)
    assert {row["boarding"] for row in kept} == {40}
    assert net.run_until(lambda: "cannot be computed go to the fault table" in str(query(net).troubles), 10), query(net)
    net.stop(GATEWAY)
    net.start(GATEWAY)
    assert net.run_until(lambda: line(net).delivered == len(rows) - len(bad), 20), line(net)
    assert net.run_until(lambda: line(net).faulted == len(bad), 20), line(net)
    assert as_rows(in_log(folder)[0]) != []


def test_a_query_may_stop_at_its_first_fault(net: LocalNet) -> None:
    begin(net, "device", stops=True)
    assert net.run_until(lambda: query(net).state == "stopped", 20), query(net)
    assert "stopped, because a row could not be computed on dev0" in str(query(net).troubles)

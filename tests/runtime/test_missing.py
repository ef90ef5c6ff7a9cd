"""Rows that nobody has are named within seconds: after a node without a disk died, after a disk lost its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import rove
from rove import functions as F
from rove.api.accounts import excess, total
from rove.control.asks.requests import AccountLine, Named, QueryLine
from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.plan.operators import Operator
from rove.runtime.adapters.sources import read_spec
from rove.runtime.local import LocalNet
from tests.runtime.queries import COLUMNS, busy, staged

GATEWAY, EDGE = NodeId("gateway"), NodeId("edge1")
WITHIN_S = 10
BATCH_ROWS = 50
NOTHING = msgspec.structs.replace(total([]), origin="trains/")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[LocalNet]:
    """A gateway with a disk, an edge without, and a device that makes rows for ever."""
    found = LocalNet(tmp_path)
    found.add_node(WorkerSettings(node=GATEWAY, kind="gateway"), durable=True)
    found.add_node(WorkerSettings(node=EDGE, kind="edge", parents=(GATEWAY,)))
    spec = read_spec(f"trains=generate:start_us=1000000,rows={BATCH_ROWS},rate=20,seed=7,step_us=100", COLUMNS, "dev0")
    found.add_node(WorkerSettings(node=NodeId("dev0"), kind="device", parents=(EDGE,)), (spec,))
    yield found
    found.close()


def begin(net: LocalNet, plan: Operator) -> None:
    net.submit("q", staged(plan), Sink(kind="log"))
    assert net.run_until(lambda: [q.state for q in net.ask("queries", None, list[QueryLine])] == ["running"], 20)


def account(net: LocalNet) -> AccountLine:
    """The account of the device's rows."""
    lines = net.ask("status", None, list[AccountLine])
    return next(line for line in (*lines, NOTHING) if line.origin.startswith("trains/"))


def trouble(net: LocalNet) -> str:
    (line,) = net.ask("queries", None, list[QueryLine])
    return str(line.troubles)


def long_window() -> Operator:
    """A window on the edge that stays open."""
    trains = rove.Session.local().stream("trains", schema=COLUMNS).withWatermark("ts", "5 seconds")
    plan: Operator = trains.groupBy(F.window("ts", "10 minutes"), "train").agg(F.count("*").alias("n")).at("edge1").plan
    return plan


def test_rows_in_a_window_of_an_edge_that_died_without_a_disk_are_named(net: LocalNet) -> None:
    begin(net, long_window())
    assert net.run_until(lambda: account(net).open >= 1_000, 20), account(net)
    before = account(net)
    assert before.delivered == 0  # the window is open, so its rows are in no result
    net.stop(EDGE)
    net.start(EDGE)
    assert net.run_until(lambda: account(net).missing >= before.open, WITHIN_S), account(net)
    line = account(net)
    assert excess(line) == 0
    assert line.missing <= line.in_flight - line.open
    first, last = map(int, line.missing_batches.split(" to "))
    assert line.missing == BATCH_ROWS * (last - first + 1)
    assert f"batches {line.missing_batches} of `{line.origin}` are missing" in trouble(net)


def restarted_with_less(net: LocalNet, folder: Path, *kinds: str) -> AccountLine:
    """Stop the gateway, delete files of its log and start it again. Returns the account before."""
    begin(net, busy())
    assert net.run_until(lambda: account(net).delivered >= 1_000, 20), account(net)
    before = account(net)
    net.stop(GATEWAY)
    for file in [file for kind in kinds for file in (folder / "gateway/log/q").rglob(f"*.{kind}")]:
        file.unlink()
    net.start(GATEWAY)
    return before


def test_rows_of_a_log_that_was_deleted_are_named(net: LocalNet, tmp_path: Path) -> None:
    before = restarted_with_less(net, tmp_path, "index", "arrows")
    assert net.run_until(lambda: account(net).missing >= before.delivered, WITHIN_S), account(net)
    line = account(net)
    assert excess(line) == 0
    assert line.missing_batches.startswith("0 to ")
    assert f"batches {line.missing_batches} of `{line.origin}` are missing" in trouble(net)


def test_a_log_whose_index_was_deleted_loses_nothing(
    net: LocalNet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = restarted_with_less(net, tmp_path, "index")
    ended: list[AccountLine] = []

    def missed() -> bool:
        ended.append(account(net))
        return ended[-1].missing > 0

    assert not net.run_until(missed, WITHIN_S), account(net)
    line = ended[-1]
    assert line.delivered > before.delivered
    assert (line.lost, line.missing, excess(line)) == (0, 0, 0)
    assert trouble(net) == "()"
    assert "log/q/out: 0000000000.index was damaged or gone; " in caplog.text
    assert "made again from 0000000000.arrows" in caplog.text


def test_rows_of_open_windows_are_lost_when_their_query_is_stopped(net: LocalNet) -> None:
    begin(net, long_window())
    assert net.run_until(lambda: account(net).open >= 1_000, 20), account(net)
    net.ask("stop", Named(name="q"), Named)
    assert net.run_until(lambda: account(net).lost >= 1_000, WITHIN_S), account(net)
    line = account(net)
    assert (line.delivered, line.open, line.in_flight, line.missing) == (0, 0, 0, 0)
    assert line.lost == line.produced


def test_nothing_is_missing_while_everybody_runs(net: LocalNet) -> None:
    begin(net, busy())
    ended = []

    def missed() -> bool:
        ended.append(account(net))
        return ended[-1].missing > 0

    assert not net.run_until(missed, 12), account(net)
    assert ended[-1].delivered > 1_000

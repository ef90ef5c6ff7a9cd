"""Many nodes in one process: the same machines, disks and sources as in processes of their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from rove.api.accounts import excess
from rove.control.asks.requests import AccountLine, Named, NodeLine, QueryLine
from rove.data.events import Command, Event
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.errors import RoveError, SetupError
from rove.model.events import COORDINATOR
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.runtime.adapters.sources import SourceSpec, generated, read_spec
from rove.runtime.broken import RESTARTS_MAX, Broken
from rove.runtime.local import LocalNet
from tests.runtime.queries import COLUMNS, as_rows, busy, computed, in_log, staged, windows

GATEWAY, EDGE = NodeId("gateway"), NodeId("edge1")


@pytest.fixture
def net(tmp_path: Path) -> Iterator[LocalNet]:
    found = LocalNet(tmp_path)
    found.add_node(WorkerSettings(node=GATEWAY, kind="gateway"), durable=True)
    found.add_node(WorkerSettings(node=EDGE, kind="edge", parents=(GATEWAY,)), durable=True)
    yield found
    found.close()


def devices(net: LocalNet, go: Path, batches: int = 40, names: tuple[str, ...] = ("dev0", "dev1")) -> list[SourceSpec]:
    """Devices below the edge, whose sources begin when a file is there."""
    text = f"trains=generate:start_us=1000000,rows=50,rate=50,batches={batches},seed=7,step_us=5000,when={go}"
    specs = [read_spec(text, COLUMNS, name) for name in names]
    for spec in specs:
        net.add_node(WorkerSettings(node=NodeId(spec.node), kind="device", parents=(EDGE,)), (spec,))
    return specs


def runs(net: LocalNet, nodes: int) -> bool:
    lines = net.ask("queries", None, list[QueryLine])
    return all(q.state == "running" and not q.troubles and q.nodes >= nodes for q in lines)


def test_rows_arrive_over_restarts_of_everyone_who_has_a_disk(net: LocalNet, tmp_path: Path) -> None:
    go = tmp_path / "go"
    net.submit("busy", staged(busy()), Sink(kind="log"))
    net.submit("counted", staged(windows("edge1")), Sink(kind="log", node=EDGE))
    specs = devices(net, go)
    assert net.run_until(lambda: runs(net, 3), 20)
    go.touch()
    for name in (GATEWAY, EDGE):
        net.run_for(0.3)
        net.stop(name)
        net.run_for(0.2)
        net.start(name)
    net.stop(COORDINATOR)
    net.run_for(0.2)
    net.start_coordinator()

    rows = {spec.origin: list(generated(spec)) for spec in specs}
    for folder, plan in (("gateway/log/busy/out", busy()), ("edge1/log/counted/out", windows("edge1"))):
        want = as_rows([computed(plan, rows)])
        assert net.run_until(lambda f=folder, w=want: len(as_rows(in_log(tmp_path / f)[0])) >= len(w), 20)  # type: ignore[misc]
        batches, names = in_log(tmp_path / folder)
        assert as_rows(batches) == want
        assert len(set(names)) == len(names)


def test_operators_of_a_device_that_forgot_everything_are_heard_when_they_begin_anew(
    net: LocalNet, tmp_path: Path
) -> None:
    """What they number begins at 0 again, and is nothing that was there before."""
    first, later = devices(net, tmp_path / "go", names=("dev0",)), devices(net, tmp_path / "go later", names=("dev1",))
    net.submit("counted", staged(windows("edge1")), Sink(kind="log", node=EDGE))
    assert net.run_until(lambda: runs(net, 3), 20)
    (tmp_path / "go").touch()
    assert net.run_until(lambda: delivered(net, "counted#3/dev0") > 0, 20), "the edge has windows of the device"
    net.stop(NodeId("dev0"))
    (tmp_path / "go").unlink()
    net.start(NodeId("dev0"))
    assert net.run_until(lambda: "counted" in net.worker(NodeId("dev0")).worker.running(), 20)
    (tmp_path / "go").touch()
    assert net.run_until(lambda: all(p.ended for p in net.worker(NodeId("dev0")).producers.all.values()), 20)
    (tmp_path / "go later").touch()

    made = sum(batch.num_rows for spec in (*first, *later) for batch in generated(spec))

    def counted() -> int:
        batches, _ = in_log(tmp_path / "edge1/log/counted/out")
        return sum(row["rows"] for batch in batches for row in batch.to_pylist())

    def settled() -> bool:
        return not any(
            line.in_flight > line.open or excess(line) for line in net.ask("status", None, list[AccountLine])
        )

    assert net.run_until(lambda: counted() > made, 20), "what it made after its death comes on top of what had arrived"
    assert net.run_until(settled, 20), net.ask("status", None, list[AccountLine])


def test_a_query_that_is_stopped_while_a_device_is_away_leaves_nothing_behind(net: LocalNet, tmp_path: Path) -> None:
    net.submit("busy", staged(busy()), Sink(kind="log"))
    devices(net, tmp_path / "go", batches=60)
    assert net.run_until(lambda: runs(net, 3), 20)
    (tmp_path / "go").touch()
    net.run_for(0.2)
    for other in (EDGE, COORDINATOR):
        net.cut("dev0", other)
    away = net.worker(NodeId("dev0")).worker
    assert net.run_until(lambda: len(away.store) > 10, 20)
    net.ask("stop", Named(name="busy"), Named)
    net.run_for(0.5)
    assert "busy" in away.running(), "it cannot know yet"
    for other in (EDGE, COORDINATOR):
        net.mend("dev0", other)
    assert net.run_until(lambda: not away.running() and not len(away.store), 20)

    def settled() -> bool:
        return not any(
            line.in_flight > line.open or excess(line) for line in net.ask("status", None, list[AccountLine])
        )

    assert net.run_until(settled, 20), net.ask("status", None, list[AccountLine])
    lost = [line.lost for line in net.ask("status", None, list[AccountLine]) if line.origin.startswith("trains/dev0")]
    assert lost[0] > 0


def test_a_device_with_a_disk_starts_without_the_coordinator_and_its_rows_arrive(net: LocalNet, tmp_path: Path) -> None:
    text = f"trains=generate:start_us=1000000,rows=50,rate=50,batches=40,seed=7,step_us=5000,when={tmp_path / 'go'}"
    spec, device = read_spec(text, COLUMNS, "dev0"), NodeId("dev0")
    net.add_node(WorkerSettings(node=device, kind="device", parents=(EDGE,)), (spec,), durable=True)
    net.submit("busy", staged(busy()), Sink(kind="log"))
    assert net.run_until(lambda: runs(net, 3), 20)
    net.stop(COORDINATOR)
    net.stop(device)
    net.start(device)
    (tmp_path / "go").touch()
    want = as_rows([computed(busy(), {spec.origin: list(generated(spec))})])
    log = tmp_path / "gateway/log/busy/out"
    assert net.run_until(lambda: len(as_rows(in_log(log)[0])) >= len(want), 20)
    assert as_rows(in_log(log)[0]) == want
    net.start_coordinator()

    def settled() -> bool:
        lines = net.ask("status", None, list[AccountLine])
        return bool(lines) and not any(line.in_flight > line.open or excess(line) for line in lines)

    assert net.run_until(settled, 20), net.ask("status", None, list[AccountLine])


def delivered(net: LocalNet, origin: str) -> int:
    """Rows of origins with such a name that the edge has taken."""
    tallies = net.worker(EDGE).worker.report().tallies
    return sum(t.delivered + t.open for t in tallies if str(t.origin).startswith(origin))


def test_trouble_and_silence_are_told(net: LocalNet) -> None:
    with pytest.raises(RoveError, match="no verb `querys`"):
        net.ask("querys", None, list[QueryLine])
    assert {line.node for line in net.ask("topology", None, list[NodeLine])} <= {GATEWAY, EDGE}
    net.stop(COORDINATOR)
    with pytest.raises(SetupError, match="did not answer"):
        net.ask("queries", None, list[QueryLine], timeout_s=0.2)
    net.start_coordinator()
    with pytest.raises(SetupError, match="there is a node `gateway` already"):
        net.add_node(WorkerSettings(node=GATEWAY, kind="gateway"))
    with pytest.raises(SetupError, match="did you mean `edge1`"):
        net.start(NodeId("edge2"))


def test_the_coordinator_logs_once_what_a_query_waits_for(
    net: LocalNet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rove")
    net.submit("busy", staged(busy()), Sink(kind="log"))
    net.run_for(3)
    devices(net, tmp_path / "go")
    assert net.run_until(lambda: runs(net, 3), 20)
    net.run_for(1.5)
    said = [(r.levelname, r.getMessage()) for r in caplog.records if "waits for sources" in r.getMessage()]
    assert said == [
        ("WARNING", "query busy: waits for sources of `trains`; start a device that has one"),
        ("INFO", "query busy: over: waits for sources of `trains`; start a device that has one"),
    ]


def test_a_machine_that_breaks_is_started_again_and_no_row_is_lost(
    net: LocalNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    net.submit("busy", staged(busy()), Sink(kind="log"))
    specs = devices(net, go)
    assert net.run_until(lambda: runs(net, 3), 20)
    go.touch()
    want = as_rows([computed(busy(), {spec.origin: list(generated(spec)) for spec in specs})])
    for name in (GATEWAY, EDGE, COORDINATOR):
        net.run_for(0.2)
        if name == COORDINATOR:
            broken: object = net._shells[name].machine  # type: ignore[union-attr]
        else:
            broken = net.worker(name).worker
        monkeypatch.setattr(broken, "handle", lambda *event: 1 // 0)
        net.run_for(0.2)
    assert net.run_until(lambda: len(as_rows(in_log(tmp_path / "gateway/log/busy/out")[0])) >= len(want), 20)
    batches, names = in_log(tmp_path / "gateway/log/busy/out")
    assert as_rows(batches) == want
    assert len(set(names)) == len(names)


def test_a_machine_that_breaks_again_and_again_stays_down(net: LocalNet, monkeypatch: pytest.MonkeyPatch) -> None:
    handle, broke = Worker.handle, [0]

    def breaks(self: Worker, event: Event, now: int) -> list[Command]:
        if self.node == GATEWAY:
            broke[0] += 1
            raise KeyError("no such thing")
        return handle(self, event, now)

    monkeypatch.setattr(Worker, "handle", breaks)
    with pytest.raises(Broken, match=r"gateway ends: KeyError: 'no such thing', at Tick.* A restart is safe"):
        net.run_for(30)
    assert broke == [RESTARTS_MAX + 1]


def test_a_device_that_breaks_is_not_started_again_since_its_sources_would_begin_anew(
    net: LocalNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices(net, tmp_path / "go")
    monkeypatch.setattr(net.worker(NodeId("dev0")).worker, "handle", lambda *event: 1 // 0)
    with pytest.raises(Broken, match="dev0 ends: ZeroDivisionError"):
        net.run_for(5)

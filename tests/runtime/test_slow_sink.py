"""A sink a hundred times too slow: everyone waits, nobody overflows, nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.model.schema import parse_schema
from rove.plan.operators import Source
from rove.plan.stages import Stages
from rove.runtime.adapters.sources import read_spec
from rove.runtime.disk import shelf
from rove.runtime.disk.disk import open_reader
from rove.runtime.local import LocalNet

COLUMNS = "key string, value bigint"
BATCHES, ROWS, RATE = 120, 400, 5_000  # batches a second from each device
MEMORY_BYTES = 300_000
GATEWAY, EDGE = NodeId("gateway"), NodeId("edge")
DEVICES = (NodeId("device0"), NodeId("device1"))


def test_a_sink_a_hundred_times_too_slow_holds_everyone_back_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = shelf.carried_out

    def slowly(*args: object) -> object:
        time.sleep(0.2)  # in this time two devices want to bring 2,000 batches, and twenty find room
        return carry_out(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(shelf, "carried_out", slowly)
    net = LocalNet(tmp_path)
    net.add_node(WorkerSettings(node=GATEWAY, kind="gateway", memory_bytes=MEMORY_BYTES), durable=True)
    net.add_node(WorkerSettings(node=EDGE, kind="edge", parents=(GATEWAY,), memory_bytes=MEMORY_BYTES))
    net.run_for(0.5)
    plan = Stages.of({"out": Source("s", parse_schema(COLUMNS))})
    net.submit("q", plan, Sink(kind="log"))
    begin = tmp_path / "begin"
    spec = f"s=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=3,when={begin}"
    for device in DEVICES:
        settings = WorkerSettings(node=device, kind="device", parents=(EDGE,), memory_bytes=MEMORY_BYTES)
        net.add_node(settings, (read_spec(spec, COLUMNS, device),))
    nodes = [net.worker(name).worker for name in (GATEWAY, EDGE, *DEVICES)]
    assert net.run_until(lambda: all("q" in n.running() for n in nodes), 20)
    begin.touch()
    waited: set[str] = set()
    most = dict.fromkeys((n.node for n in nodes), 0)

    def finished() -> bool:
        for node in nodes:
            most[node.node] = max(most[node.node], node.store.bytes + node.output.pending_bytes)
        waited.update(o for d in DEVICES for o in net.worker(d).worker.sources.waiting())
        made = sum(t.produced for n in nodes for t in n.report().tallies)
        done = sum(t.delivered for n in nodes for t in n.report().tallies)
        return made == done == len(DEVICES) * BATCHES * ROWS

    try:
        assert net.run_until(finished, 60)
    finally:
        net.close()
    assert len(waited) == len(DEVICES)
    assert max(most.values()) <= MEMORY_BYTES
    names = [
        (e.header.origin, e.header.seq) for e in open_reader(tmp_path / "gateway/log/q/out").entries() if e.header.rows
    ]
    assert len(names) == len(set(names)) == len(DEVICES) * BATCHES

"""Changes of links over time, played against nodes that run and make rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rove.control.asks.requests import QueryLine, Relink, Relinked, Replay, Replayed
from rove.control.deployment.holistic import Redeploy
from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId
from rove.model.messages import Sink
from rove.runtime.adapters.sources import generated, read_spec
from rove.runtime.local import LocalNet
from tests.runtime.queries import COLUMNS, as_rows, busy, computed, in_log, staged

EDGES = ("2", "3", "4")
BATCHES, EVERY_MS = 12, 100


def files() -> Replay:
    """Three edges in a circle, with one way out, and a device that goes round."""
    fixed = {"nodes": {n: [0, 0] for n in EDGES}, "children": {"2": [3, 4], "3": [4, 2], "4": [2, 3]}}
    updates = []
    for n in range(BATCHES):
        old, new = EDGES[n % 3], EDGES[(n + 1) % 3]
        events = [{"parentId": p, "childId": 9, "action": a} for p, a in ((old, "remove"), (new, "add"))]
        updates.append({"timestamp": n * EVERY_MS, "events": events})
    initial = {"initial_parents": [[2, 9]], "topology_updates": updates}
    return Replay(text=json.dumps(fixed), updates=json.dumps(initial))


@pytest.mark.parametrize("redeploy", ["incremental", "holistic_serial", "holistic_concurrent"])
def test_rows_of_a_device_that_is_moved_about_all_arrive_once(tmp_path: Path, redeploy: Redeploy) -> None:
    net, go = LocalNet(tmp_path, redeploy=redeploy), tmp_path / "go"
    net.add_node(WorkerSettings(node=NodeId("1"), kind="gateway"), durable=True)
    for edge in EDGES:
        parents = tuple(NodeId(n) for n in ("1", *EDGES) if n < edge)
        net.add_node(WorkerSettings(node=NodeId(edge), kind="edge", parents=parents))
    text = f"trains=generate:start_us=1000000,rows=50,rate=50,batches=80,seed=7,step_us=5000,when={go}"
    spec = read_spec(text, COLUMNS, "9")
    net.add_node(WorkerSettings(node=NodeId("9"), kind="device", parents=tuple(map(NodeId, EDGES))), (spec,))
    net.submit("busy", staged(busy()), Sink(kind="log"))
    assert net.run_until(lambda: [q.state for q in net.ask("queries", None, list[QueryLine])] == ["running"])

    file = net.ask("replay", files(), Replayed)
    assert (file.nodes, file.running, file.links, len(file.batches)) == (5, 5, 5, BATCHES)
    machine = net._shells["coordinator"].machine  # type: ignore[union-attr]
    assert machine.membership.topology.neighbours(NodeId("1")) == ("2",), "the circle has one way out"
    go.touch()
    seen = []
    for batch in file.batches:
        net.run_for(EVERY_MS / 1000)
        assert net.ask("relink", Relink(changes=batch.changes), Relinked).queries == 1
        seen.append(machine.membership.topology.neighbours(NodeId("9")))
    assert seen == [(EDGES[(n + 1) % 3],) for n in range(BATCHES)]

    want = as_rows([computed(busy(), {spec.origin: list(generated(spec))})])
    folder = tmp_path / "1/log/busy/out"
    assert net.run_until(lambda: len(as_rows(in_log(folder)[0])) >= len(want), 30)
    batches, names = in_log(folder)
    assert as_rows(batches) == want
    assert len(set(names)) == len(names)
    machine.validate()
    net.close()

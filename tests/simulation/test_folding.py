"""Simulated devices that fold rows while they are away, under all checkers."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.plan import build
from rove.plan.operators import Source, Watermark
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.sim.checkers import MemoryBounded, NothingLost, OneOwner, WatermarksGrow
from rove.sim.draws.faults import GATEWAY, HEAL_US
from rove.sim.nodes import SimNode, SimSource
from rove.sim.queries import SCHEMA
from rove.sim.scenario import SECOND_US, live
from rove.sim.world import World

EDGES = (NodeId("west"), NodeId("east"))
DEVICE = NodeId("device")


def counted() -> Stages:
    """Windows that the device has no room for: it decides who is late, and sends rows."""
    timed = Watermark(Source("readings", SCHEMA), "ts", 3 * SECOND_US)
    items = [build.item(text) for text in ("count(*) AS n", "sum(value) AS total", "max(level) AS top")]
    plan = build.grouped(timed, [build.item("window(ts, '10 seconds')"), build.item("key")], items)
    return Stages.of({"out": optimize(plan)})


class Folded:
    """Which batches were folded."""

    def __init__(self) -> None:
        self.names: set[tuple[str, int]] = set()

    def stepped(self, world: World, node: SimNode) -> None:
        if node.worker is not None:
            self.names |= {(e.header.origin, e.header.seq) for e in node.worker.store if e.header.folded}


@pytest.mark.parametrize("seed", range(12))
def test_a_device_that_folds_is_back_elsewhere_and_nothing_is_missing(seed: int) -> None:
    random = Random(seed)
    world, folded = World(Random(seed)), Folded()
    world.watchers = [NothingLost(), WatermarksGrow(), MemoryBounded(), OneOwner(), folded]
    world.add_node(WorkerSettings(node=GATEWAY, kind="gateway", address="sim"), durable=True)
    for edge in EDGES:
        world.add_node(WorkerSettings(node=edge, kind="edge", address="sim", parents=(GATEWAY,), slots=0))
    given = WorkerSettings(
        node=DEVICE, kind="device", parents=EDGES, memory_bytes=100_000, evict="fifo", compress="off",
        disk_bytes=seed % 2 * 20_000,
    )  # fmt: skip
    source = SimSource(stream="readings", origin=Origin("readings", "device"), every_us=250_000, rows=150, left=80)
    world.add_node(given, durable=bool(given.disk_bytes), sources=(source,))
    world.start_coordinator()
    for name in world.nodes:
        world.at(0, partial(world.start, name))
    world.at(2 * SECOND_US, partial(world.submit, QueryId("q"), counted(), Sink(kind="log"), folds=True))
    back = random.randint(10, 15) * SECOND_US
    world.at(5 * SECOND_US, partial(cut, world, back, HEAL_US if random.random() < 0.5 else back))
    twice = random.random() < 0.5
    if twice:  # and again, while what was kept is on its way
        world.at(back + random.randint(0, 300_000), partial(cut, world, back + 2 * SECOND_US, HEAL_US))
    if random.random() < 0.3:
        world.at(back + random.randint(0, 500_000), partial(restart, world, GATEWAY))
    rows = sum(each.rows for each in live(world).values())
    assert twice or (rows > 0 and not world.evicted), "what was sent and may have arrived takes room, and cannot go"
    assert folded.names, "otherwise this shows nothing"


def cut(world: World, back: int, other: int) -> None:
    """The device is away, and comes back at the second of its parents first."""
    for (dialer, listener), wire in sorted(world.network.wires.items()):
        if dialer == DEVICE and not wire.cut:
            world.network.cut(wire)
            world.at(other if listener == EDGES[0] else back, partial(world.network.mend, wire))


def restart(world: World, name: NodeId) -> None:
    """A node dies and is there again a second later."""
    if world.nodes[name].worker is not None:
        world.kill(name, power=True)
        world.at(world.now + SECOND_US, partial(world.start, name))

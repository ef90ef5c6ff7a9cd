"""Plans nodes that are drained while rows flow: operators with open windows move up with their state.

Law: the plan has a random generator of its own. A node that is drained stays in the network; it may die, and it may be
let back in. Every drain is asked for before the time to heal.
"""

from __future__ import annotations

from functools import partial
from random import Random

from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.sim.draws.faults import GATEWAY, HEAL_US
from rove.sim.nodes import SimSource
from rove.sim.queries import STREAMS, some_query, telling_query
from rove.sim.world import World

SECOND_US = 1_000_000
DRAINS = 0.3  # the share of histories with a node that is drained
HIGH, LOW = NodeId("high"), NodeId("low")


def plan_drains(world: World, random: Random) -> None:
    """Plan a chain of two edges below the gateway, devices below it that have no room for operators, queries whose
    operators are on the edges, and drains of these edges, one after the other or together."""
    if random.random() >= DRAINS:
        return
    for name, parent in ((HIGH, GATEWAY), (LOW, HIGH)):
        settings = WorkerSettings(node=name, kind="edge", address="sim", parents=(parent,))
        world.add_node(settings, durable=random.random() < 0.5)
        world.at(random.randint(0, SECOND_US), partial(world.start, name))
    for n in range(random.randint(1, 3)):
        name = NodeId(f"under{n}")
        sources = tuple(
            SimSource(stream, Origin(stream, name), random.choice((300_000, 800_000)), 3, 30) for stream in STREAMS
        )
        parents = random.choice(((LOW,), (LOW,), (LOW, HIGH)))
        world.add_node(WorkerSettings(node=name, kind="device", parents=parents, slots=0), sources=sources)
        world.at(random.randint(0, SECOND_US), partial(world.start, name))
    for n in range(random.randint(1, 2)):
        stages = some_query(random) if random.random() < 0.5 else telling_query(random, random.choice(STREAMS))
        sink = Sink(kind="log", node=random.choice((None, GATEWAY)))
        world.at(random.randint(2, 6) * SECOND_US, partial(world.submit, QueryId(f"moved{n}"), stages, sink))
    for name in random.choice(((LOW,), (LOW,), (HIGH,), (LOW, HIGH), (HIGH, LOW))):
        begins = random.randint(6 * SECOND_US, HEAL_US - 2 * SECOND_US)
        world.at(begins, partial(world.drain, name))
        if random.random() < 0.3:
            world.at(random.randint(begins, HEAL_US), partial(world.drain, name, back=True))
        if random.random() < 0.4:
            dies = min(HEAL_US - SECOND_US, begins + random.choice((0, 50_000, 300_000, 2_000_000)))
            world.at(dies, partial(die, world, random.choice((LOW, HIGH)), random.random() < 0.5))


def die(world: World, name: NodeId, power: bool) -> None:
    """Kill an edge in the middle of a move."""
    node = world.nodes[name]
    if node.worker is None or node.shelf is None:
        return
    world.kill(name, power)
    world.at(world.now + SECOND_US, partial(world.start, name))

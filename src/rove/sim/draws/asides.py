"""Plans edges that are drained while no node above them may run their operators: the operators move to an edge beside
them.

Law: the plan has a random generator of its own. Every drain is asked for before the time to heal. A drain of an edge
with a disk is not undone: an operator that begins there anew would get its earlier input again (decision 20).
"""

from __future__ import annotations

from functools import partial
from random import Random

from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.messages import Sink
from rove.plan.operators import Aggregate, Operator, Source
from rove.plan.rules.rewrite import with_inputs
from rove.plan.stages import Stages, ordered
from rove.sim.draws.drains import die
from rove.sim.draws.faults import GATEWAY, HEAL_US
from rove.sim.nodes import SimSource
from rove.sim.queries import STREAMS, some_query, telling_query
from rove.sim.world import World

SECOND_US = 1_000_000
ASIDES = 0.2  # the share of histories with such edges
STREAM = "beside"
HUB, WEST, EAST = NodeId("hub"), NodeId("west"), NodeId("east")


def plan_asides(world: World, random: Random) -> None:
    """Plan two edges beside each other, sometimes below hubs, devices that reach both, queries whose operators are
    wanted on edges, and drains of these edges. Some nodes on the way of a state die, and some links break."""
    if random.random() >= ASIDES:
        return
    above, durable = {WEST: GATEWAY, EAST: GATEWAY}, random.random() < 0.5
    for n, name in enumerate((WEST, EAST)):
        if random.random() < 0.4:
            hub = above[name] = NodeId(f"{HUB}{random.choice((0, n))}")
            if hub not in world.nodes:
                _edge(world, random, hub, GATEWAY, random.random() < 0.5)
        _edge(world, random, name, above[name], durable)
    for n in range(random.randint(1, 3)):
        name = NodeId(f"between{n}")
        streams = (STREAM, random.choice(STREAMS))
        sources = tuple(
            SimSource(stream, Origin(stream, name), random.choice((300_000, 800_000)), 3, 30) for stream in streams
        )
        parents = (WEST, EAST) if n == 0 or random.random() < 0.8 else (random.choice((WEST, EAST)),)
        world.add_node(WorkerSettings(node=name, kind="device", parents=parents), sources=sources)
        world.at(random.randint(0, SECOND_US), partial(world.start, name))
    for n in range(random.randint(1, 2)):
        stages = some_query(random) if random.random() < 0.5 else telling_query(random, random.choice(STREAMS))
        if len(stages.sources()) == 1 and random.random() < 0.8:
            stages = _beside(stages)
        sink = Sink(kind="log", node=random.choice((None, GATEWAY)))
        begins = random.randint(2, 6) * SECOND_US
        world.at(begins, partial(world.submit, QueryId(f"aside{n}"), on_edges(stages), sink))
    begins = 6 * SECOND_US
    for name in random.choice(((WEST,), (EAST,), (EAST,), (EAST, WEST), (EAST, WEST, EAST))):
        begins = random.randint(begins, max(begins, HEAL_US - 3 * SECOND_US))
        world.at(begins, partial(world.drain, name))
        back = begins + random.choice((10_000, 300_000, 2 * SECOND_US, 4 * SECOND_US))
        if random.random() < 0.8 and back < HEAL_US and not durable:
            world.at(back, partial(world.drain, name, back=True))
        soon = begins + random.choice((0, 5_000, 50_000, 300_000, 2_000_000))
        if random.random() < 0.4:
            victim = random.choice((WEST, EAST, above[WEST], above[EAST]))
            world.at(soon, partial(die, world, victim, random.random() < 0.5))
        if random.random() < 0.3:
            low = random.choice((WEST, EAST))
            world.at(soon, partial(_cut, world, low, above[low], random.randint(50_000, 2_000_000)))
        begins = min(back, HEAL_US - 3 * SECOND_US)


def on_edges(stages: Stages) -> Stages:
    """A query whose operators with memory are wanted on edges: partial aggregates, or all where there are none. What
    merges the partial ones is left to the placement."""
    operators = stages.operators
    if any(len(readers) > 1 for readers in stages.readers):  # rows that go several ways meet where all routes end
        return stages
    partials = [Stage(n) for n, op in enumerate(operators) if isinstance(op, Aggregate) and op.mode == "partial"]
    wanted = partials or [Stage(n) for n, op in enumerate(operators) if ordered(op)]
    hinted: dict[Stage, str] = dict(stages.hints) | dict.fromkeys(wanted, "edge")
    return Stages(operators, stages.outputs, tuple(sorted(hinted.items())))


def _beside(stages: Stages) -> Stages:
    """The same query over the stream that only devices below these edges have."""
    operators: list[Operator] = []
    for operator, inputs in zip(stages.operators, stages.inputs, strict=True):
        new = with_inputs(operator, tuple(operators[n] for n in inputs))
        operators.append(Source(STREAM, new.columns) if isinstance(new, Source) else new)
    return Stages(tuple(operators), stages.outputs, stages.hints)


def _edge(world: World, random: Random, name: NodeId, parent: NodeId, durable: bool) -> None:
    settings = WorkerSettings(node=name, kind="edge", address="sim", parents=(parent,))
    world.add_node(settings, durable=durable)
    world.at(random.randint(0, SECOND_US), partial(world.start, name))


def _cut(world: World, dialer: NodeId, listener: NodeId, for_us: int) -> None:
    """Break a link for a while."""
    wire = world.network.wires.get((dialer, listener))
    if wire is not None and not wire.cut:
        world.network.cut(wire)
        world.at(world.now + for_us, partial(world.network.mend, wire))

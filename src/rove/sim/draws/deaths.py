"""Plans edges that are silent for longer than the coordinator's patience, with operators on them: they die and stay
dead until the time to heal, or come back earlier; or they live on and are cut off.

Law: the plan has a random generator of its own. Every edge is back at the time to heal. A query whose operators were
started elsewhere may have lost rows: they are named, and results in which they may be are not compared.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from rove.control.deployment.dead.decision import Decision, Patience
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.messages import Sink
from rove.plan.stages import Stages, merges, ordered, stateful
from rove.sim.draws.faults import GATEWAY, HEAL_US
from rove.sim.nodes import SimSource
from rove.sim.queries import some_query, windows
from rove.sim.world import World

SECOND_US = 1_000_000
DEATHS = 0.3  # the share of histories with edges that die for long
TOP = NodeId("top")
LASTS_US = HEAL_US + 3 * SECOND_US  # sources make rows until every edge is back
RIDES = ("rides", "stops")  # streams of the devices below these edges alone


def plan_deaths(world: World, random: Random) -> None:
    """Plan two or three edges side by side, devices that reach some of them, queries whose operators are on these
    edges, and long silences of the edges: one after the other, or of two at once."""
    if random.random() >= DEATHS:
        return
    world.coordinator.be_patient(Patience(durable_us=_patience(random), forgetful_us=_patience(random)))
    world.audits.insert(0, _note_losses)
    above = random.choice((GATEWAY, GATEWAY, GATEWAY, TOP))
    if above == TOP:
        _edge(world, random, TOP, (GATEWAY,), durable=True)
    cells = [NodeId(f"cell{n}") for n in range(random.choice((2, 2, 3)))]
    for name in cells:
        parents = random.choice(((above,), (above,), (TOP, GATEWAY))) if above == TOP else (GATEWAY,)
        _edge(world, random, name, parents, random.random() < 0.5)
    together = random.random() < 0.6  # all devices know the same edges, so that one edge has the rows of all
    for n in range(random.randint(1, 4)):
        name = NodeId(f"rider{n}")
        every_us = random.choice((400_000, 800_000))
        sources = tuple(SimSource(stream, Origin(stream, name), every_us, 3, LASTS_US // every_us) for stream in RIDES)
        known = tuple(cells if together else random.sample(cells, random.choice((1, 2, 2, 2, len(cells)))))
        world.add_node(WorkerSettings(node=name, kind="device", parents=known, slots=8), sources=sources)
        world.at(random.randint(0, SECOND_US), partial(world.start, name))
    for n in range(random.randint(1, 2)):
        stages = some_query(random, RIDES) if random.random() < 0.5 else windows(random, RIDES[0], 5)
        where = random.choice(("edge",) * 8 + (cells[0], None))
        sink = Sink(kind="log", node=random.choice((None, GATEWAY)))
        begins = random.randint(2, 4) * SECOND_US
        world.at(begins, partial(world.submit, QueryId(f"kept{n}"), _hinted(stages, random, where, together), sink))
    dies = random.randint(4, 12) * SECOND_US
    for _ in range(random.choice((1, 1, 2, 2, 3))):
        ends = random.choice((HEAL_US, HEAL_US, dies + random.randint(7, 14) * SECOND_US, dies + 2 * SECOND_US))
        edges = [*cells, TOP] if above == TOP and random.random() < 0.4 else cells
        fate = random.choice((_die, _die, _die, _cut_off))
        world.at(dies, partial(fate, world, Random(random.random()), edges, min(HEAL_US, ends)))
        dies += random.choice((0, 300_000, 6 * SECOND_US))
    if random.random() < 0.3:
        begins = random.randint(10, 22) * SECOND_US
        world.at(begins, partial(_restart_coordinator, world, random.choice((100_000, 2 * SECOND_US))))


def _patience(random: Random) -> int | None:
    seconds = random.choice((6, 6, 7, 9, None))
    return None if seconds is None else seconds * SECOND_US


def _edge(world: World, random: Random, name: NodeId, parents: tuple[NodeId, ...], durable: bool) -> None:
    settings = WorkerSettings(node=name, kind="edge", address="sim", parents=parents, slots=random.choice((2, 8, 8)))
    world.add_node(settings, durable)
    world.at(random.randint(0, SECOND_US), partial(world.start, name))


def _hinted(stages: Stages, random: Random, where: str | None, all_of: bool) -> Stages:
    """The same query, with its operators on edges: with `all_of` every stateful operator; otherwise only those that may
    have an instance on each edge."""
    if where is None:
        return stages
    kind = random.choice((stateful, stateful, ordered))
    some = [n for n, op in enumerate(stages.operators) if kind(op)]
    if not all_of or random.random() < 0.5:
        some = [n for n in some if not merges(stages.operators[n])]
    return replace(stages, hints=tuple((Stage(n), where) for n in some))


def _one_of(world: World, random: Random, edges: list[NodeId]) -> tuple[NodeId, Worker] | None:
    """An edge that runs: one with operators that remember, if there is one."""
    alive = [(name, worker) for name in edges if (worker := world.nodes[name].worker) is not None]
    busy = [pair for pair in alive if any(running.remembers for running in pair[1].running().values())]
    return random.choice(busy or alive) if alive else None


def _die(world: World, random: Random, edges: list[NodeId], ends: int) -> None:
    if (found := _one_of(world, random, edges)) is None:
        return
    name, worker = found
    if world.nodes[name].shelf is None:
        world.forgot |= {query for query, running in worker.running().items() if running.remembers}
    world.kill(name, random.random() < 0.5)
    world.at(ends, partial(_start, world, name))


def _start(world: World, name: NodeId) -> None:
    if world.nodes[name].worker is None:
        world.start(name)


def _cut_off(world: World, random: Random, edges: list[NodeId], ends: int) -> None:
    """Cut an edge off: from all nodes, or from all except a few."""
    if (found := _one_of(world, random, edges)) is None:
        return
    name, _ = found
    wires = [wire for _, wire in sorted(world.network.wires.items()) if name in (wire.dialer, wire.listener)]
    spared = random.sample(wires, random.choice((0, 0, 1))) if wires else []
    for wire in wires:
        if wire not in spared and not wire.cut:
            world.network.cut(wire)
            world.at(ends, partial(world.network.mend, wire))


def _restart_coordinator(world: World, lasts_us: int) -> None:
    if world.coordinator.machine is not None:
        world.kill_coordinator()
        world.at(min(HEAL_US, world.now + lasts_us), world.start_coordinator)


def _note_losses(world: World) -> None:
    """Note the queries whose operators have left a silent node without their state."""
    machine = world.coordinator.machine
    verdicts = {} if machine is None else machine.absence.deaths.verdicts
    found = {query for (query, _), verdict in verdicts.items() if verdict.decision is Decision.REPLACE}
    world.forgot |= found
    world.replaced |= found

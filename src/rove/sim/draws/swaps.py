"""Plans devices that leave edges which hold their partial windows: they swap edges, come back, and move on.

Law: the plan has a random generator of its own. A device reaches one edge at a time until the time to heal. Edges,
the gateway and the coordinator die in the middle of moves, and edges are drained. Every fault ends before the time to
heal.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.model.messages import Sink
from rove.plan.operators import Aggregate, Watermark
from rove.plan.stages import Stages
from rove.sim.draws.drains import die
from rove.sim.draws.faults import GATEWAY, HEAL_US
from rove.sim.nodes import SimSource
from rove.sim.queries import some_query, windows
from rove.sim.world import World

SECOND_US = 1_000_000
SWAPS = 0.3  # the share of histories with such devices
STREAM = "walks"
WAITS_US = (200_000, 1_000_000, 3_000_000, 6_000_000)  # between two moves


def plan_swaps(world: World, random: Random) -> None:
    """Plan two or three edges, devices that reach all of them, one at a time, queries with partial windows on the
    edges, and moves of the devices: of one alone, or of two that swap edges."""
    if random.random() >= SWAPS:
        return
    edges = [NodeId(f"stop{n}") for n in range(random.choice((2, 2, 3)))]
    for name in edges:
        settings = WorkerSettings(node=name, kind="edge", address="sim", parents=(GATEWAY,))
        world.add_node(settings, durable=random.random() < 0.6)
        world.at(random.randint(0, SECOND_US), partial(world.start, name))
    slots = random.choice((0, 8))  # without room on the devices, lateness is decided on the edges too
    walkers = [NodeId(f"walker{n}") for n in range(random.randint(1, 4))]
    for name in walkers:
        every_us = random.choice((200_000, 500_000))
        source = SimSource(STREAM, Origin(STREAM, name), every_us, 3, (HEAL_US + 2 * SECOND_US) // every_us)
        durable = random.random() < 0.2
        settings = WorkerSettings(
            node=name, kind="device", parents=tuple(edges), slots=slots, disk_bytes=300_000 if durable else 0
        )
        world.add_node(settings, durable, sources=(source,))
        world.at(random.randint(0, SECOND_US), partial(world.start, name))
    for n in range(random.randint(1, 2)):
        stages = windows(random, STREAM, random.choice((2, 5)))
        if random.random() < 0.3:
            found = some_query(random, (STREAM,))
            stages = found if len(found.sources()) == 1 else stages
        sink = Sink(kind="log", node=random.choice((None, GATEWAY)))
        begins = random.randint(2, 5) * SECOND_US
        world.at(begins, partial(world.submit, QueryId(f"swap{n}"), _on_edges(stages, slots == 0), sink))
    _plan_walks(world, random, walkers, edges)
    for _ in range(random.choice((0, 0, 1, 2, 4))):
        begins = random.randint(6 * SECOND_US, HEAL_US - 2 * SECOND_US)
        fate = random.choice((_die, _die, _die, _forget, _drain, _cut, _cut, _restart_coordinator))
        world.at(begins, partial(fate, world, Random(random.random()), edges))


def _plan_walks(world: World, random: Random, walkers: list[NodeId], edges: list[NodeId]) -> None:
    here = {name: random.choice(edges) for name in walkers}
    world.at(1_500_000, partial(_all_at, world, dict(here)))
    at = random.randint(5, 9) * SECOND_US
    while at < HEAL_US - SECOND_US:
        if len(walkers) > 1 and random.random() < 0.5:
            one, other = random.sample(walkers, 2)
            here[one], here[other] = here[other], here[one]
        else:
            here[random.choice(walkers)] = random.choice(edges)
        away = random.choice((0, 0, 100_000, 1_500_000))
        world.at(at, partial(_all_away, world, dict(here)))
        world.at(min(HEAL_US, at + away), partial(_all_at, world, dict(here)))
        at += away + random.choice(WAITS_US)
    world.at(HEAL_US, partial(_heal, world, walkers, edges))


def _all_away(world: World, here: dict[NodeId, NodeId]) -> None:
    """Devices leave the edges at which they should not be."""
    for (dialer, listener), wire in sorted(world.network.wires.items()):
        parents = world.nodes[dialer].settings.parents if dialer in here else ()
        if listener in parents and here[dialer] != listener and not wire.cut:
            world.network.cut(wire)


def _all_at(world: World, here: dict[NodeId, NodeId]) -> None:
    """Each device reaches one edge."""
    _all_away(world, here)
    for device, edge in here.items():
        wire = world.network.wires.get((device, edge))
        if wire is not None and wire.cut:
            world.network.mend(wire)


def _heal(world: World, walkers: list[NodeId], edges: list[NodeId]) -> None:
    for (dialer, listener), wire in sorted(world.network.wires.items()):
        if dialer in walkers and listener in edges and wire.cut:
            world.network.mend(wire)


def _on_edges(stages: Stages, watermarks: bool) -> Stages:
    """The same query, with its partial windows on edges; with `watermarks`, these too."""
    operators = stages.operators
    partial = any(isinstance(op, Aggregate) and op.mode == "partial" for op in operators)
    if not partial or any(len(readers) > 1 for readers in stages.readers):
        return stages
    hinted = {
        Stage(n): "edge"
        for n, op in enumerate(operators)
        if (isinstance(op, Aggregate) and op.mode == "partial") or (watermarks and isinstance(op, Watermark))
    }
    return replace(stages, hints=tuple(sorted(hinted.items())))


def _die(world: World, random: Random, edges: list[NodeId]) -> None:
    """An edge with a disk dies, or the gateway."""
    die(world, random.choice((*edges, GATEWAY)), random.random() < 0.5)


def _forget(world: World, random: Random, edges: list[NodeId]) -> None:
    """An edge without a disk dies, and its windows with it."""
    name = random.choice(edges)
    node = world.nodes[name]
    if node.shelf is not None or node.worker is None:
        return
    world.forgot |= {query for query, running in node.worker.running().items() if running.remembers}
    world.kill(name)
    world.at(min(HEAL_US, world.now + random.choice((100_000, 3_000_000))), partial(world.start, name))


def _drain(world: World, random: Random, edges: list[NodeId]) -> None:
    name = random.choice(edges)
    world.drain(name)
    world.at(min(HEAL_US, world.now + random.choice((300_000, 2_000_000))), partial(world.drain, name, back=True))


def _cut(world: World, random: Random, edges: list[NodeId]) -> None:
    """An edge does not reach the gateway for a while."""
    wire = world.network.wires.get((random.choice(edges), GATEWAY))
    if wire is not None and not wire.cut:
        world.network.cut(wire)
        world.at(min(HEAL_US, world.now + random.choice((300_000, 4_000_000))), partial(world.network.mend, wire))


def _restart_coordinator(world: World, random: Random, edges: list[NodeId]) -> None:
    if world.coordinator.machine is not None:
        world.kill_coordinator()
        world.at(min(HEAL_US, world.now + random.choice((100_000, 2_000_000))), world.start_coordinator)

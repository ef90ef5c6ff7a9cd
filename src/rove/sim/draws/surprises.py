"""Plans what is not a fault of a network or a disk: sources that make many rows, clocks that jump, nodes that join
late, two processes under one name, an edge that forgets open windows.

Law: each plan has a random generator of its own, so that a history is the same with and without the others. Every
surprise is over before the time to heal.
"""

from __future__ import annotations

from functools import partial
from random import Random

from msgspec.structs import replace

from rove.data.settings import WorkerSettings
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.sim.draws.faults import GATEWAY, HEAL_US
from rove.sim.nodes import SimNode, SimSource
from rove.sim.queries import STREAMS, telling_query, windows
from rove.sim.world import World

SECOND_US = 1_000_000
STEADY, EDGE = NodeId("steady"), NodeId("forgetful")
FORGETFUL = 0.15
PLENTY = 0.9  # the share of histories in which sources make rows for long
JUMPS = (0, 0, 0, 1, 4)
JUMPS_US = (-21_600 * SECOND_US, -3_600 * SECOND_US, -90 * SECOND_US, 90 * SECOND_US, 3_600 * SECOND_US)
ROWS_MAX = 8
LATE = (0, 0, 0, 1, 3)
CHECKPOINTS_BYTES = (300, 1_000, 4_000, 16_000, 256_000)
CHECKPOINTS_US = (0, 0, 300_000, SECOND_US)
TWINS = (0, 0, 0, 0, 0, 0, 0, 1)
FILES = 0.6  # the share of devices with a disk that read files
FAR = 1_000  # between the starts of two clocks: one that has gone back counts from here down


def plan_plenty(world: World, random: Random) -> None:
    """Plan sources that make rows until shortly before the time to heal, so that queries which begin late have results
    as well; and one more device, which evicts nothing, and one more query, which has a result for most rows."""
    if random.random() >= PLENTY:
        return
    sources = tuple(SimSource(stream, Origin(stream, STEADY), 1, 5, 1) for stream in STREAMS)
    world.add_node(WorkerSettings(node=STEADY, kind="device", parents=(GATEWAY,)), sources=sources)
    world.at(random.randint(0, SECOND_US), partial(world.start, STEADY))
    for source in (source for node in world.nodes.values() for source in node.sources):
        source.every_us = random.choice((400_000, 700_000, 1_500_000))
        source.left = random.randint(10, 18) * SECOND_US // source.every_us
        source.rows = min(source.rows, ROWS_MAX)  # pairs of a join would be too many
    stages = telling_query(random, random.choice(STREAMS))
    world.at(2 * SECOND_US, partial(world.submit, QueryId("plenty"), stages, Sink(kind="log")))


def plan_forgetful(world: World, random: Random) -> None:
    """Plan an edge without a disk that dies while the windows on it are open. Devices below it have no room for
    operators. Rows that it had taken are missing at the end, by their names."""
    if random.random() >= FORGETFUL:
        return
    world.add_node(WorkerSettings(node=EDGE, kind="edge", address="sim", parents=(GATEWAY,)))
    world.at(0, partial(world.start, EDGE))
    for n in range(random.randint(1, 3)):
        name = NodeId(f"below{n}")
        source = SimSource(STREAMS[0], Origin(STREAMS[0], name), random.choice((300_000, 800_000)), 3, 40)
        world.add_node(WorkerSettings(node=name, kind="device", parents=(EDGE,), slots=0), sources=(source,))
        world.at(random.randint(0, SECOND_US), partial(world.start, name))
    stages = windows(random, STREAMS[0], random.choice((5, 10)))
    world.at(2 * SECOND_US, partial(world.submit, QueryId("windows"), stages, Sink(kind="log")))
    world.at(random.randint(8 * SECOND_US, HEAL_US - 8 * SECOND_US), partial(_forget, world))


def _forget(world: World) -> None:
    """Kill the edge at a moment at which it has open windows."""
    node = world.nodes[EDGE]
    if node.worker is None:
        return
    running = node.worker.running()
    if any(True for each in running.values() for _ in each.pipeline.open_batches()):
        world.forgot |= {query for query, each in running.items() if each.remembers}
        world.kill(EDGE)
        world.at(world.now + SECOND_US, partial(world.start, EDGE))
    elif world.now < HEAL_US - 2 * SECOND_US:
        world.at(world.now + 300_000, partial(_forget, world))


def plan_clocks(world: World, random: Random) -> None:
    """Plan clocks that jump forward and back, by minutes or hours. A source reads its node's clock. A node without a
    disk that is started after its clock has gone back has an earlier start than the one before it."""
    names = sorted(world.nodes)
    for n in range(random.choice(JUMPS)):
        name, by = random.choice(names), random.choice(JUMPS_US)
        node = world.nodes[name]
        if node.shelf is None and not node.start_number:
            node.start_number = FAR * FAR
        begins = random.randint(SECOND_US, HEAL_US)
        world.at(begins, partial(_jump, world, name, by, n))
        if random.random() < 0.5:
            world.at(random.randint(begins, HEAL_US), partial(_jump, world, name, -by, n))
    if random.random() < 0.2:
        world.at(random.randint(SECOND_US, HEAL_US), partial(setattr, world.coordinator, "skew_us", JUMPS_US[0]))


def _jump(world: World, name: NodeId, by: int, n: int) -> None:
    node = world.nodes[name]
    node.jumped_us += by
    if by < 0 and node.shelf is None:
        node.start_number -= FAR * (n + 1)


def plan_checkpoints(world: World, random: Random) -> None:
    """Plan nodes that take checkpoints of their operators after little input, so that most restarts begin with one."""
    for name in sorted(world.nodes):
        node = world.nodes[name]
        least_bytes, least_us = random.choice(CHECKPOINTS_BYTES), random.choice(CHECKPOINTS_US)
        node.settings = replace(node.settings, checkpoint_bytes=least_bytes, checkpoint_us=least_us)


def plan_late_joins(world: World, random: Random) -> None:
    """Plan nodes that are started for the first time while others have been at work for long, edges among them."""
    names = sorted(node.name for node in world.nodes.values() if node.settings.kind != "gateway")
    for name in random.sample(names, min(len(names), random.choice(LATE))):
        world.nodes[name].begins_us = random.randint(2 * SECOND_US, HEAL_US - 1)


def plan_twins(world: World, random: Random) -> None:
    """Plan a second process under the name of a device that runs, on another computer: both report and send. One of
    them is stopped later, as the coordinator says."""
    devices = sorted(
        node.name for node in world.nodes.values() if node.settings.kind == "device" and node.shelf is None
    )
    for name in random.sample(devices, min(len(devices), random.choice(TWINS))):
        begins = random.randint(3 * SECOND_US, HEAL_US - 5 * SECOND_US)
        world.at(begins, partial(_start_twin, world, name, random.choice((2, 6, 12)) * SECOND_US))


def _start_twin(world: World, name: NodeId, lasts_us: int) -> None:
    node = world.nodes[name]
    if node.left or node.worker is None:
        return
    twin = NodeId(f"{name}'")
    start = node.start_number + FAR // 2
    sources = [
        SimSource(s.stream, replace(s.origin, start=start + 1), s.every_us, s.rows, 5)
        for s in node.sources
        if not s.dead
    ]
    world.twins.add(name)
    made = world.add_node(node.settings, sources=tuple(sources), place=twin)
    made.start_number = start
    world.start(twin)
    world.at(min(HEAL_US, world.now + lasts_us), partial(_stop_twin, world, made, node))


def _stop_twin(world: World, twin: SimNode, first: SimNode) -> None:
    world.leave(twin.place, goodbye=False)
    if first.left:  # and its second process had joined again under its name
        world.remove(first.name)


def plan_files(world: World, random: Random) -> None:
    """Some devices with a disk read files: their sources make the same batches again after a restart."""
    for node in world.nodes.values():
        if node.shelf is not None and random.random() < FILES:
            for source in node.sources:
                source.replays = True

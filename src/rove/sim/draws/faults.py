"""Plans cuts, crashes, bad disks and moves, and when they happen.

Law: every fault ends before the time to heal. Then the network is whole, every process runs, and everything must
arrive.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from random import Random

from rove.model.ids import NodeId, QueryId
from rove.sim.world import World

GATEWAY = NodeId("gateway")
HEAL_US = 25_000_000
KINDS = (
    "cut",
    "cut",
    "cut",
    "partition",
    "crash",
    "crash",
    "coordinator",
    "slow disk",
    "full disk",
    "bad disk",
    "device",
    "device",
)
BAD_DISKS = (0.0, 0.0, 0.5, 0.9)  # how often openings and reads fail for a while after a crash
BAD_US = 2_000_000
LEAVES = (0, 0, 0, 1, 3)  # devices that leave for good
RELAPSES = (0, 0, 1, 2)
MOVES = (0, 1, 4, 12)  # some fleets never move, some move often


def plan_faults(world: World, random: Random) -> None:
    """Plan a few cuts, crashes and slow disks between the start and the time to heal."""
    durable = sorted(n.name for n in world.nodes.values() if n.shelf is not None)  # devices with disks among them
    relays = sorted(n.name for n in world.nodes.values() if n.settings.kind != "device")
    for _ in range(random.randint(0, 6)):
        begins = random.randint(1_000_000, HEAL_US)
        ends = min(HEAL_US, begins + random.choice((100_000, 2_000_000, 8_000_000)))
        name = random.choice(durable)
        match random.choice(KINDS):
            case "cut":
                world.at(begins, partial(_cut_some, world, random, 1, ends))
            case "partition":
                world.at(begins, partial(_cut_some, world, random, 5, ends))
            case "crash":
                names = (GATEWAY, random.choice(relays))
                name = random.choice(names)
                world.at(begins, partial(_crash, world, name, random.random() < 0.5, ends, random.choice(BAD_DISKS)))
            case "device":
                world.at(begins, partial(_crash_device, world, random, ends))
            case "coordinator":
                world.at(begins, partial(_crash_coordinator, world, ends))
            case "slow disk":
                world.at(begins, partial(_slow, world, name, ends))
            case "full disk":
                world.at(begins, partial(_fill, world, name, ends))
            case "bad disk":
                world.at(begins, partial(_spoil, world, name, ends, random.random()))


def plan_moves(world: World, random: Random) -> None:
    """Plan moves: nodes with several parents lose them, come back at one parent, and reach the others later."""
    movers = sorted(n.name for n in world.nodes.values() if len(n.settings.parents) > 1)
    for _ in range(random.choice(MOVES) if movers else 0):
        begins, away = random.randint(1_000_000, HEAL_US), random.choice((0, 1_000_000, 6_000_000))
        ends = begins + away + random.choice((1_000_000, 6_000_000, 12_000_000))
        world.at(begins, partial(_move, world, random, random.choice(movers), begins + away, ends))
    pairs = [
        (a, b)
        for a, b in combinations(movers, 2)
        if len(set(world.nodes[a].settings.parents) & set(world.nodes[b].settings.parents)) > 1
    ]
    for _ in range(random.choice((0, 0, 1, 3)) if pairs else 0):
        begins = random.randint(1_000_000, HEAL_US)
        world.at(begins, partial(_swap, world, random.choice(pairs), begins + random.choice((500_000, 6_000_000))))


def plan_leaves(world: World, random: Random) -> None:
    """Plan devices that leave for good: they say goodbye, or they die and a user removes them."""
    devices = sorted(n.name for n in world.nodes.values() if n.settings.kind == "device")
    for name in random.sample(devices, min(len(devices) - 1, random.choice(LEAVES))) if devices else ():
        begins, removed = random.randint(3_000_000, HEAL_US - 1), random.choice((0, 1_000_000, 7_000_000))
        goodbye = random.random() < 0.5
        world.at(begins, partial(world.leave, name, goodbye))
        world.at(min(HEAL_US, begins + removed), partial(world.remove, name))


def plan_relapses(world: World, random: Random) -> None:
    """Plan nodes that die again while they recover, and nodes without a disk that die with the state of operators."""
    durable = sorted(n.name for n in world.nodes.values() if n.shelf is not None and n.settings.kind != "device")
    for _ in range(random.choice(RELAPSES)):
        begins, name = random.randint(3_000_000, HEAL_US - 3_000_000), random.choice(durable)
        for _ in range(random.randint(1, 3)):
            world.at(begins, partial(_relapse, world, name, random.random() < 0.5))
            world.at(begins + 200_000, partial(_recover, world, name))
            begins += 200_000 + random.randint(0, 400_000)
    for _ in range(random.choice(RELAPSES)):
        world.at(random.randint(3_000_000, HEAL_US - 3_000_000), partial(_forget, world, random))


def _relapse(world: World, name: NodeId, power: bool) -> None:
    if world.nodes[name].worker is not None:
        world.kill(name, power)


def _forget(world: World, random: Random) -> None:
    """Kill an edge node without a disk that runs stateful operators. Rows of open windows that it had taken are
    missing, also those of operators whose state is leaving it."""
    relays = (n for n in world.nodes.values() if n.shelf is None and n.settings.kind != "device")
    stateful = {
        n.name: {query for query, running in n.worker.running().items() if running.remembers}
        for n in relays
        if n.worker is not None
    }
    if names := sorted(name for name, queries in stateful.items() if queries):
        name = random.choice(names)
        world.forgot |= stateful[name] | leaving_states(world, name)
        world.kill(name)
        world.at(world.now + random.choice((100_000, 4_000_000)), partial(_recover, world, name))


def leaving_states(world: World, name: NodeId) -> set[QueryId]:
    """The queries whose operators have left a node that still keeps their state."""
    worker = world.nodes[name].worker
    return set() if worker is None else {query for query, each in worker.running().items() if each.sends_state}


def _recover(world: World, name: NodeId) -> None:
    if world.nodes[name].worker is None and not world.nodes[name].left:
        world.start(name)


def _cut_some(world: World, random: Random, most: int, ends: int) -> None:
    wires = [wire for _, wire in sorted(world.network.wires.items()) if not wire.cut]
    for wire in random.sample(wires, min(most, len(wires))):
        world.network.cut(wire)
        world.at(ends, partial(world.network.mend, wire))


def _move(world: World, random: Random, name: NodeId, back: int, ends: int) -> None:
    """Cut a node off from all nodes. It comes back at one of its parents, and reaches the others later."""
    wires = [wire for _, wire in sorted(world.network.wires.items()) if wire.dialer == name and not wire.cut]
    parents = [wire for wire in wires if wire.listener in world.nodes[name].settings.parents]
    if not parents:
        return
    for wire in wires:
        world.network.cut(wire)
    here = random.choice(parents)
    if random.random() < 0.2:  # the new parent dies while it takes kept batches
        dies = min(HEAL_US, back + random.randint(0, 1_500_000))
        world.at(dies, partial(_crash, world, here.listener, True, HEAL_US))
    for wire in wires:
        found = ends if wire in parents and wire is not here else back
        world.at(min(HEAL_US, found), partial(world.network.mend, wire))


def _swap(world: World, pair: tuple[NodeId, NodeId], back: int) -> None:
    """Cut two nodes off together. Each comes back at the parent of the other."""
    common = sorted(set.intersection(*(set(world.nodes[name].settings.parents) for name in pair)))
    for name, here in zip(pair, common, strict=False):
        wires = [w for _, w in sorted(world.network.wires.items()) if w.dialer == name and not w.cut]
        for wire in wires:
            world.network.cut(wire)
        others = [w for w in wires if w.listener in world.nodes[name].settings.parents and w.listener != here]
        for wire in wires:
            world.at(HEAL_US if wire in others else min(HEAL_US, back), partial(world.network.mend, wire))


def _crash(world: World, name: NodeId, power: bool, ends: int, bad: float = 0.0) -> None:
    node = world.nodes[name]
    if node.worker is None:
        return
    if node.shelf is not None or not any(running.remembers for running in node.worker.running().values()):
        # Only nodes with a disk may crash if they run stateful operators; backups for others are not built yet.
        world.kill(name, power)
        world.at(ends, partial(_start, world, name, bad))


def _start(world: World, name: NodeId, bad: float) -> None:
    """Start a node again, on a disk that may be bad for a while."""
    if not world.nodes[name].left:
        _spoil(world, name, min(HEAL_US, world.now + BAD_US), bad)
        world.start(name)


def _crash_device(world: World, random: Random, ends: int) -> None:
    """Crash a device. The batches in its memory and the state of its operators are lost."""
    alive = [n for n in world.nodes.values() if n.worker is not None and any(not s.ended for s in n.sources)]
    busy = [n for n in alive if n.worker is not None and any(r.fragment.makes for r in n.worker.running().values())]
    if alive:
        name = random.choice(sorted(n.name for n in (busy or alive)))
        world.kill(name)
        world.at(ends, partial(_start, world, name, random.choice(BAD_DISKS)))


def _crash_coordinator(world: World, ends: int) -> None:
    if world.coordinator.machine is not None:
        world.kill_coordinator()
        world.at(ends, world.start_coordinator)


def _slow(world: World, name: NodeId, ends: int) -> None:
    shelf = world.nodes[name].shelf
    if shelf is not None:
        shelf.slow_us = 500_000
        world.at(ends, lambda: setattr(shelf, "slow_us", 0))


def _fill(world: World, name: NodeId, ends: int) -> None:
    """Fill a disk: nothing is acked, no process dies."""
    shelf = world.nodes[name].shelf
    if shelf is None:
        return
    for disk in shelf.disks.values():
        disk.capacity_bytes = 0

    def empty() -> None:
        for disk in shelf.disks.values():
            disk.capacity_bytes = None

    world.at(ends, empty)


def _spoil(world: World, name: NodeId, ends: int, chance: float) -> None:
    """Let openings and reads fail, more or less often; the node tries again."""
    shelf = world.nodes[name].shelf
    if shelf is not None:
        shelf.bad = chance
        world.at(ends, lambda: setattr(shelf, "bad", 0.0))

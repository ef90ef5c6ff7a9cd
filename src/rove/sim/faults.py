"""What goes wrong, and when.

Law: every fault ends before the time to heal; after it the network is whole, every process lives, and everything has to
arrive.
"""

from __future__ import annotations

from functools import partial
from random import Random

from rove.model.ids import NodeId
from rove.sim.world import World

GATEWAY = NodeId("gateway")
KINDS = ("cut", "cut", "cut", "partition", "crash", "crash", "coordinator", "slow disk", "full disk")


def plan_faults(world: World, random: Random, heal_us: int) -> None:
    """A handful of cuts, crashes and slow disks between the start and the time to heal."""
    durable = sorted(n.name for n in world.nodes.values() if n.shelf is not None)
    relays = sorted(n.name for n in world.nodes.values() if n.settings.kind != "device")
    for _ in range(random.randint(0, 6)):
        begins = random.randint(1_000_000, heal_us)
        ends = min(heal_us, begins + random.choice((100_000, 2_000_000, 8_000_000)))
        name = random.choice(durable)
        match random.choice(KINDS):
            case "cut":
                world.at(begins, partial(_cut_some, world, random, 1, ends))
            case "partition":
                world.at(begins, partial(_cut_some, world, random, 5, ends))
            case "crash":
                names = (GATEWAY, random.choice(relays))
                world.at(begins, partial(_crash, world, random.choice(names), random.random() < 0.5, ends))
            case "coordinator":
                world.at(begins, partial(_crash_coordinator, world, ends))
            case "slow disk":
                world.at(begins, partial(_slow, world, name, ends))
            case "full disk":
                world.at(begins, partial(_fill, world, name, ends))


def _cut_some(world: World, random: Random, most: int, ends: int) -> None:
    wires = [wire for _, wire in sorted(world.network.wires.items()) if not wire.cut]
    for wire in random.sample(wires, min(most, len(wires))):
        world.network.cut(wire)
        world.at(ends, partial(world.network.mend, wire))


def _crash(world: World, name: NodeId, power: bool, ends: int) -> None:
    node = world.nodes[name]
    if node.worker is None:
        return
    if node.shelf is not None or not any(running.remembers for running in node.worker.running().values()):
        # Operators that remember, on a node without a disk, forget when it dies: that is what backups are for.
        world.kill(name, power)
        world.at(ends, lambda: world.start(name))


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
    """No room on the disk: nothing is acked, nothing dies."""
    shelf = world.nodes[name].shelf
    if shelf is None:
        return
    for disk in shelf.disks.values():
        disk.capacity_bytes = 0

    def empty() -> None:
        for disk in shelf.disks.values():
            disk.capacity_bytes = None

    world.at(ends, empty)

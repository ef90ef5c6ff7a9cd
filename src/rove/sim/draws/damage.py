"""Plans disks that lose written bytes, because files change or the disk lies about a sync; and disks that refuse
writes because they are full.

Law: what such a disk loses is named: as damage, as trouble of the query, or by the batches that are missing or lost.
Nothing is lost in silence, and nothing comes twice. Queries with nothing on that disk do not suffer.
"""

from __future__ import annotations

from functools import partial
from random import Random

from rove.model.ids import NodeId
from rove.sim.draws.faults import HEAL_US
from rove.sim.nodes import SimNode
from rove.sim.shelf import query_of
from rove.sim.world import World

SECOND_US = 1_000_000
DAMAGES = (0, 0, 0, 0, 0, 1, 2)
LIES = (0, 0, 0, 0, 0, 0, 0, 1)
FULL = (0, 0, 0, 1, 2)
FORGETS = (0, 0, 0, 0, 1, 2)
DOWN_US = 400_000


def plan_damage(world: World, random: Random) -> None:
    """Plan crashes after which some bytes of a log, an input log or a store on the disk are changed."""
    for _ in range(random.choice(DAMAGES)):
        name = random.choice(_durable(world))
        world.at(random.randint(4 * SECOND_US, HEAL_US - SECOND_US), partial(_damage, world, random, name))


def plan_lies(world: World, random: Random) -> None:
    """Plan disks that answer a sync without doing it, until the power goes."""
    for _ in range(random.choice(LIES)):
        name, begins = random.choice(_durable(world)), random.randint(SECOND_US, HEAL_US - 8 * SECOND_US)
        lasts_us = random.choice((500_000, 3_000_000, 6_000_000))
        world.at(begins, partial(_lie, world, name))
        world.at(begins + lasts_us, partial(_end_lie, world, name))


def plan_full(world: World, random: Random) -> None:
    """Plan disks that are full for a while, also for folders that are made while it is full. Nothing is lost."""
    for _ in range(random.choice(FULL)):
        shelf = world.nodes[random.choice(_durable(world))].shelf
        begins = random.randint(SECOND_US, HEAL_US - SECOND_US)
        if shelf is not None:
            world.at(begins, partial(shelf.fill, True))
            world.at(min(HEAL_US, begins + random.choice((500_000, 4_000_000))), partial(shelf.fill, False))


def plan_forgotten(world: World, random: Random) -> None:
    """Plan crashes after which a node's file of what it ran and whom it knew cannot be read. Nothing may be lost."""
    for _ in range(random.choice(FORGETS)):
        name = random.choice(_durable(world))
        world.at(random.randint(4 * SECOND_US, HEAL_US - SECOND_US), partial(_forget, world, name))


def _durable(world: World) -> list[NodeId]:
    return sorted(node.name for node in world.nodes.values() if node.shelf is not None)


def _damage(world: World, random: Random, name: NodeId) -> None:
    node = world.nodes[name]
    if node.worker is None or node.shelf is None:
        return
    node.shelf.spoilt = True
    _restart(world, node, power=random.random() < 0.5)
    if folders := sorted(folder for folder, disk in node.shelf.disks.items() if disk.sizes()):
        folder = random.choice(folders)
        if node.shelf.disks[folder].flip(random):
            world.hurt.add(query_of(folder))


def _lie(world: World, name: NodeId) -> None:
    node = world.nodes[name]
    if node.shelf is not None and not node.left:
        node.shelf.lies = node.shelf.spoilt = True


def _end_lie(world: World, name: NodeId) -> None:
    node = world.nodes[name]
    if node.shelf is None or node.left:
        return
    world.hurt |= node.shelf.queries()  # a later power cut may still lose what was not synced
    if node.worker is not None:
        _restart(world, node, power=True)
    node.shelf.lies = False


def _forget(world: World, name: NodeId) -> None:
    node = world.nodes[name]
    if node.worker is not None:
        _restart(world, node, power=False)
        node.kept = None


def _restart(world: World, node: SimNode, power: bool) -> None:
    world.kill(node.name, power)
    world.at(world.now + DOWN_US, partial(_start, world, node))


def _start(world: World, node: SimNode) -> None:
    if node.worker is None:
        world.start(node.name)

"""Runs one history from a seed: a random topology, queries, sources and faults, then healing, then the checks.

Law: safety is checked while faults happen, convergence after they are healed. A failing seed can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeAlias

from rove.control.asks import requests
from rove.data.settings import BacklogOrder, WorkerSettings
from rove.model.errors import BrokenInvariant
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Sink
from rove.sim.books import AckedIsSafe, WatermarksRestored, check_let_go, check_reports
from rove.sim.checkers import (
    BrokenLaw,
    MemoryBounded,
    MissingIsNowhere,
    NothingLost,
    OneOwner,
    WatermarksGrow,
    check_accounts,
    check_disks,
    check_sums,
)
from rove.sim.draws.asides import plan_asides
from rove.sim.draws.damage import plan_damage, plan_forgotten, plan_full, plan_lies
from rove.sim.draws.drains import plan_drains
from rove.sim.draws.faults import HEAL_US, plan_faults, plan_leaves, plan_moves, plan_relapses
from rove.sim.draws.forger import FORGER, check_believed, check_refused, plan_forger
from rove.sim.draws.forgeries import plan_forgeries
from rove.sim.draws.liar import plan_liar
from rove.sim.draws.surprises import (
    plan_checkpoints,
    plan_clocks,
    plan_files,
    plan_forgetful,
    plan_late_joins,
    plan_plenty,
    plan_twins,
)
from rove.sim.draws.updates import plan_updates
from rove.sim.nodes import SimSource
from rove.sim.queries import STREAMS, some_query
from rove.sim.rows import Compared, check_rows
from rove.sim.sizes import NODES
from rove.sim.world import World

SECOND_US = 1_000_000
PATIENCE_US = 900 * SECOND_US  # everything must have arrived this long after healing
BACKLOGS: tuple[BacklogOrder, ...] = ("beside", "first", "last")
DEGRADES = ((0, False), (0, False), (2, False), (0, True), (0, True))  # (thin to every n-th row, fold)
STOPS = 0.1  # the share of queries that are stopped
Draw: TypeAlias = Callable[[World, Random], None]
DRAWS: tuple[Draw, ...] = (
    plan_plenty,
    plan_forgetful,
    plan_clocks,
    plan_late_joins,
    plan_twins,
    plan_forger,
    plan_damage,
    plan_lies,
    plan_full,
    plan_forgotten,
    plan_files,
    plan_drains,
    plan_updates,
    plan_asides,
    plan_liar,
    plan_checkpoints,
)  # each has a random generator of its own
STRATEGIES = ("bottom_up", "bottom_up", "shortest_path", "cloud_only", "ilp")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a seed."""

    seed: int
    nodes: int
    queries: int
    steps: int
    rows: int  # rows in the results of the queries that were compared with one run in one place
    transcript: str
    trouble: str = ""
    uncompared: tuple[str, ...] = ()  # queries of which no row was compared, and why


def run_seed(seed: int, nodes_max: int = NODES, draws: Sequence[Draw] = DRAWS) -> Outcome:
    """Run a history. `trouble` of the outcome says what is wrong; empty if nothing is."""
    world = build(Random(seed), nodes_max, draws)
    found: dict[QueryId, Compared] = {}
    trouble = ""
    try:
        found = live(world)
    except (BrokenLaw, BrokenInvariant) as broken:
        trouble = f"at {world.now / SECOND_US:.3f} s: {broken}"
    return Outcome(
        seed,
        len(world.nodes),
        len(world.queries),
        world.steps,
        sum(each.rows for each in found.values()),
        world.transcript(),
        trouble,
        tuple(f"{query}: {each.why}" for query, each in found.items() if not each.rows),
    )


def build(random: Random, nodes_max: int, draws: Sequence[Draw] = DRAWS) -> World:
    """A tree of edges below a gateway, some with a second parent, and devices below, many with several parents."""
    world = World(Random(random.random()))
    acked = AckedIsSafe()
    world.watchers = [NothingLost(), WatermarksGrow(), MemoryBounded(), OneOwner(), acked, WatermarksRestored()]
    world.listeners = [acked]
    world.audits = [check_sums, MissingIsNowhere(), check_reports, check_believed]
    total = random.randint(3, max(3, nodes_max))
    edges = random.randint(0, max(0, min(20, total // 3)))
    gateway = NodeId("gateway")
    memory = random.choice((40_000, 400_000, 4_000_000))
    world.add_node(WorkerSettings(node=gateway, kind="gateway", address="sim", memory_bytes=memory), durable=True)
    relays = [gateway]
    for n in range(edges):
        parents = [random.choice(relays)]
        if len(relays) > 1 and random.random() < 0.2:
            parents = random.sample(relays, 2)
        settings = WorkerSettings(
            node=NodeId(f"edge{n}"),
            kind="edge",
            address="sim",
            parents=tuple(parents),
            slots=random.choice((0, 2, 8)),
            memory_bytes=memory,
        )
        world.add_node(settings, durable=random.random() < 0.5)
        relays.append(settings.node)
    for n in range(total - edges - 1):
        _device(world, random, n, relays, memory)
    _begin(world, random, relays)
    for draw in draws:
        draw(world, Random(f"{_apart(random).random()} {draw.__name__}"))
    return world


def _device(world: World, random: Random, n: int, relays: list[NodeId], memory: int) -> None:
    name = NodeId(f"device{n}")
    sources = tuple(
        SimSource(
            stream=stream,
            origin=Origin(stream, name),
            every_us=random.choice((100_000, 500_000, 2_000_000)),
            rows=random.choice((1, 5, 40)),
            left=random.randint(0, 25),
        )
        for stream in random.sample(STREAMS, random.choice((1, 1, 2)))
    )
    evict = random.choice(("block", "block", "block", "fifo", "query_aware", "priority"))
    settings = WorkerSettings(
        node=name,
        kind="device",
        parents=tuple(random.sample(relays, min(len(relays), random.choice((1, 1, 2, 3))))),
        slots=random.choice((0, 2, 8)),
        memory_bytes=random.choice((1_500, 6_000)) if evict != "block" else memory,
        evict=evict,
        backlog=random.choice(BACKLOGS),
        disk_bytes=random.choice((0, 0, 3_000, 300_000)),
    )
    durable = settings.disk_bytes > 0
    world.add_node(settings, durable, sources, skew_us=random.choice((0, -3_600 * SECOND_US, 5 * SECOND_US)))


def _begin(world: World, random: Random, relays: list[NodeId]) -> None:
    """Start processes, most at once and some devices later. Submit queries at the beginning and later."""
    world.start_coordinator()
    late = {name for name in world.nodes if name.startswith("device") and random.random() < 0.15}
    for name in world.nodes:
        begins = random.randint(0, SECOND_US) if name not in late else random.randint(3, 15) * SECOND_US
        world.at(begins, partial(world.start, name))
    durable = [name for name in relays if world.nodes[name].shelf is not None]
    for n in range(random.randint(1, 3)):
        sink = Sink(kind="log") if random.random() < 0.6 else Sink(kind="log", node=random.choice(durable))
        begins = random.choice((2 * SECOND_US, random.randint(2, 12) * SECOND_US))
        stages, strategy = some_query(random), random.choice(STRATEGIES)
        routes = (random.choice((1, 1, 2, 3)), random.random() < 0.5)
        patience = random.choice((requests.PATIENCE_US, requests.PATIENCE_US, 0))
        query, apart = QueryId(f"q{n}"), _apart(random)
        degrade = apart.choice(DEGRADES)
        world.at(begins, partial(world.submit, query, stages, sink, strategy, *routes, patience, *degrade))
        if apart.random() < STOPS:
            world.at(begins + apart.randint(1, 20) * SECOND_US, partial(world.stop, query))
    plan_faults(world, Random(random.random()))
    plan_moves(world, Random(random.random()))
    plan_leaves(world, Random(random.random()))
    plan_relapses(world, _apart(random))
    plan_forgeries(world, Random(_apart(random).random()))


def _apart(random: Random) -> Random:
    """A second random generator from the same seed. Draws from it do not change the other draws of a history."""
    copy = Random()
    copy.setstate(random.getstate())
    return Random(copy.random())


def live(world: World) -> dict[QueryId, Compared]:
    """Run to the end and check. Returns how many rows of which query were compared."""
    world.run(HEAL_US)
    world.run(HEAL_US + PATIENCE_US, lambda: settled(world))
    if not settled(world):
        raise BrokenLaw(
            f"after {PATIENCE_US // SECOND_US} s without faults something has still not arrived: {_unsettled(world)}"
        )
    world.run(world.now + (12 if world.forgot or world.hurt else 5) * SECOND_US)  # batches are missing after a while
    for node in world.nodes.values():
        if node.worker is not None:
            node.worker.validate()
    check_accounts(world)
    check_disks(world)
    check_refused(world)
    check_let_go(world)
    return {query: check_rows(world, query) for query in sorted(world.queries) if _accepted(world, query)}


def _accepted(world: World, query: QueryId) -> bool:
    """Whether a query was accepted. A query that cannot be placed is refused, which is a valid answer."""
    answer = world.answers.get(f"submit {query}")
    return answer is not None and not answer.trouble


def settled(world: World) -> bool:
    """Whether every source has ended and nothing is in flight."""
    return not _unsettled(world)


def _unsettled(world: World) -> str:
    machine = world.coordinator.machine
    if machine is None:
        return "the coordinator"
    for node in world.nodes.values():
        worker = node.worker
        if node.left:
            if not node.second and node.name in machine.membership.members:
                return f"{node.name} has left and is still a member"
            continue
        if worker is None:
            return f"{node.name} is down"
        member = machine.membership.members.get(node.name)
        if member is not None and member.start != worker.start:
            return f"{node.name} has reported start {member.start}, and runs start {worker.start}"
        if any(not source.ended for source in node.sources):
            return f"a source of {node.name}"
        # No query ends for a frame that its sender should not have sent.
        room = worker.room + sum(worker.parking.of(name) for name in (FORGER, *sorted(world.liars)))
        if not world.hurt and (worker.busy or room < node.settings.memory_bytes):
            return f"{node.name} holds {len(worker.store)} batches"
        if any(QueryId(entry.header.query) not in world.hurt for entry in worker.store):
            return f"{node.name} holds {len(worker.store)} batches"
        if any(True for q, r in worker.running().items() if q not in world.hurt for _ in r.pipeline.held()):
            return f"{node.name} holds batches that came too early"
    for query in (q for q in machine.queries.values() if not q.stopped and q.id not in world.hurt):
        for name, fragment in query.fragments.items():
            member = machine.membership.members.get(name)
            running = None if member is None else member.running.get(query.id)
            if running != fragment.version:
                return f"{name} runs version {running} of {query.id}"
    if world.asked - world.answers.keys():
        return "a submission, or a stop"
    return ""

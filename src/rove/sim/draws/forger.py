"""A member of the network that lies: a device with a valid connection, which sends forged and senseless messages.

Law: it has no rows of its own, so no row may be lost or changed by it. Nodes and the coordinator refuse its messages
and count them, and no process ends.
"""

from __future__ import annotations

from functools import partial
from random import Random

from msgspec.structs import replace

from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.model.batch import Header, HeaderKind
from rove.model.events import COORDINATOR
from rove.model.foreign.checks import SUM_MAX
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import (
    PROTOCOL,
    Ack,
    Beat,
    Data,
    Goodbye,
    Held,
    Hello,
    Message,
    Report,
    Resend,
    SourceHere,
    Tally,
    TroubleHere,
    Welcome,
)
from rove.sim.checkers import BrokenLaw
from rove.sim.draws.faults import HEAL_US
from rove.sim.queries import START_US, some_rows
from rove.sim.world import World

FORGER = NodeId("forger")
FORGED = (0, 0, 0, 0, 1, 2)  # bursts in a history
NUMBERS = (0, 1, 3, 40, 10**6, 2**61, 2**62, -1)
FRAMES = 12
NOTHING = "nothing"  # a stream that nobody has
SECOND_US = 1_000_000


def plan_forger(world: World, random: Random) -> None:
    """Plan a device that joins like any other, and then sends bursts of forged frames to one of its parents and to the
    coordinator."""
    bursts = random.choice(FORGED)
    if not bursts:
        return
    relays = sorted(node.name for node in world.nodes.values() if node.settings.kind != "device")
    parents = tuple(random.sample(relays, min(len(relays), 2)))
    world.add_node(WorkerSettings(node=FORGER, kind="device", parents=parents))
    world.at(0, partial(world.start, FORGER))
    for _ in range(bursts):
        world.at(random.randint(4 * SECOND_US, HEAL_US), partial(_burst, world, random, random.choice(parents)))


def _burst(world: World, random: Random, parent: NodeId) -> None:
    """A session of its own: a hello, frames numbered as they should be, and other messages in between."""
    wire = world.network.wires.get((FORGER, parent))
    if world.nodes[FORGER].worker is None or wire is None or wire.cut:
        return
    start = random.randint(10**6, 10**9)
    world.say(FORGER, parent, Hello(PROTOCOL, FORGER, start))
    for number in range(1, FRAMES + 1):
        header = _header(world, random)
        payload = _payload(random) if header.rows or random.random() < 0.2 else None
        world.say(FORGER, parent, Data(number, header), payload)
        if random.random() < 0.3:
            world.say(FORGER, parent, _message(random, start))
        if random.random() < 0.2:
            world.say(FORGER, COORDINATOR, _report(world, random))
    if world.nodes[parent].worker is not None:
        world.forged.add(parent)


def _header(world: World, random: Random) -> Header:
    """A batch of another node, or of none, with impossible numbers."""
    origins = [source.origin for node in world.nodes.values() for source in node.sources]
    makes = [origin for found in world.first.values() for origin in sorted(found)]
    strangers = [Origin("readings", "nobody"), Origin(NOTHING, FORGER), Origin("", "")]
    queries = [*sorted(world.queries), QueryId("unknown"), QueryId("../up")]
    seq = random.choice(NUMBERS)
    rows = random.choice((0, 0, 3, 2**61))
    return Header(
        origin=random.choice((*origins, *makes, *strangers)),
        seq=seq,
        through=seq if rows else max(seq, random.choice(NUMBERS)),
        watermark=random.choice((0, START_US, 2**62, -(2**62))),
        stage=random.choice((0, 0, 1, 2, 9, -1)),
        query=random.choice(queries),
        rows=rows,
        born=random.choice((rows, 2**61, 0)),
        evicted=random.choice((0, 0, 5, 2**61)),
        lost=random.choice((0, 0, 5, -7)),
        late=random.random() < 0.2,
        packed=random.choice((0, 0, 2**40)),
        folded=random.random() < 0.1,
        kind=random.choice((HeaderKind.BATCH, HeaderKind.BATCH, HeaderKind.BATCH, HeaderKind.GONE)),
    )


def _payload(random: Random) -> bytes:
    rows = bytes(encode_rows(some_rows(random, "forged", START_US, 3, 0)) or b"")
    part, frame = rows[: random.randrange(len(rows))], b"\xff\xff\xff\xff" + bytes(60)
    return random.choice((rows, part, random.randbytes(64), frame))


def _message(random: Random, start: int) -> Message:
    number = random.choice(NUMBERS)
    return random.choice(
        (
            Ack(number, number),
            Beat(number, number, number),
            Resend(number),
            Welcome(PROTOCOL, FORGER, start, start, number, number),
            Hello(PROTOCOL + 1, FORGER, start),
            Goodbye(NodeId("gateway")),
        )
    )


def _report(world: World, random: Random) -> Report:
    """A report with counts of other nodes, or a whole one with everything else that its node may not say. It has a
    number that no report has, so that its own are not mistaken."""
    queries = sorted(world.queries)
    strangers = [
        Tally(query=query, origin=source.origin, produced=random.choice(NUMBERS), delivered=10**6, held=(0, 2**61))
        for query in queries
        for node in world.nodes.values()
        for source in node.sources[:1]
    ]
    worker = world.nodes[FORGER].worker
    number = random.choice((-1, SUM_MAX + 1, 2**61))
    if worker is None or random.random() < 0.3:
        start = world.nodes[FORGER].start_number
        return Report(protocol=PROTOCOL, node=FORGER, start=start, number=10**6, whole=False, tallies=tuple(strangers))
    makes = [origin for found in world.first.values() for origin in sorted(found)]
    merging = [Tally(query=QueryId(origin.name), origin=origin, delivered=10**6) for origin in makes if not origin.node]
    own = [Tally(query=query, origin=Origin("readings", FORGER), produced=number) for query in queries]
    said = worker.report()
    facts = said.facts
    if facts is not None:
        columns = random.choice(("garbage ((", "x array<" * 500, "\x1b[2J int"))
        source = SourceHere(stream=NOTHING, origin=Origin(NOTHING, FORGER), columns=columns)
        facts = replace(facts, sources=(source,))
    return replace(
        said,
        facts=facts,
        number=10**6,
        tallies=(*merging, *own),
        troubles={query: (TroubleHere("\x1b[2Jit lies", True, True, "f", True),) for query in queries},
        unknown=tuple(QueryId(f"x{n}") for n in range(random.choice((3, 3_000)))),
        held=tuple(Held(QueryId(f"x{n}"), number, number) for n in range(3)),
        moved=tuple((query, Origin(query, FORGER, 1, 3)) for query in queries),
        refused={f"why{n}": number for n in range(300)},
    )


def check_believed(world: World) -> None:
    """The coordinator believes nothing of what the forger says of others, and names nobody else as a liar."""
    machine = world.coordinator.machine
    if machine is None:
        return
    members, troubled = machine.membership.members, machine.membership.troubled
    if NOTHING in machine.streams:
        raise BrokenLaw(f"the coordinator has accepted the columns {machine.streams[NOTHING]}")
    lies = [query for query in sorted(world.queries) for node, _, _ in troubled.of_query(query) if node == FORGER]
    if lies:
        raise BrokenLaw(f"the coordinator believes the forger that {lies} have trouble")
    if FORGER in members and members[FORGER].tallies:
        raise BrokenLaw(f"the coordinator believes {list(members[FORGER].tallies.values())[:3]}")
    if named := [node for node in machine.liars if node != FORGER and node not in world.liars]:
        raise BrokenLaw(f"{named[0]} is named, and has not lied: {machine.liars.of(named[0], world.now)}")


def check_refused(world: World) -> None:
    """A node to which frames were forged has refused some, unless it was started again since."""
    for name in sorted(world.forged):
        worker = world.nodes[name].worker
        if worker is not None and world.nodes[name].start_number == 1 and not sum(worker.refused.values()):
            raise BrokenLaw(f"{name} got forged frames and has refused none")

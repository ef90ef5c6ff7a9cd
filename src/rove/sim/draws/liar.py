"""A device that lies about itself: its frames have the name of its own sources and operators, so nobody may refuse
them for whose they are.

Law: no row of anybody else suffers from it, no process ends because of it, and its counts cannot be too large for a
message. Its batches have no rows that can be read. What is counted of its own rows means nothing.
"""

from __future__ import annotations

from functools import partial
from random import Random

from rove.data.settings import WorkerSettings
from rove.model.batch import Header
from rove.model.events import COORDINATOR
from rove.model.ids import SOURCE, NodeId, Origin, QueryId, Stage
from rove.model.messages import PROTOCOL, Ack, Beat, Data, Hello, Message, Report, Resend, Tally
from rove.sim.draws.faults import HEAL_US
from rove.sim.queries import START_US, STREAMS
from rove.sim.world import World

LIAR = NodeId("liar")
LIES = (0, 0, 0, 1, 2)  # bursts in a history
NUMBERS = (0, 1, 5, 2**31, 2**40, 2**61, 2**62 - 1, 2**63, -1)
COUNTS = (0, 0, 0, 0, 3, 2**31, 2**40, 2**62 - 1, -1)
FRAMES = 15
SECOND_US = 1_000_000


def plan_liar(world: World, random: Random) -> None:
    """Plan a device that joins like any other, and then sends bursts of lies to one of its parents."""
    bursts = random.choice(LIES)
    if not bursts:
        return
    relays = sorted(node.name for node in world.nodes.values() if node.settings.kind != "device")
    parents = tuple(random.sample(relays, min(len(relays), 2)))
    world.add_node(WorkerSettings(node=LIAR, kind="device", parents=parents))
    world.liars.add(LIAR)
    world.at(0, partial(world.start, LIAR))
    for _ in range(bursts):
        world.at(random.randint(4 * SECOND_US, HEAL_US), partial(_burst, world, random, random.choice(parents)))


def _burst(world: World, random: Random, parent: NodeId) -> None:
    """A session of its own: a hello, frames numbered as they should be, and other messages in between."""
    wire = world.network.wires.get((LIAR, parent))
    if world.nodes[LIAR].worker is None or wire is None or wire.cut:
        return
    start = random.randint(10**6, 10**9)
    world.say(LIAR, parent, Hello(PROTOCOL, LIAR, start, silent_us=random.choice((0, 0, 2**61))))
    number = 0
    for _ in range(FRAMES):
        header = _header(world, random)
        number += 1
        world.say(LIAR, parent, Data(number, header), _payload(random) if header.rows else None)
        if random.random() < 0.2:
            world.say(LIAR, parent, _message(random))
        if random.random() < 0.1:
            world.say(LIAR, COORDINATOR, _report(world, random))
        if random.random() < 0.5:  # what is refused is not taken, so its number is the next one still
            number -= 1


def _header(world: World, random: Random) -> Header:
    """A batch of its own, with whatever it likes in it."""
    query = random.choice(sorted(world.queries) or [QueryId("unknown")])
    stage = Stage(random.choice((0, 0, 1, 2, 3, 4, 9)))
    origin = Origin(random.choice(STREAMS), LIAR)
    if random.random() < 0.3:
        origin = Origin(query, LIAR, random.choice((0, 7)), stage)
    if random.random() < 0.3:
        origin = origin.on_side(random.choice((0, 1, 7)))
    seq = random.choice((0, 0, 1, 5, 2**61))
    rows = random.choice((0, 0, 0, 3))
    lies = random.random() < 0.5
    counts = [random.choice(COUNTS) if lies else random.choice((0, 0, 3)) for _ in range(5)]
    return Header(
        origin=origin,
        seq=seq,
        through=seq if rows else max(seq, random.choice((0, 1, 6, 2**61))),
        watermark=random.choice((0, START_US, 2**62, -(2**62))),
        stage=stage if origin.stage != SOURCE else Stage(random.choice((0, 1, 2))),
        query=query,
        epoch=random.choice((0, 0, 2**61)),
        rows=rows,
        born=counts[0],
        evicted=counts[1],
        lost=counts[2],
        faulted=counts[3],
        belated=counts[4],
        late=random.random() < 0.15,
        packed=random.choice((0, 0, 64, 2**20)) if rows else 0,
        folded=random.random() < 0.15,
        state=random.random() < 0.15,
    )


def _payload(random: Random) -> bytes:
    """Bytes that are no rows, packed or not."""
    return random.choice((random.randbytes(64), b"\xff\xff\xff\xff" + bytes(60), b"\x05\x00\x93\x02\xc0\x90\x00PAR1"))


def _message(random: Random) -> Message:
    number = random.choice(NUMBERS)
    return random.choice((Ack(number, number), Beat(number, number, number), Resend(number)))


def _report(world: World, random: Random) -> Report:
    """A report of its own rows with counts that cannot be."""
    query = random.choice(sorted(world.queries) or [QueryId("unknown")])
    tally = Tally(
        query=query, origin=Origin(random.choice(STREAMS), LIAR), produced=-7, delivered=random.choice(NUMBERS)
    )
    return Report(
        protocol=PROTOCOL,
        node=LIAR,
        start=world.nodes[LIAR].start_number,
        number=random.choice(NUMBERS),
        whole=False,
        tallies=(tally,),
    )

"""A member that forges: some frames of an edge node arrive as batches of a device that was never below it.

Law: the receiver takes none of them. If it is the next frame of its link, it is refused. That the rows of the device
all arrive is checked with everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Data, Refused
from rove.sim.checkers import BrokenLaw
from rove.sim.network import InFlight
from rove.sim.world import World

FORGERIES = (1, 3, 10)  # by a member that forges
FORGES = 0.4  # the share of histories in which one does, if there is an edge node
SHARE = 0.2  # of its frames
FOREVER = 2**61  # so many numbers of the device are used up


def plan_forgeries(world: World, random: Random) -> None:
    """Make one edge node a member that forges."""
    edges = sorted(node.name for node in world.nodes.values() if node.settings.kind == "edge")
    if edges and random.random() < FORGES:
        forger = MemberForger(random.choice(edges), random, random.choice(FORGERIES))
        world.forger = forger
        world.listeners.append(forger)


class MemberForger:
    """Forges frames that an edge node sends to its parents, so many in all."""

    def __init__(self, member: NodeId, random: Random, left: int) -> None:
        self._member, self._random, self._left = member, random, left
        self._forged: Data | None = None  # it is about to arrive
        self.made = self.refused = 0  # frames that it forged, and those that were refused for it

    def passed(self, world: World, flight: InFlight) -> InFlight:
        message = flight.message
        if not self._left or flight.wire.dialer != self._member or not isinstance(message, Data):
            return flight
        if flight.to != flight.wire.listener or self._random.random() > SHARE:
            return flight
        victims = self._victims(world)
        if not victims:
            return flight
        self._left -= 1
        self.made += 1
        header = Header(
            query=message.header.query,
            origin=self._random.choice(victims),
            seq=0,
            through=FOREVER,
            stage=message.header.stage,
        )
        self._forged = Data(message.number, header)
        return replace(flight, message=self._forged, payload=None)

    def _victims(self, world: World) -> list[Origin]:
        """The sources of devices that the coordinator has never put below the member."""
        machine = world.coordinator.machine
        if machine is None:
            return []
        sources = [source.origin for _, node in sorted(world.nodes.items()) for source in node.sources]
        return [origin for origin in sources if not machine.below.has(self._member, NodeId(origin.node))]

    def told(self, world: World, who: NodeId, event: object, commands: Sequence[object]) -> None:
        if self._forged is None or not isinstance(event, Arrived) or event.message is not self._forged:
            return
        forged, self._forged = self._forged, None
        answers = [c.message.why for c in commands if isinstance(c, Send) and isinstance(c.message, Refused)]
        self.refused += answers == ["identity"]
        worker = world.nodes[who].worker
        if worker is not None and _has(worker, forged.header):
            raise BrokenLaw(f"{who} took a batch of `{forged.header.origin}` that {self._member} has forged")


def _has(worker: Worker, forged: Header) -> bool:
    """Whether a node has taken a forged batch, wherever it keeps it."""
    query, origin = QueryId(forged.query), forged.origin
    kept = (*(entry.header for entry in worker.store), *worker.waiting())
    running = worker.running().get(query)
    taken = worker.took(query, origin, FOREVER) or (running is not None and running.pipeline.took(origin, FOREVER))
    return taken or any(header.origin == origin and header.through == FOREVER for header in kept)

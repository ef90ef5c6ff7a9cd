"""The network between simulated nodes: connections that delay, slow down and break.

Law: messages on a connection arrive in order or not at all. A cut loses messages in flight and messages sent while it
lasts; afterwards the listener sees a new connection. The network has a `Random` of its own, so that its draws do not
change other random choices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from rove.model.events import Conn, Payload
from rove.model.ids import NodeId
from rove.model.messages import Data, Message, encode

NAME_BYTES = 64


@dataclass(slots=True)
class Wire:
    """One connection from a dialer to a listener. The dialer knows it by the listener's name."""

    dialer: NodeId
    listener: NodeId
    delay_us: int
    jitter_us: int
    bytes_per_s: int
    generation: int = 0
    cut: bool = False
    free_us: dict[NodeId, int] = field(default_factory=dict)  # by sender, when its last byte is sent
    last_us: dict[NodeId, int] = field(default_factory=dict)  # by sender, when its last message arrives

    @property
    def conn(self) -> bytes:
        """The listener's name for this connection."""
        return f"{self.dialer}#{self.generation}".encode()


@dataclass(frozen=True, slots=True)
class InFlight:
    """A message that was sent and has not arrived."""

    wire: Wire
    generation: int
    to: NodeId
    conn: Conn
    message: Message
    payload: Payload | None


class Network:
    """All connections, by dialer and listener."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.wires: dict[tuple[NodeId, NodeId], Wire] = {}

    def dial(self, dialer: NodeId, listener: NodeId) -> Wire:
        """A new connection. It replaces an earlier one."""
        wire = self.wires.get((dialer, listener))
        if wire is None:
            wire = Wire(
                dialer,
                listener,
                delay_us=self._random.choice((200, 2_000, 20_000)),
                jitter_us=self._random.choice((0, 1_000, 30_000)),
                bytes_per_s=self._random.choice((20_000, 200_000, 10_000_000, 10_000_000)),
            )
            self.wires[(dialer, listener)] = wire
        wire.generation += 1
        return wire

    def send(
        self, sender: NodeId, wire: Wire, message: Message, payload: Payload | None, now: int
    ) -> tuple[int, InFlight] | None:
        """The message with its time of arrival; None if it never arrives."""
        if wire.cut:
            return None
        size = NAME_BYTES + (0 if payload is None else len(payload))
        if not isinstance(message, Data):
            size = len(encode(message))
        start = max(now, wire.free_us.get(sender, 0))
        wire.free_us[sender] = through = start + size * 1_000_000 // wire.bytes_per_s
        arrives = through + wire.delay_us + self._random.randint(0, wire.jitter_us)
        arrives = wire.last_us[sender] = max(arrives, wire.last_us.get(sender, 0))
        dials = sender == wire.dialer
        to, conn = (wire.listener, wire.conn) if dials else (wire.dialer, str(wire.listener))
        return arrives, InFlight(wire, wire.generation, to, conn, message, payload)

    def cut(self, wire: Wire) -> None:
        """Break a connection."""
        wire.cut = True
        wire.generation += 1

    def mend(self, wire: Wire) -> None:
        wire.cut = False
        wire.generation += 1
        wire.free_us, wire.last_us = {}, {}

"""The events that a shell gives to any machine, and the commands that any machine may return.

Law: a machine does nothing by itself: an event goes in, commands come out. Times are in microseconds. `now` never runs
backwards; `wall` is the wall clock, which may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rove.model.foreign.arrow_head import Payload as Payload
from rove.model.ids import NodeId
from rove.model.messages import Message, Peer

Conn: TypeAlias = str | bytes  # a shell's name for a connection; a machine only stores and compares it


def dialed(dialer: NodeId, number: int) -> bytes:
    """The name that a connection has at its listener, where one process has all nodes: the dialer's n-th."""
    return f"{dialer}#{number}".encode()


def dialer_of(conn: bytes) -> NodeId:
    """Who dialed a connection with a name of `dialed`."""
    return NodeId(conn.decode().rpartition("#")[0])


COORDINATOR = NodeId("coordinator")  # every node's connection to the coordinator has this name


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message arrived on a connection. `key` is the public key that its sender has proven, if keys are in use."""

    conn: Conn
    message: Message
    payload: Payload | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Garbled:
    """Bytes arrived that are not a message."""

    conn: Conn
    why: str
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed, and there is nothing more to read for now."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message over a connection."""

    conn: Conn
    message: Message
    payload: Payload | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Close a connection, because its peer is not allowed or is gone."""

    conn: Conn


@dataclass(frozen=True, slots=True)
class Allow:
    """Set the peers that may connect, by public key."""

    peers: tuple[Peer, ...]

"""What a shell tells any machine, and what any machine may ask of its shell.

Law: a machine is told everything and does nothing: an event goes in, commands come out. Times are microseconds; `now`
never runs backwards, `wall` is the clock on the wall and may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rove.model.ids import NodeId
from rove.model.messages import Message, Peer

Conn: TypeAlias = str | bytes  # how a shell knows a connection; a machine only keeps and compares it
Payload: TypeAlias = bytes | memoryview  # encoded rows

COORDINATOR = NodeId("coordinator")  # the name of the connection every node has to it


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message came in on a connection; `key` is the public key its sender has proven, if keys are in use."""

    conn: Conn
    message: Message
    payload: Payload | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Garbled:
    """Something came in that is not a message."""

    conn: Conn
    why: str
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed, and there is nothing more to read for now."""


@dataclass(frozen=True, slots=True)
class Send:
    """Say something to whoever is at the other end of a connection."""

    conn: Conn
    message: Message
    payload: Payload | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Close a connection: its peer may not be here, or is gone."""

    conn: Conn


@dataclass(frozen=True, slots=True)
class Allow:
    """Who may connect from now on, by public key."""

    peers: tuple[Peer, ...]

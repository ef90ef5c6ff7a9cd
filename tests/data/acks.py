"""Acks that are heard: a window on a node without a disk computes a batch after that."""

from __future__ import annotations

from rove.data.events import Command
from rove.data.worker import Worker
from rove.model.events import Arrived, Send, Tick
from rove.model.messages import Ack, Beat


def heard(worker: Worker, conn: bytes, now: int) -> list[Command]:
    """The worker acks what it can, and the peer says that it has heard it. Returns what comes of that."""
    said = [command.message for command in worker.handle(Tick(), now) if isinstance(command, Send)]
    commands: list[Command] = []
    for ack in (message for message in said if isinstance(message, Ack)):
        commands += worker.handle(Arrived(conn, Beat(ack.through, ack.through, ack.allowance)), now)
        commands += worker.handle(Tick(), now)
    return commands

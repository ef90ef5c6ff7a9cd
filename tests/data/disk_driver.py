"""A disk that does at once what a worker asks of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from rove.data.events import Command, DiskWork
from rove.data.worker import Worker
from rove.sim.shelf import SimShelf


def done_at_once(worker: Worker, shelf: SimShelf, commands: Iterable[Command], now: int) -> list[Command]:
    """Do the disk work among commands, and what comes of it; all other commands, in their order."""
    others, todo = [], deque(commands)
    while todo:
        command = todo.popleft()
        if isinstance(command, DiskWork):
            todo.extendleft(reversed(worker.handle(shelf.answer(command), now)))
        else:
            others.append(command)
    return others

"""The handling of one event: its time, the commands so far, and results that queries share.

Law: all parts of a node add commands to one list, in the order of their decisions. A decision stays, even if a later
batch of the same event is refused.
"""

from __future__ import annotations

from rove.data.events import Command
from rove.data.operators.shared_results import SharedResults


class Turn:
    """One event at a time. The worker begins it, and all parts of the node share it."""

    __slots__ = ("commands", "now", "shared")

    def __init__(self) -> None:
        self.now = 0
        self.commands: list[Command] = []
        self.shared = SharedResults()

    def begin(self, now: int) -> None:
        """Begin another event, without commands and results."""
        self.now, self.commands = now, []
        self.shared.begin()

"""The event that a node handles now: when it came, and what is to be done about it.

Law: all parts of a node add to one list, in the order in which they decide. What one part has decided stays decided,
even if a later batch of the same event cannot be taken.
"""

from __future__ import annotations

from rove.data.events import Command


class Turn:
    """One event at a time. Every part of a node knows it; the worker begins it."""

    __slots__ = ("commands", "now")

    def __init__(self) -> None:
        self.now = 0
        self.commands: list[Command] = []

    def begin(self, now: int) -> None:
        """Another event: nothing is to be done about it yet."""
        self.now, self.commands = now, []

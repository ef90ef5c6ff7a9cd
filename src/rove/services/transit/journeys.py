"""Trains on their way from cell to cell.

Law: a train hears one cell, or none. Where it hears none it is cut off from everyone.
"""

from __future__ import annotations

from typing import Protocol

from rove.model.events import COORDINATOR
from rove.services.transit.ring import Ring
from rove.services.transit.timetable import Timetable, place_at


class Net(Protocol):
    """What makes two nodes hear each other, or not."""

    def cut(self, a: str, b: str) -> None: ...
    def mend(self, a: str, b: str) -> None: ...


class Journeys:
    """Trains on their way around the ring: which cell each hears, if any. What it does not hear is cut off."""

    def __init__(self, net: Net, ring: Ring, calls: Timetable) -> None:
        self._net, self._ring, self._calls = net, ring, calls
        self.cells: dict[str, str | None] = {train: ring.nearest(stops[0].place) for train, stops in calls.items()}
        self.moves = self.gaps = 0
        for train, here in self.cells.items():
            for cell in ring.cells:
                if cell.name != here:
                    self._net.cut(train, cell.name)

    def go(self, progress: float) -> None:
        """Let all trains come so far, from 0 to 1."""
        for train, before in self.cells.items():
            here = self._ring.serving(place_at(self._calls[train], progress))
            if here != before:
                self._hear(train, here)

    def arrive(self) -> None:
        """At the end everyone hears a cell."""
        for train, here in self.cells.items():
            if here is None:
                self._hear(train, self._ring.nearest(self._calls[train][-1].place))

    def _hear(self, train: str, here: str | None) -> None:
        before, self.cells[train] = self.cells[train], here
        if before is not None:
            self._net.cut(train, before)
            self._net.cut(train, COORDINATOR)
        if here is not None:
            self._net.mend(train, here)
            self._net.mend(train, COORDINATOR)
        self.moves += here is not None
        self.gaps += here is None

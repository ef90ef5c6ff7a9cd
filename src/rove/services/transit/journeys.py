"""Moves trains from radio cell to radio cell.

Law: a train is connected to one cell, or to none. Without a cell it is cut off from all nodes.
"""

from __future__ import annotations

from typing import Protocol

from rove.model.events import COORDINATOR
from rove.services.transit.ring import Ring
from rove.services.transit.timetable import Timetable, place_at


class Net(Protocol):
    """Cuts and restores the connection between two nodes."""

    def cut(self, a: str, b: str) -> None: ...
    def mend(self, a: str, b: str) -> None: ...


class Journeys:
    """Which cell each train is connected to, if any. Its connections to all other cells are cut."""

    def __init__(self, net: Net, ring: Ring, calls: Timetable) -> None:
        self._net, self._ring, self._calls = net, ring, calls
        self.cells: dict[str, str | None] = {train: ring.nearest(stops[0].place) for train, stops in calls.items()}
        self.moves = self.gaps = 0
        for train, here in self.cells.items():
            for cell in ring.cells:
                if cell.name != here:
                    self._net.cut(train, cell.name)

    def go(self, progress: float) -> None:
        """Move all trains to this progress of their journeys, from 0 to 1."""
        for train, before in self.cells.items():
            here = self._ring.serving(place_at(self._calls[train], progress))
            if here != before:
                self._hear(train, here)

    def arrive(self) -> None:
        """Connect every train to a cell, at the end."""
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

"""As near the source as there is room.

Level by level over all sources, each operator goes to the lowest node that has a slot, on the routes of least latency.
Every source gets its first operator placed before any gets its second, so nodes that several share serve all alike.
"""

from __future__ import annotations

from rove.control.placement.board import Board
from rove.control.placement.placement import Load, Placement
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology


def bottom_up(request: Request, topology: Topology, load: Load) -> Placement:
    """O(stages × sources × height)."""
    board = Board(request, topology, load)
    for stage in board.order():
        board.place(stage)
    return board.placement()

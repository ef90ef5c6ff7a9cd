"""The bottom-up strategy: each operator as near to its source as there is room.

Level by level over all sources, each operator goes to the lowest node with a free slot, on the routes of least latency.
The first operator of every source is placed before the second of any source, so shared nodes serve all sources alike.
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

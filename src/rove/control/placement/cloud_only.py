"""Everything in the cloud: rows travel raw, and are worked on where they end.

With a sink in the cloud, all that can run in Spark does; what only workers can do runs on the gateway, with what it
reads. With a sink on a node, that node does it all. A hint still wins: the operator it names, and what that reads, is
placed bottom up.
"""

from __future__ import annotations

from rove.control.placement.board import Board
from rove.control.placement.placement import Load, Placement
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology


def cloud_only(request: Request, topology: Topology, load: Load) -> Placement:
    """O(stages × sources)."""
    board = Board(request, topology, load)
    for stage in board.order():
        if not request.stages.inputs[stage] or board.held(stage) or board.goes_to_spark(stage):
            board.place(stage)
        elif board.demands[stage].worker:
            board.put_at_root(stage)
        else:
            board.put_in_spark(stage, "because the strategy is cloud_only")
    return board.placement()

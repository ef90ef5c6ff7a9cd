"""The cloud-only strategy: rows travel unprocessed, and all operators run where the rows end.

With a sink in the cloud, everything that can run in Spark does. Operators that only workers can run are put on the
gateway, with their inputs. With a sink on a node, that node runs everything. A hint still wins: the hinted operator and
its inputs are placed bottom up.
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

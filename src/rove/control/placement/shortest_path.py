"""The shortest-path strategy of NebulaStream-MSS (section 2): push down as far as possible, source by source.

It differs from `bottom_up` in two ways. It takes the route of fewest hops, as in the paper, not of least latency. And
it places the sources one after another: on the path of each source it goes upwards and gives operators to a node while
the node has slots. So the first source may fill a shared node before the next source is placed. Both allow the sink on
any node.
"""

from __future__ import annotations

from collections.abc import Sequence

from rove.control.placement.board import Board
from rove.control.placement.placement import Load, Placement
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, Stage


def shortest_path(request: Request, topology: Topology, load: Load) -> Placement:
    """O(sources × stages × height)."""
    board = Board(request, topology, load, by="hops")
    held = [stage for stage in board.order() if board.held(stage)]
    for stages in (held, board.order()):  # stages that hints keep down take their slots first
        for stage in stages:
            chained = len(request.stages.inputs[stage]) == 1 and not request.merging(stage)
            if chained and not board.goes_to_spark(stage):
                continue  # already pushed down, from the beginning of its chain
            board.place(stage)
            for node in tuple(board.hosts[stage]):
                _push_down(board, stages, stage, node)
    return board.placement()


def _push_down(board: Board, stages: Sequence[Stage], start: Stage, node: NodeId) -> None:
    """Push down the chains above one host, up to where streams meet. Calling it again changes nothing."""
    reached = {start: node}
    for stage in stages:
        inputs = board.request.stages.inputs[stage]
        if len(inputs) != 1 or inputs[0] not in reached or board.request.merging(stage) or board.goes_to_spark(stage):
            continue
        reached[stage] = board.lift(stage, reached[inputs[0]])

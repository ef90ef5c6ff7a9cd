"""The ILP strategy: the cheapest placement, by integer programming.

It minimises bytes × hops, with a link's latency counted in hops, within the slots and memory of nodes and the bandwidth
of links. The route of a batch does not depend on the placement, so the latency of the route does not either. A
placement decides how many bytes travel each part of the route.

A lane is the output of one host: a source's node, or a merging operator at the lowest node it may be on. Each operator
has one binary variable for each lane and node of the lane's route, and one for Spark. "Done by node p" is the sum of an
operator's binaries up to p. All constraints use it:

    order        an operator's "done by p" ≤ its input's "done by p"
    one place    a host applies the operator to every lane that passes it, if the inputs are done by then
    carried      from p to the next node: "done by p" minus "done by p" of the last reader
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rove.control.placement.board import Board
from rove.control.placement.estimate import ROWS_PER_S, keeps, link_weight, memory_bytes, row_bytes
from rove.control.placement.linear import NODES_MAX, Model, Terms
from rove.control.placement.placement import Load, Placement, costs_a_slot
from rove.control.placement.request import Request
from rove.control.topology.topology import Topology
from rove.model.errors import TopologyError
from rove.model.ids import NodeId, Stage

VARIABLES_MAX = 20_000
LOWER_IS_BETTER = 1e-4  # the cost of a step up, so that of equal placements the one nearest to the sources wins

Lane = tuple[Stage, NodeId]


def ilp(request: Request, topology: Topology, load: Load) -> Placement:
    """Exponential in the worst case, but bounded by `VARIABLES_MAX` and `linear.NODES_MAX`."""
    board = Board(request, topology, load)
    program = _Program(board)
    program.build()
    values = program.model.solve()
    if values is None:
        raise TopologyError(
            f"no placement of query `{request.query}` fits the slots, memory and bandwidth on its routes, or none was "
            f"found within {NODES_MAX} steps; free some, drop a hint, or use the strategy bottom_up"
        )
    for stage in board.hosts:
        if stage in program.in_spark and values[program.in_spark[stage]] > 0.5:
            board.put_in_spark(stage, "because that moves the fewest bytes")
            continue
        for lane in program.lanes[stage]:
            for node, x in program.at[(stage, lane)].items():
                if values[x] > 0.5:
                    hint = board.demands[stage].hint
                    board.put(stage, node, f"wanted at `{hint}`" if hint else "where it moves the fewest bytes")
    return board.placement()


@dataclass(slots=True)
class _Program:
    """The variables of one query: `at` by operator, lane and node; `in_spark` by operator; `host` for all lanes."""

    board: Board
    model: Model = field(default_factory=Model)
    lanes: dict[Stage, list[Lane]] = field(default_factory=dict)
    rates: dict[tuple[Stage, Lane], float] = field(default_factory=dict)
    at: dict[tuple[Stage, Lane], dict[NodeId, int]] = field(default_factory=dict)
    in_spark: dict[Stage, int] = field(default_factory=dict)
    host: dict[tuple[Stage, NodeId], int] = field(default_factory=dict)

    def build(self) -> None:
        for stage in self.board.hosts:
            self._open_lanes(stage)
            self._variables(stage)
            self._order(stage)
            self._one_place(stage)
        self._room()
        self._carried()

    def _inputs(self, stage: Stage) -> list[Stage]:
        return list(dict.fromkeys(self.board.request.stages.inputs[stage]))

    def _open_lanes(self, stage: Stage) -> None:
        board, request = self.board, self.board.request
        kept = keeps(board.operators[stage])
        if not request.stages.inputs[stage]:
            self.lanes[stage] = [(stage, node) for node in request.nodes_of(stage)]
            producers = request.producers(stage)
            for lane in self.lanes[stage]:
                self.rates[(stage, lane)] = ROWS_PER_S * producers[lane[1]]
            return
        below = [(i, lane) for i in self._inputs(stage) for lane in self.lanes[i]]
        if request.merging(stage):
            merged = (stage, board.meeting(stage, dict.fromkeys(start for _, (_, start) in below)))
            self.lanes[stage] = [merged]
            self.rates[(stage, merged)] = kept * sum(self.rates[each] for each in below)
            return
        self.lanes[stage] = list(dict.fromkeys(lane for _, lane in below))
        for lane in self.lanes[stage]:
            self.rates[(stage, lane)] = kept * sum(self.rates[each] for each in below if each[1] == lane)

    def _variables(self, stage: Stage) -> None:
        """Each lane has one place: an allowed node, or Spark."""
        board, demand = self.board, self.board.demands[stage]
        lanes = self.lanes[stage]
        if board.request.sink is None and not demand.worker:
            heights = sum(len(list(board.route(start))) for _, start in lanes)
            self.in_spark[stage] = self.model.binary(cost=LOWER_IS_BETTER * heights, at_least=int(demand.spark))
        for lane in lanes:
            found: dict[NodeId, int] = {}
            self.at[(stage, lane)] = found
            if not demand.spark:
                self._nodes_of_lane(stage, lane, found)
            choice: Terms = [(x, 1.0) for x in found.values()]
            self.model.row(1.0, [*choice, *self._spark_term(stage)], 1.0)
        if len(self.model) > VARIABLES_MAX:
            raise TopologyError(
                f"query `{board.request.query}` with {len(lanes)} lanes is too large for the ilp strategy, which takes "
                f"{VARIABLES_MAX} variables; use bottom_up"
            )

    def _nodes_of_lane(self, stage: Stage, lane: Lane, found: dict[NodeId, int]) -> None:
        board, (_, start) = self.board, lane
        is_source = not board.request.stages.inputs[stage]
        nodes = [start] if is_source else board.allowed(stage, start)
        for height, node in enumerate(board.route(start)):
            if node not in nodes or (board.request.merging(stage) and board.prefers_spark(stage, node)):
                continue
            found[node] = x = self.model.binary(cost=LOWER_IS_BETTER * height)
            if (stage, node) not in self.host:
                self.host[(stage, node)] = self.model.binary()
            self.model.row(0.0, [(self.host[(stage, node)], 1.0), (x, -1.0)], None)

    def _spark_term(self, stage: Stage) -> Terms:
        return [(self.in_spark[stage], 1.0)] if stage in self.in_spark else []

    def _done(self, stage: Stage, lane: Lane, node: NodeId, sign: float = 1.0) -> Terms:
        """Whether an operator has been applied to a lane when its batches leave a node."""
        found: Terms = []
        for each in self.board.route(lane[1]):
            if each in self.at[(stage, lane)]:
                found.append((self.at[(stage, lane)][each], sign))
            if each == node:
                return found
        return []  # the node is below the lane's beginning

    def _order(self, stage: Stage) -> None:
        for i in self._inputs(stage):
            if i in self.in_spark and stage in self.in_spark:  # else the demand on both is the same
                self.model.row(0.0, [(self.in_spark[stage], 1.0), (self.in_spark[i], -1.0)], None)
            for lane in self.lanes[i]:
                upper = self._lane_above(stage, lane)
                for node in self.board.route(upper[1]):
                    terms = [*self._done(i, lane, node), *self._done(stage, upper, node, -1.0)]
                    self.model.row(0.0, terms, None)

    def _one_place(self, stage: Stage) -> None:
        for i in self._inputs(stage):
            for lane in self.lanes[i]:
                if self.board.request.merging(stage):
                    continue
                for node in self.board.route(lane[1]):
                    if (stage, node) in self.host:
                        done = [*self._done(stage, lane, node), *self._done(i, lane, node, -1.0)]
                        self.model.row(-1.0, [*done, (self.host[(stage, node)], -1.0)], None)

    def _lane_above(self, stage: Stage, lane: Lane) -> Lane:
        """The lane of a reader that takes an input's lane."""
        return self.lanes[stage][0] if self.board.request.merging(stage) else lane

    def _room(self) -> None:
        board = self.board
        for node in board.routes:
            here = [s for s in board.hosts if (s, node) in self.host and costs_a_slot(board.operators[s])]
            if node == board.request.gateway or not here:
                continue
            at = board.topology.node(node)
            self.model.row(None, [(self.host[(s, node)], 1.0) for s in here], board.load.free_slots(at))
            memory = [(self.host[(s, node)], float(memory_bytes(board.operators[s]))) for s in here]
            self.model.row(None, memory, board.load.free_memory_bytes(at))

    def _carried(self) -> None:
        board, stages = self.board, self.board.request.stages
        outputs = {stage for _, stage in stages.outputs}
        on_link: dict[NodeId, Terms] = {}
        for stage in board.hosts:
            width = row_bytes(board.operators[stage].schema)
            for lane in self.lanes[stage]:
                bytes_per_s = self.rates[(stage, lane)] * width
                for node in board.route(lane[1]):
                    weight = link_weight(board.topology, node, board.routes[node])
                    carried = self.model.continuous(cost=bytes_per_s * weight)
                    on_link.setdefault(node, []).append((carried, bytes_per_s))
                    here: Terms = [(carried, 1.0), *self._done(stage, lane, node, -1.0)]
                    for reader in stages.readers[stage]:
                        self.model.row(0.0, [*here, *self._done(reader, self._lane_above(reader, lane), node)], None)
                    if stage in outputs:
                        self.model.row(0.0, here, None)
        for node, terms in on_link.items():
            upper = board.routes[node]
            if upper is not None:
                self.model.row(None, terms, board.topology.link(node, upper).bytes_per_s)

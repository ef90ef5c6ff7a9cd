"""The board holds a placement while a strategy makes it, and enforces the rules that all strategies obey.

Law: an operator is put at or above its inputs, on their route, where its demand allows it and where there is room. The
gateway always has room. An operator that takes batches in order is put where no source can bypass it: on the source's
own node, or on a node that all its routes pass. So when a device moves, the operator moves along with it or stays on
the new route too. If rows take several ways through a plan, such an operator is put where all routes end, because a
node above could not tell which way they took. A strategy chooses the order; the board refuses what breaks a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rove.control.placement.demands import TIERS, demands, short
from rove.control.placement.estimate import memory_bytes
from rove.control.placement.placement import Load, Placement, costs_a_slot
from rove.control.placement.request import Request
from rove.control.topology.topology import By, Topology
from rove.model.errors import TopologyError
from rove.model.ids import NodeId, Stage
from rove.plan.operators import Aggregate, Received, Source
from rove.plan.stages import ordered


class Board:
    """A placement that is being made."""

    def __init__(self, request: Request, topology: Topology, load: Load, by: By = "latency") -> None:
        self.request, self.topology, self.load = request, topology, load
        self.operators = request.stages.operators
        self.demands = demands(request)
        self.feeding = request.feeding()
        for hint in request.hints.values():
            if hint not in TIERS:
                topology.node(NodeId(hint))
        starts = dict.fromkeys(node for stage in request.stages.sources() for node in request.nodes_of(stage))
        self.routes = topology.routes(starts, request.root, by)
        self.hosts: dict[Stage, dict[NodeId, None]] = {Stage(n): {} for n in range(len(self.operators))}
        self.spark: set[Stage] = set()
        self.why: dict[Stage, str] = {}
        self._held = _held(request)
        self._on_forks = _on_forks(request)
        self._passable: frozenset[NodeId] | None = None
        self._slots: dict[NodeId, int] = {}
        self._memory: dict[NodeId, int] = {}

    # Questions of a strategy

    def order(self) -> list[Stage]:
        """Stages from the sources upwards, level by level. In a level, stages that a hint keeps down come first."""
        level: dict[Stage, int] = {}
        for stage in self.hosts:
            level[stage] = 1 + max((level[i] for i in self.request.stages.inputs[stage]), default=-1)
        return sorted(self.hosts, key=lambda stage: (not self.held(stage), level[stage], stage))

    def held(self, stage: Stage) -> bool:
        """Whether a hint keeps a stage on workers: its own hint, or that of an operator that reads it."""
        return stage in self._held

    def route(self, start: NodeId) -> Iterator[NodeId]:
        """The nodes from a start to the root."""
        at: NodeId | None = start
        while at is not None:
            yield at
            at = self.routes[at]

    def meeting(self, stage: Stage, starts: Iterable[NodeId]) -> NodeId:
        """The lowest node that all routes to a merging operator share; the root if there are no starts. Without a hint
        it is never a device, because a source that joins later could not send its rows to a device."""
        shared: list[NodeId] | None = None
        for start in starts:
            here = list(self.route(start))
            shared = here if shared is None else [node for node in shared if node in set(here)]
        if self.demands[stage].hint in (None, "edge"):
            shared = [node for node in shared or () if self.topology.node(node).relays]
            shared = [node for node in shared if node not in self.passable] or shared
        return shared[0] if shared else self.request.root

    def below(self, stage: Stage) -> tuple[NodeId, ...]:
        """The hosts of an operator's inputs, each once."""
        return tuple(dict.fromkeys(h for i in self.request.stages.inputs[stage] for h in self.hosts[i]))

    def goes_to_spark(self, stage: Stage) -> bool:
        """Whether a stage must run in Spark, or may run there and reads a stage that does."""
        return self.demands[stage].spark or any(i in self.spark for i in self.request.stages.inputs[stage])

    def allowed(self, stage: Stage, start: NodeId) -> list[NodeId]:
        """The nodes from `start` upwards that an operator's hint allows, and that have its function. If there are none,
        the error says why."""
        wanted, lacks = self._wanted(stage, start), self.request.lacks
        found = wanted if lacks is None else [node for node in wanted if not lacks(stage, node)]
        if wanted and not found:
            raise TopologyError(
                f"{_some(wanted)} cannot load the function of `{short(self.operators[stage])}`; install the module "
                "that defines it there and start the node again, or let another node run it with .at(…)"
            )
        return found

    def _wanted(self, stage: Stage, start: NodeId) -> list[NodeId]:
        """The nodes from `start` upwards that an operator's hint allows."""
        route, hint, op = list(self.route(start)), self.demands[stage].hint, self.operators[stage]
        if hint is None and stage in self._on_forks:
            return route[-1:]
        if hint is None:
            return [node for node in route if node not in self.passable] if ordered(op) else route
        if hint == "device":
            own = self.feeding[stage]
            if start in own and (len(own) == 1 or not self.request.merging(stage)):
                return [start]
            raise TopologyError(
                f"`{short(op)}` is wanted on the device, but {self._reads(stage, start)}; "
                f"its rows come from {_some(own)}. Ask for an edge, or move its inputs"
            )
        if hint == "edge":
            edges = [node for node in route if self.topology.node(node).kind == "edge"]
            if edges:
                sure = [node for node in edges if node not in self.passable] if ordered(op) else edges
                return sure or edges
            raise TopologyError(
                f"`{short(op)}` is wanted on an edge, but {self._reads(stage, start)}, and from there to `{route[-1]}` "
                "there is no edge node"
            )
        if hint in route:
            return [NodeId(hint)]
        raise TopologyError(
            f"`{short(op)}` is wanted on `{hint}`, but {self._reads(stage, start)}, and the route from there to "
            f"`{route[-1]}` does not pass `{hint}`: {' ─► '.join(route)}"
        )

    @property
    def passable(self) -> frozenset[NodeId]:
        """The nodes that some source below could bypass on another route. O(sources × height), once."""
        if self._passable is None:
            starts = dict.fromkeys(n for stage in self.request.stages.sources() for n in self.request.nodes_of(stage))
            certain = {start: self.topology.certain(start, self.request.root) for start in starts}
            self._passable = frozenset(n for start in starts for n in self.route(start) if n not in certain[start])
        return self._passable

    def fits(self, stage: Stage, node: NodeId) -> bool:
        """Whether a node has room for an operator, or already runs it. A node that is being drained, or counts as dead,
        has none."""
        op = self.operators[stage]
        if node == self.request.gateway or self._is_at(stage, node):
            return True
        avoided = self.topology.is_drained(node) or self.topology.is_dead(node)
        if avoided and not isinstance(op, Source | Received):
            return False
        if not costs_a_slot(op):
            return True
        at = self.topology.node(node)
        slots = self.load.free_slots(at) - self._slots.get(node, 0)
        memory = self.load.free_memory_bytes(at) - self._memory.get(node, 0)
        return slots > 0 and memory >= memory_bytes(op)

    # Actions of a strategy

    def put(self, stage: Stage, node: NodeId, why: str) -> None:
        op = self.operators[stage]
        if not self._is_at(stage, node) and costs_a_slot(op):
            self._slots[node] = self._slots.get(node, 0) + 1
            self._memory[node] = self._memory.get(node, 0) + memory_bytes(op)
        self.hosts[stage][node] = None
        self.why.setdefault(stage, why)

    def _is_at(self, stage: Stage, node: NodeId) -> bool:
        running = self.request.running
        return node in self.hosts[stage] or (running is not None and running(stage, node))

    def put_in_spark(self, stage: Stage, why: str = "") -> None:
        reads = next((i for i in self.request.stages.inputs[stage] if i in self.spark), None)
        above = f"because it reads `{short(self.operators[reads])}`, which runs in Spark" if reads is not None else ""
        self.spark.add(stage)
        self.why[stage] = self.demands[stage].why or why or above

    def put_at_root(self, stage: Stage) -> None:
        """Put an operator where all routes end."""
        root = self.request.root
        if not self.fits(stage, root):
            raise self._no_room(stage, [root])
        self.put(stage, root, self.demands[stage].why)

    def place(self, stage: Stage) -> None:
        """Put an operator as low as possible, for each of its inputs."""
        if self.goes_to_spark(stage):
            self.put_in_spark(stage)
        elif isinstance(self.operators[stage], Source | Received):
            for node in self.request.nodes_of(stage):
                self.put(stage, node, "where its rows are made")
        elif self.request.merging(stage):
            self.settle(stage)
        else:
            for start in self.below(stage):
                self.lift(stage, start)

    def lift(self, stage: Stage, start: NodeId) -> NodeId:
        """Put an operator on the lowest node with room for batches that come from `start`."""
        allowed = self.allowed(stage, start)
        node = next((n for n in allowed if self.fits(stage, n)), None)
        if node is None:
            raise self._no_room(stage, allowed)
        self.put(stage, node, self._reason(stage, allowed, node))
        return node

    def settle(self, stage: Stage) -> None:
        """Put a merging operator where the routes of its inputs meet, or above; in Spark, if that is the gateway."""
        meeting = self.meeting(stage, self.below(stage))
        allowed = self.allowed(stage, meeting)
        node = next((n for n in allowed if self.fits(stage, n)), None)
        if node is None:
            raise self._no_room(stage, allowed)
        if self.prefers_spark(stage, node):
            meets = f"because the routes of what it reads meet at the gateway `{node}`"
            self.put_in_spark(stage, meets if node == meeting else f"because no node below `{node}` has room for it")
            return
        where = f"the routes of what it reads meet at `{meeting}`"
        pushed = f", and `{node}` is the first from there with room" if node != meeting else ""
        self.put(stage, node, f"{self._hinted(stage)}{where}{pushed}")

    def prefers_spark(self, stage: Stage, node: NodeId) -> bool:
        """Whether a merging operator should run in Spark instead of on this node. The gateway runs only what Spark
        cannot."""
        return self.request.sink is None and node == self.request.gateway and not self.demands[stage].worker

    def placement(self) -> Placement:
        """The finished placement, checked against hints that name several nodes."""
        for stage, hint in self.request.hints.items():
            missing = [n for n in self.feeding[stage] if n not in self.hosts[stage]]
            if hint == "device" and missing:
                raise TopologyError(
                    f"`{short(self.operators[stage])}` is wanted on the device, but there is no room for it on "
                    f"`{missing[0]}`; free a slot, or ask for an edge"
                )
        return Placement(
            hosts={stage: tuple(hosts) for stage, hosts in self.hosts.items() if stage not in self.spark},
            spark=frozenset(self.spark),
            routes=self.routes,
            why={stage: self.why.get(stage, "nothing feeds it yet") + self._half(stage) for stage in self.hosts},
            slots=self._slots,
            memory_bytes=self._memory,
        )

    # Sentences

    def _hinted(self, stage: Stage) -> str:
        return f"wanted at `{hint}`; " if (hint := self.demands[stage].hint) else ""

    def _half(self, stage: Stage) -> str:
        """For the final half of an aggregate without a hint of its own: which hint its partial half has taken."""
        op, inputs = self.operators[stage], self.request.stages.inputs[stage]
        hint = self.demands[inputs[0]].hint if isinstance(op, Aggregate) and op.mode == "final" else None
        return f"; `{hint}` is for its partial half" if hint and self.demands[stage].hint is None else ""

    def _reads(self, stage: Stage, start: NodeId) -> str:
        inputs = [short(self.operators[i]) for i in self.request.stages.inputs[stage]]
        starts = self.below(stage) or self.feeding[stage]
        if self.request.merging(stage) and len(starts) > 1:
            return f"the routes of what it reads ({_some(starts)}) meet at `{start}`"
        return f"what it reads (`{inputs[0] if inputs else 'nothing'}`) comes from `{start}`"

    def _reason(self, stage: Stage, allowed: list[NodeId], node: NodeId) -> str:
        if hint := self.demands[stage].hint:
            return f"wanted at `{hint}`"
        if stage in self._on_forks:
            return "where all routes end, since what it reads goes other ways as well"
        if node == allowed[0]:
            return "next to what it reads"
        return f"no room for it on {_some(allowed[: allowed.index(node)])}"

    def _no_room(self, stage: Stage, allowed: list[NodeId]) -> TopologyError:
        return TopologyError(
            f"no room for `{short(self.operators[stage])}` of query `{self.request.query}` on {_some(allowed)}; "
            "stop another query, give a node more slots or memory, or choose another sink or hint"
        )


def _held(request: Request) -> frozenset[Stage]:
    """The stages that a hint keeps on workers, with all their inputs."""
    held: set[Stage] = set()
    for n in reversed(range(len(request.stages.operators))):
        if request.hints.get(Stage(n), "cloud") != "cloud" or any(r in held for r in request.stages.readers[n]):
            held.add(Stage(n))
    return frozenset(held)


def _on_forks(request: Request) -> frozenset[Stage]:
    """The stages that take batches in order on one of several ways through the plan."""
    stages, outputs = request.stages, {stage for _, stage in request.stages.outputs}
    ends: dict[Stage, set[Stage]] = {}  # for each stage, where its rows end or are taken in order
    for n in reversed(range(len(stages.operators))):
        ends[Stage(n)] = {Stage(n)} if n in outputs else set()
        for reader in stages.readers[n]:
            ends[Stage(n)] |= {reader} if ordered(stages.operators[reader]) else ends[reader]
    found = {end for several in ends.values() if len(several) > 1 for end in several}
    return frozenset(end for end in found if ordered(stages.operators[end]))


def _some(nodes: Iterable[NodeId]) -> str:
    """Nodes for a sentence. Of many, the first three."""
    names = [f"`{n}`" for n in nodes]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "nobody"

"""Checks the rules that every placement must keep, independently of the code that makes placements."""

from __future__ import annotations

from rove.control.placement import Load, Placement, Request
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, Stage
from rove.plan.operators import Aggregate, CountWindow, Join, Scan, Source, Union, Watermark
from rove.plan.sites import site


def path(placement: Placement, start: NodeId) -> list[NodeId]:
    found = [start]
    while (upper := placement.routes[found[-1]]) is not None:
        found.append(upper)
        assert len(found) <= len(placement.routes), "a route runs in a circle"
    return found


def merging(operator: object) -> bool:
    return isinstance(operator, Join | Scan | CountWindow) or (
        isinstance(operator, Aggregate) and operator.mode != "partial"
    )


def check(request: Request, placement: Placement, topology: Topology, load: Load | None = None) -> None:
    """Raise if a placement breaks a rule."""
    operators = request.stages.operators
    assert set(placement.hosts) | placement.spark == {Stage(n) for n in range(len(operators))}
    assert not set(placement.hosts) & placement.spark
    check_routes(request, placement, topology)
    for n, op in enumerate(operators):
        stage = Stage(n)
        check_spark(request, placement, stage)
        if stage in placement.spark:
            continue
        hosts = placement.hosts[stage]
        assert site(op).edge
        assert len(set(hosts)) == len(hosts)
        below = [h for i in request.stages.inputs[stage] for h in placement.hosts[i]]
        if isinstance(op, Source):
            assert set(hosts) == {s.node for s in request.sources[stage]}
        elif merging(op):
            assert len(hosts) == 1
            assert all(hosts[0] in path(placement, h) for h in below)
        else:
            for host in below:
                assert set(hosts) & set(path(placement, host)), "rows that never meet the operator"
            for host in hosts:
                assert any(host in path(placement, h) for h in below), "an operator that no row meets"
    check_room(request, placement, topology, load or Load())
    check_hints(request, placement, topology)


def check_sure(request: Request, placement: Placement, topology: Topology) -> None:
    """No source can pass by what takes its batches in order, unless it was wanted there."""
    for n, op in enumerate(request.stages.operators):
        if not isinstance(op, Watermark | Aggregate | Join | Scan | CountWindow) or Stage(n) in request.hints:
            continue
        for node in request.feeding()[n]:
            host = placement.host(Stage(n), node)
            if host not in (None, node, request.root):
                assert request.root not in reached(topology, node, without=host), f"{node} can pass by {host}"


def reached(topology: Topology, start: NodeId, without: NodeId) -> set[NodeId]:
    """All nodes that rows from one can come to over relays, if another is not there."""
    found, ways = {start}, [start]
    while ways:
        at = ways.pop()
        if at == start or topology.node(at).relays:
            new = {node for node in topology.neighbours(at) if node != without} - found
            found |= new
            ways += new
    return found


def check_routes(request: Request, placement: Placement, topology: Topology) -> None:
    ends = {request.root, *(s.node for sources in request.sources.values() for s in sources)}
    assert [node for node, upper in placement.routes.items() if upper is None] == [request.root]
    passed = set()
    for node, upper in placement.routes.items():
        path(placement, node)
        if upper is not None:
            assert upper in topology.neighbours(node)
            passed.add(upper)
    for node in placement.routes:
        assert topology.node(node).kind != "device" or node in ends
        assert topology.node(node).kind != "device" or node not in passed or node == request.root, "a device relays"


def check_spark(request: Request, placement: Placement, stage: Stage) -> None:
    if stage in placement.spark:
        assert request.sink is None
        assert site(request.stages.operators[stage]).spark
        assert all(r in placement.spark for r in request.stages.readers[stage]), "Spark feeds a worker"


def check_room(request: Request, placement: Placement, topology: Topology, load: Load) -> None:
    used: dict[NodeId, int] = {}
    for stage, hosts in placement.hosts.items():
        if not isinstance(request.stages.operators[stage], Source | Union):
            for host in hosts:
                used[host] = used.get(host, 0) + 1
    assert used == {n: u for n, u in placement.slots.items() if u}
    for host, count in used.items():
        assert host == request.gateway or count + load.slots.get(host, 0) <= topology.node(host).slots


def timed(request: Request, stage: Stage) -> bool:
    """Whether rows meet a watermark at this stage or above it."""
    stages = request.stages
    return isinstance(stages.operators[stage], Watermark) or any(timed(request, r) for r in stages.readers[stage])


def check_hints(request: Request, placement: Placement, topology: Topology) -> None:
    for stage, hint in request.hints.items():
        hosts = placement.hosts.get(stage, ())
        feeding = request.feeding()[stage]
        if hint == "cloud":
            assert stage in placement.spark or (set(hosts) <= {request.gateway} and timed(request, stage))
        elif hint == "device":
            assert set(hosts) == set(feeding)
        elif hint == "edge":
            assert {topology.node(h).kind for h in hosts} <= {"edge"}
            assert stage not in placement.spark
        else:
            assert set(hosts) <= {hint}
            assert stage not in placement.spark

"""The integer program compared with brute force."""

from __future__ import annotations

import contextlib
import itertools
from random import Random

import pytest

from rove.control.placement import Load, Placement, Request, strategy
from rove.control.placement.demands import demands
from rove.control.placement.estimate import cost
from rove.control.topology.topology import Link, Topology
from rove.model.errors import TopologyError
from rove.model.ids import NodeId, Stage
from tests.control.checker import check, merging, path
from tests.control.cities import PLANS, city, request, town


def place(name: str, asked: Request, topology: Topology, load: Load | None = None) -> Placement:
    found = strategy(name)(asked, topology, load or Load())
    check(asked, found, topology, load)
    return found


def every_placement(asked: Request, topology: Topology, like: Placement) -> list[Placement]:
    """All placements that keep the rules, by trying everything at or above what each operator reads."""
    asks, found = demands(asked), []

    def tried(hosts: dict[Stage, tuple[NodeId, ...]]) -> Placement:
        spark = frozenset(Stage(n) for n in range(len(asks)) if n not in hosts)
        slots: dict[NodeId, int] = {}
        for stage, each in hosts.items():
            if type(asked.stages.operators[stage]).__name__ not in ("Source", "Union"):
                for host in each:
                    slots[host] = slots.get(host, 0) + 1
        return Placement(hosts=hosts, spark=spark, routes=like.routes, why={}, slots=slots, memory_bytes={})

    def extend(n: int, hosts: dict[Stage, tuple[NodeId, ...]]) -> None:
        if n == len(asks):
            with contextlib.suppress(AssertionError):
                check(asked, tried(hosts), topology)
                found.append(tried(hosts))
            return
        stage, inputs = Stage(n), asked.stages.inputs[n]
        if not inputs:
            extend(n + 1, {**hosts, stage: asked.nodes_of(stage)})
            return
        if asked.sink is None and not asks[n].worker:
            extend(n + 1, hosts)  # in Spark
        if any(i not in hosts for i in inputs) or asks[n].spark:
            return
        op, routes = (
            asked.stages.operators[n],
            [path(like, h) for h in dict.fromkeys(h for i in inputs for h in hosts[i])],
        )
        if merging(op):
            ways = {(node,) for node in like.routes if all(node in route for route in routes)}
            if asked.sink is None and not asks[n].worker:
                ways.discard((asked.gateway,))
        else:
            ways = {tuple(dict.fromkeys(each)) for each in itertools.product(*routes)}
        for each in sorted(ways):
            extend(n + 1, {**hosts, stage: each})

    extend(0, {})
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_integer_program_finds_what_trying_everything_finds(seed: int) -> None:
    random = Random(seed)
    topology = city(random, devices=2, edges=2, slots_max=2)
    plan = random.choice(["filter", "count", "late filter", "scan", "union"])
    asked = request(plan, {"s": ["d0", "d1"][: random.randint(1, 2)], "t": ["d1"]})
    found = place("ilp", asked, topology)
    best = min(cost(asked, each, topology) for each in every_placement(asked, topology, found))
    assert cost(asked, found, topology) == pytest.approx(best)


def test_the_integer_program_is_never_dearer_than_the_others() -> None:
    for seed in range(20):
        random = Random(seed)
        topology = city(random)
        asked = request(random.choice(list(PLANS)), {"s": ["d0", "d1", "d2"], "t": ["d3"]})
        best = cost(asked, place("ilp", asked, topology), topology)
        for other in ("bottom_up", "cloud_only"):
            assert best <= cost(asked, place(other, asked, topology), topology) + 1e-6


def test_the_integer_program_keeps_within_the_bandwidth_of_links() -> None:
    """A filter that halves the rows fits on the device; raw rows do not fit through its link."""
    topology = town(slots=0)
    topology.remove_link(NodeId("d1"), NodeId("e1"))
    topology.add_link(Link(NodeId("d1"), NodeId("e1"), 1000, 1))
    with pytest.raises(TopologyError, match="slots, memory and bandwidth"):
        place("ilp", request("filter", {"s": ["d1"]}), topology)

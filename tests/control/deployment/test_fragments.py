"""The fragments that nodes get, and the explanation that users get."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from rove.control.deployment.split import split
from rove.control.placement import STRATEGIES, Load, Placement, Request, strategy
from rove.control.placement.explain import explain
from rove.control.topology.topology import Topology
from rove.model.errors import PlanError, RoveError
from rove.model.ids import NodeId, Origin, Stage
from rove.model.messages import Fragment, Sink
from rove.plan.operators import Filter, Source, walk
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import highest_cut
from rove.plan.stages import Stages, merges, ordered, stateful, stateless
from tests.control.checker import path
from tests.control.cities import PLANS, city, drawn, numbered, request, stages, stream, town, windowed
from tests.control.planned import deployed
from tests.control.twin import agree

FILE = {"out": Sink(kind="file", path="rows")}


def told(
    asked: Request, topology: Topology, name: str = "bottom_up", absent: tuple[str, ...] = ()
) -> tuple[Placement, Mapping[NodeId, Fragment]]:
    found = strategy(name)(asked, topology, Load())
    deployment = deployed(asked, found, FILE if asked.sink is not None else None, absent=absent)
    agree(deployment, asked)
    return found, deployment.fragments


def test_a_count_is_begun_on_devices_and_finished_on_the_edge() -> None:
    asked = request("count", {"s": ["d1", "d2"]}, sink="e1")
    _, found = told(asked, town())
    final, partial = (numbered(asked.stages, "Aggregate", mode) for mode in ("final", "partial"))
    device, edge = found[NodeId("d1")], found[NodeId("e1")]
    assert device.makes == {partial: Origin("q", "d1", stage=partial)}
    assert device.waits == {0: (Origin("s", "d1"),)}
    assert (device.next, device.sinks) == ("e1", {})
    assert device.runs == tuple(range(1, partial + 1))
    assert edge.makes == {final: Origin("q", stage=final)}
    assert edge.waits == {partial: (Origin("q", "d1", stage=partial), Origin("q", "d2", stage=partial))}
    assert (edge.next, edge.sinks) == (None, {final: FILE["out"]})
    operators = asked.stages.operators
    assert edge.runs == (*(n for n in range(partial) if stateless(operators[n])), final)


def test_who_is_absent_is_known_and_not_waited_for_and_waits_for_itself() -> None:
    asked = request("count", {"s": ["d1", "d2"]}, sink="e1")
    _, found = told(asked, town(), absent=("d1",))
    partial = numbered(asked.stages, "Aggregate", "partial")
    device, edge = found[NodeId("d1")], found[NodeId("e1")]
    assert (device.waits, device.knows) == ({0: (Origin("s", "d1"),)}, {})
    assert edge.waits == {partial: (Origin("q", "d2", stage=partial),)}
    assert edge.knows == {partial: (Origin("q", "d1", stage=partial),)}


def test_in_the_cloud_the_lower_part_ends_in_the_gateways_log() -> None:
    asked = request("count", {"s": ["d1", "d3"]})
    placement, found = told(asked, town())
    partial = numbered(asked.stages, "Aggregate", "partial")
    gateway = found[NodeId("gw")]
    window_us = 5_000_000
    merged = Sink(kind="log", time="__pane", grain_us=window_us - 1, span_us=window_us)
    assert gateway.sinks == {partial: merged}
    assert gateway.waits == {partial: (Origin("q", "d1", stage=partial), Origin("q", "d3", stage=partial))}
    assert found[NodeId("e1")].waits == {}  # it relays, and waits for nobody
    assert [name for name, _ in split(asked.stages, placement.spark).lower.outputs] == ["edge0"]


@pytest.mark.parametrize("strategy", ["bottom_up", "cloud_only"])
def test_batches_may_overtake_only_where_nothing_looks_at_their_order(strategy: str) -> None:
    free = {"raw", "filter", "spark", "union"}
    for plan in PLANS:
        _, found = told(request(plan, {"s": ["d1"], "t": ["d3"]}), town(), strategy)
        assert {part.overtakes for part in found.values()} == {plan in free}, plan


def test_raw_rows_are_waited_for_at_the_log() -> None:
    _, found = told(request("raw", {"s": ["d1", "d3"]}), town())
    assert found[NodeId("gw")].waits == {0: (Origin("s", "d1"), Origin("s", "d3"))}
    assert found[NodeId("d1")].runs == ()


def test_a_plan_without_spark_has_one_output_and_no_upper_part() -> None:
    asked = request("count", {"s": ["d1"]})
    parts = split(asked.stages, told(asked, town())[0].spark)
    assert [name for name, _ in parts.lower.outputs] == ["out"]
    assert parts.upper == {}


@pytest.mark.parametrize("plan", [plan for plan in PLANS if plan != "two ways"])
def test_parts_are_named_as_cuts_name_them(plan: str) -> None:
    """With all that Spark need not do on workers, the split is the highest cut."""
    found = stages(plan)
    asked = request(found, {"s": ["d1"], "t": ["d1"]})
    placement = strategy("bottom_up")(asked, town(slots=16), Load())
    cut = highest_cut(found.operators[found.outputs[0][1]])
    if placement.spark:
        parts = split(found, placement.spark)
        assert parts.upper == {"out": cut.upper}
        assert {n: parts.lower.operators[s] for n, s in parts.lower.outputs} == dict(cut.lower)
    else:
        assert not cut.needs_spark


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_takes_one_of_two_ways_in_order_is_where_both_end(name: str) -> None:
    """Rows that pass a node on another way would be taken there, and again above."""
    found = stages("two ways")
    placement = strategy(name)(request(found, {"s": ["d1", "d2"]}), town(slots=16), Load())
    hosts = [placement.hosts.get(Stage(n), ()) for n, op in enumerate(found.operators) if ordered(op)]
    assert set(hosts) <= {("gw",), ()}
    filters = [placement.hosts.get(Stage(n), ()) for n, op in enumerate(found.operators) if isinstance(op, Filter)]
    assert name == "cloud_only" or all("gw" not in nodes for nodes in filters), "what has no memory is on the devices"


@pytest.mark.parametrize(("absent", "waited"), [(("d1",), True), (("d1", "d2"), False)])
def test_an_operator_is_waited_for_as_long_as_anybody_below_it_is(absent: tuple[str, ...], waited: bool) -> None:
    partial = numbered(stages("count"), "Aggregate", "partial")
    asked = request("count", {"s": ["d1", "d2", "d3"]}, hints={partial: "edge"})
    placement, found = told(asked, town(), absent=absent)
    assert placement.hosts[Stage(partial)] == ("e1", "e2")
    gateway = found[NodeId("gw")]
    nodes = {o.node for origins in gateway.waits.values() for o in origins}
    assert ("e1" in nodes) == waited
    assert "e2" in nodes, "the others are waited for"
    assert any(o.node == "e1" for origins in gateway.knows.values() for o in origins) != waited


def test_a_sink_on_a_node_must_be_told_what_it_is() -> None:
    asked = request("count", {"s": ["d1"]}, sink="e1")
    with pytest.raises(PlanError, match="ends on node `e1`, but output `out` has no sink"):
        deployed(asked, strategy("bottom_up")(asked, town(), Load()))


@pytest.mark.parametrize("seed", range(60))
def test_every_origin_is_waited_for_wherever_it_is_taken_in_order(seed: int) -> None:
    random = Random(seed)
    topology = city(random)
    asked = drawn(random, topology)
    for name in STRATEGIES:
        try:
            placement, found = told(asked, topology, name)
        except RoveError:
            continue
        assert set(found) == set(placement.routes)
        lower = split(asked.stages, placement.spark).lower
        made: dict[str, tuple[Stage, NodeId]] = {}
        for stage in lower.sources():
            op = lower.operators[stage]
            assert isinstance(op, Source)
            for s in next(v for k, v in asked.sources.items() if asked.stages.operators[k] == op):
                made[s.origin] = (stage, s.node)
        for node, fragment in found.items():
            assert fragment.next == placement.routes[node]
            assert bool(fragment.sinks) == (node == asked.root)
            assert set(fragment.makes) == {s for s in fragment.runs if stateful(lower.operators[s])}
            for stage, origin in fragment.makes.items():
                assert origin not in made, "two makers of one origin"
                made[origin] = (stage, node)
        walk_origins(lower, found, placement, made)


def walk_origins(
    lower: Stages, found: Mapping[NodeId, Fragment], placement: Placement, made: dict[str, tuple[Stage, NodeId]]
) -> None:
    """Carry one batch of each origin up its route by the fragments alone; who takes it in order must wait for it."""
    fed: set[tuple[NodeId, Stage]] = set()
    expected: dict[NodeId, dict[Stage, set[str]]] = {}
    for origin, (start, begin) in made.items():
        carried = {start}
        for node in path(placement, begin):
            fragment, done = found[node], set[Stage]()
            for stage in sorted(carried):
                todo = [stage]
                while todo:
                    here = todo.pop()
                    done.add(here)
                    for reader in lower.readers[here]:
                        op = lower.operators[reader]
                        if reader not in fragment.runs:
                            continue
                        if ordered(op):
                            expected.setdefault(node, {}).setdefault(start, set()).add(origin)
                            fed.add((node, reader))
                        if not stateful(op):
                            todo.append(reader)
                    if here in fragment.sinks:
                        expected.setdefault(node, {}).setdefault(start, set()).add(origin)
            outs = {s for _, s in lower.outputs}
            carried = {s for s in done if s in outs or any(r not in fragment.runs for r in lower.readers[s])}
    for node, fragment in found.items():
        for stage in fragment.runs:
            alone = ordered(lower.operators[stage]) and not merges(lower.operators[stage])
            assert not alone or (node, stage) in fed, "an operator that nothing reaches holds up those above"
        own = set(fragment.makes.values())
        want = {s: tuple(sorted(o - own)) for s, o in expected.get(node, {}).items() if o - own}
        assert fragment.waits == want


def test_a_window_wanted_on_edges_runs_on_the_edge_of_each_device() -> None:
    counted = Stages.of({"out": optimize(windowed(stream()).count().at("edge").plan)})
    hints, topology = dict(counted.hints), town()
    asked = request(counted, {"s": ["d1", "d2", "d3"]}, hints=hints)
    partial, final = numbered(counted, "Aggregate", "partial"), numbered(counted, "Aggregate", "final")
    for name in ("bottom_up", "shortest_path", "ilp"):
        placed = strategy(name)(asked, topology, Load())
        assert placed.hosts[Stage(partial)] == ("e1", "e2")
        assert Stage(final) in placed.spark
        said = explain(asked, placed, topology)
        assert "e1, e2                  └─ Aggregate (partial)" in said
        assert "wanted at `edge`" in said
        assert "; `edge` is for its partial half" in placed.why[Stage(final)]
    near = strategy("bottom_up")(request(counted, {"s": ["d1", "d2"]}, hints=hints), topology, Load())
    assert near.hosts[Stage(final)] == ("e1",)
    assert near.why[Stage(final)] == "the routes of what it reads meet at `e1`; `edge` is for its partial half"


def test_an_explained_plan_says_where_why_and_how_much() -> None:
    asked = request("count", {"s": ["d1", "d2", "d3"]})
    topology = town()
    said = explain(asked, strategy("bottom_up")(asked, topology, Load()), topology)
    assert said.splitlines() == [
        "out ─► the cloud",
        "Spark                   Aggregate (final) by window(5 seconds), key: count(1) AS count",
        "                        │  because the routes of what it reads meet at the gateway `gw`",
        *said.splitlines()[3:],
    ]
    assert "d1, d2, d3" in said
    assert "where its rows are made" in said
    assert "gw ─► the log" in said
    assert "e1 ─► gw                10 rows/s" in said


@pytest.mark.parametrize("plan", PLANS)
def test_every_placed_plan_can_be_explained(plan: str) -> None:
    asked = request(plan, {"s": ["d1", "d2", "d3"], "t": ["d1"]})
    for name in STRATEGIES:
        said = explain(asked, strategy(name)(asked, town(1), Load()), town(1))
        assert (
            said.count("Source") == sum(1 for o in asked.stages.operators if isinstance(o, Source)) or "above" in said
        )
        assert len(list(walk(asked.stages.operators[asked.stages.outputs[0][1]]))) <= len(said.splitlines())

"""Queries that are redeployed whole, for comparison: what their nodes are told, and in what order."""

from __future__ import annotations

from itertools import groupby

import pytest

from bench.control import GATEWAY, Fleet, Node
from rove.control.coordinator import Coordinator
from rove.control.deployment.holistic import WAIT_US_MAX, Redeploy
from rove.control.deployment.query import QueryState
from rove.model.events import Tick
from rove.model.ids import NodeId, QueryId
from rove.model.messages import Fragment, Orders

SERIAL: Redeploy = "holistic_serial"
AT_ONCE: Redeploy = "holistic_concurrent"
MOVER = NodeId("device0")


class Told(Node):
    """A node that keeps what it was told, and may be deaf."""

    log: list[tuple[NodeId, Fragment]]
    deaf = False

    def obey(self, orders: Orders) -> None:
        if not self.deaf:
            self.log += [(self.name, fragment) for fragment in orders.deploy]
            super().obey(orders)


class World(Fleet):
    """Four edges and twenty devices; the streams `s0` and `all` have the device that moves, `s1` has not."""

    def __init__(self, redeploy: Redeploy, queries: dict[str, str]) -> None:
        super().__init__(edges=4, devices=20, redeploy=redeploy)
        self.log: list[tuple[NodeId, Fragment]] = []
        self.nodes = {name: self.listening(node) for name, node in self.nodes.items()}
        for name, stream in queries.items():
            self.submit(name, stream, windowed=False)
        self.log.clear()

    def listening(self, node: Node) -> Told:
        found = Told(node.name, node.facts, node.reaches, node.number, node.running, node.knows, node.below)
        found.log = self.log
        return found

    def moved(self) -> list[tuple[NodeId, Fragment]]:
        """Move the device. Returns what nodes were told until all was quiet."""
        self.log.clear()
        self.move(MOVER)
        self.machine.validate()
        assert all(q.state is QueryState.RUNNING for q in self.machine.queries.values())
        return list(self.log)

    def of(self, query: str) -> dict[NodeId, Fragment]:
        return dict(self.machine.queries[QueryId(query)].fragments)


def told(log: list[tuple[NodeId, Fragment]], query: str, holds: bool) -> set[NodeId]:
    return {node for node, fragment in log if fragment.query == query and fragment.holds == holds}


def test_a_move_is_told_to_three_nodes_or_to_all_of_its_queries_twice() -> None:
    queries = {"mine": "all", "other": "s1"}
    assert {node for node, _ in World("incremental", queries).moved()} <= {MOVER, NodeId("edge2"), NodeId("edge1")}
    world = World(SERIAL, queries)
    before = world.of("mine")
    log = world.moved()
    assert len(before) > 20
    assert told(log, "mine", holds=True) == set(before)
    assert told(log, "mine", holds=False) == set(world.of("mine"))
    assert not [node for node, fragment in log if fragment.query == "other"], "its routes are as they were"


def test_queries_follow_each_other_or_begin_at_once() -> None:
    queries = {"one": "all", "two": "s0", "three": "all"}
    phases = [
        [key for key, _ in groupby((f.query, f.holds) for _, f in World(r, queries).moved())] for r in (SERIAL, AT_ONCE)
    ]
    assert phases[0] == [(query, holds) for query in queries for holds in (True, False)]
    holds = [held for _, held in phases[1]]
    assert len(holds) > 6
    assert set(holds[: holds.index(False)]) == {True}
    assert {query for query, held in phases[1][: holds.index(False)]} == set(queries)


@pytest.mark.parametrize("redeploy", [SERIAL, AT_ONCE])
def test_a_query_is_placed_as_if_it_were_new(redeploy: Redeploy) -> None:
    world = World(redeploy, {"mine": "all"})
    for _ in range(3):
        world.moved()
        world.submit("new", "all", windowed=False)
        mine, new = (world.machine.queries[QueryId(name)].deployment for name in ("mine", "new"))
        assert mine is not None
        assert new is not None
        assert mine.tree.parts == new.tree.parts
        query = world.machine.queries[QueryId("new")]
        world.machine.stop(query)
        for node in query.rollout.states:
            world.machine.deployments.let_go(query.id, node)
        del world.machine.queries[query.id]


def test_a_source_with_a_better_route_takes_it_when_its_query_is_placed_anew() -> None:
    taken = []
    for redeploy in ("incremental", SERIAL):
        world = World(redeploy, {"mine": "all"})  # type: ignore[arg-type]
        node = next(
            n for n in world.nodes.values() if n.name != MOVER and n.reaches and n.reaches[0] > min(n.facts.parents)
        )
        node.reaches = node.unsaid["reaches"] = node.facts.parents
        world._hear(node, node.report())
        world.moved()
        tree = world.machine.queries[QueryId("mine")].deployment.tree  # type: ignore[union-attr]
        taken.append(tree.parts[node.name].next == min(node.facts.parents))
    assert taken == [False, True], "a route that works is not touched, unless all is placed anew"


def test_operators_with_memory_stay_where_they_are() -> None:
    world = World(SERIAL, {})
    world.submit("counted", "all", windowed=True)
    makes = {node: fragment.makes for node, fragment in world.of("counted").items() if fragment.makes}
    world.moved()
    assert {n: f.makes for n, f in world.of("counted").items() if f.makes} == makes


@pytest.mark.parametrize("windowed", [False, True])
def test_changes_that_come_meanwhile_are_the_next_batch(windowed: bool) -> None:
    world = World(AT_ONCE, {})
    world.submit("mine", "all", windowed=windowed)
    world.log.clear()
    deaf = world.nodes[GATEWAY]
    assert isinstance(deaf, Told)
    deaf.deaf = True
    world.move(MOVER)
    world.move(NodeId("device1"))
    world.move(NodeId("device2"))
    held = {fragment.version for _, fragment in world.log}
    assert len(held) == 1, "all wait for the gateway, and nothing else is begun"
    deaf.deaf = False
    for _ in range(3):
        world.now += 1_000_000
        world._hear(deaf, deaf.report())
    assert [f.holds for _, f in sorted(world.log, key=lambda each: each[1].version)][-1] is False
    assert len({f.version for _, f in world.log}) == 4, "one batch for the first, one for the others, each held before"
    tree = world.machine.queries[QueryId("mine")].deployment.tree  # type: ignore[union-attr]
    for name in (MOVER, NodeId("device1"), NodeId("device2")):
        assert tree.parts[name].next == world.nodes[name].reaches[0]


def beside_a_deaf_node() -> tuple[World, Told]:
    """A world in which a device has moved, and all nodes hold their rows. One of them does not hear what comes next."""
    world = World(SERIAL, {"mine": "all"})
    deaf = world.nodes[NodeId("device7")]
    assert isinstance(deaf, Told)
    deaf.deaf = True
    world.move(MOVER)
    assert {fragment.holds for _, fragment in world.log} == {True}
    return world, deaf


def test_a_node_that_does_not_answer_is_waited_for_only_so_long() -> None:
    world, _ = beside_a_deaf_node()
    for _ in range(2):
        world.now += WAIT_US_MAX
        for node in world.nodes.values():
            world._hear(node, node.report())
        world._handle(Tick())
    assert told(world.log, "mine", holds=False) == set(world.of("mine")) - {NodeId("device7")}


def test_nobody_holds_for_ever_because_the_coordinator_was_restarted() -> None:
    world, deaf = beside_a_deaf_node()
    deaf.deaf = False
    world.machine = Coordinator()
    world.machine.restore((kind, name, data) for (kind, name), data in world.kept.items())
    world.machine.validate()
    for node in world.nodes.values():
        world._hear(node, node.report(whole=True))
    fragments = world.of("mine")
    assert not [node for node, fragment in fragments.items() if fragment.holds]
    assert {n: world.nodes[n].running[QueryId("mine")] for n in fragments} == {
        n: f.version for n, f in fragments.items()
    }
    world.machine.validate()

"""Small topologies and queries to place in them: written by hand, or generated from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import rove
from rove import functions as F
from rove.control.placement import Request, SourceAt
from rove.control.topology.topology import Link, Node, Topology
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.plan.operators import Source
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages

SCHEMA = "key string, ts timestamp, a int, d double"


def stream(name: str = "s") -> Any:
    return rove.Session.local().stream(name, schema=SCHEMA)


def windowed(s: Any) -> Any:
    return s.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key")


def names() -> Any:
    return rove.Session.local().read.schema("key string, name string").table("names")


# Every shape of plan: chains, partial and final, edge only, Spark only, joins, tables, unions, shared beginnings.
PLANS: dict[str, Any] = {
    "raw": lambda s, t: s,
    "filter": lambda s, t: s.where("a > 1").selectExpr("key", "a * 2 AS b"),
    "count": lambda s, t: windowed(s.where("a > 1")).count(),
    "late filter": lambda s, t: windowed(s).agg(F.avg("d").alias("m")).where("m > 3"),
    "spark": lambda s, t: s.where("a > 1").selectExpr("soundex(key) AS x").where("x = 'R100'"),
    "scan": lambda s, t: s.withWatermark("ts", "1 second").scan(F.sum("a").alias("total"), by="key").where("total > 3"),
    "union": lambda s, t: s.where("a > 1").union(t.where("a > 2")).selectExpr("key", "d + 1 AS e"),
    "union count": lambda s, t: windowed(s.where("a > 1").union(t)).count(),
    "join": lambda s, t: side(s).join(side(t).withColumnRenamed("a", "b"), on=["w", "key"]).where("a > b"),
    "table": lambda s, t: s.where("a > 1").join(names().where("name <> ''"), on="key"),
    "two ways": lambda s, t: windowed(s).count().select("key").union(s.where("a > 1").select("key")),
}


def side(s: Any) -> Any:
    return s.withWatermark("ts", "1 second").select(F.window("ts", "5 seconds").alias("w"), "key", "a")


def stages(name: str) -> Stages:
    return Stages.of({"out": optimize(PLANS[name](stream("s"), stream("t")).plan)})


def request(
    plan: str | Stages,
    sources: Mapping[str, list[str]],
    *,
    sink: str | None = None,
    hints: Mapping[int, str] | None = None,
) -> Request:
    """A request whose sources are given by stream, each producer named as its node and stream."""
    found = stages(plan) if isinstance(plan, str) else plan
    at = {}
    for stage in found.sources():
        op = found.operators[stage]
        assert isinstance(op, Source)
        nodes = sources.get(op.stream, [])
        at[stage] = tuple(SourceAt(Origin(op.stream, n), NodeId(n)) for n in nodes)
    return Request(
        query=QueryId("q"),
        stages=found,
        sources=at,
        gateway=NodeId("gw"),
        sink=None if sink is None else NodeId(sink),
        hints={Stage(n): hint for n, hint in (hints or {}).items()},
    )


def numbered(found: Stages, kind: str, mode: str = "") -> int:
    """The first stage of a kind."""
    return next(
        n for n, op in enumerate(found.operators) if type(op).__name__ == kind and getattr(op, "mode", "") in (mode, "")
    )


def town(slots: int = 8) -> Topology:
    """Two devices under one edge, one under another, all under a gateway.

    d1, d2 ─► e1 ─► gw        d3 ─► e2 ─► gw
    """
    nodes = [Node(NodeId("gw"), "gateway", 0)]
    nodes += [Node(NodeId(e), "edge", slots) for e in ("e1", "e2")]
    nodes += [Node(NodeId(d), "device", slots) for d in ("d1", "d2", "d3")]
    pairs = [("e1", "gw"), ("e2", "gw"), ("d1", "e1"), ("d2", "e1"), ("d3", "e2")]
    return Topology(nodes, [Link(NodeId(a), NodeId(b)) for a, b in pairs])


def city(random: Random, *, devices: int = 6, edges: int = 5, slots_max: int = 4) -> Topology:
    """A gateway, a mesh of edges, and devices with one to three parents; slots are scarce."""
    nodes = [Node(NodeId("gw"), "gateway", 0)]
    links = []
    for i in range(edges):
        nodes.append(Node(NodeId(f"e{i}"), "edge", random.randint(0, slots_max)))
        above = random.sample([n.id for n in nodes[:-1]], k=min(len(nodes) - 1, random.randint(1, 2)))
        links += [Link(NodeId(f"e{i}"), a, random.choice([1000, 1000, 5000])) for a in above]
    for i in range(devices):
        nodes.append(Node(NodeId(f"d{i}"), "device", random.randint(0, slots_max)))
        above = random.sample([f"e{k}" for k in range(edges)], k=random.randint(1, min(3, edges)))
        links += [Link(NodeId(f"d{i}"), NodeId(a), random.choice([1000, 2000])) for a in above]
        if i and random.random() < 0.3:  # devices that see each other do not relay for each other
            links.append(Link(NodeId(f"d{i}"), NodeId(f"d{i - 1}"), 1))
    return Topology(nodes, links)


def drawn(random: Random, topology: Topology, *, hinted: bool = False) -> Request:
    """A random request in a city."""
    devices = [n.id for n in topology.nodes() if n.kind == "device"]
    everyone = [n.id for n in topology.nodes()]
    plan = stages(random.choice(list(PLANS)))
    sources = {name: random.sample(devices, k=random.randint(1, min(4, len(devices)))) for name in ("s", "t")}
    sink = random.choice([None, None, "gw", random.choice(everyone)])
    hints = {}
    if hinted:
        for _ in range(random.randint(1, 2)):
            hints[random.randrange(len(plan.operators))] = random.choice(["device", "edge", "cloud", *everyone])
    return request(plan, sources, sink=sink, hints=hints)

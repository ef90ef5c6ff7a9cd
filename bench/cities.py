"""Generates topologies of any size (a gateway, a tree of edges, devices below) and queries over some of the devices."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import rove
from rove import functions as F
from rove.control.deployment.change_set import ChangeSet
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.fragments import Terms, ends_of
from rove.control.deployment.split import split
from rove.control.placement import Load, Placement, Request, SourceAt
from rove.control.topology.nodes import Link, Node
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, Origin, QueryId, Stage
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages

FANOUT = 20  # edges below an edge
DEVICES_PER_EDGE = 20
GATEWAY = NodeId("gateway")
SCHEMA = "train string, ts timestamp, boarding int, alighting int"


def city(nodes: int, seed: int = 1) -> tuple[Topology, list[NodeId]]:
    """A topology of so many nodes, and its devices."""
    random = Random(seed)
    edges = max(1, (nodes - 1) // (DEVICES_PER_EDGE + 1))
    found = [Node(GATEWAY, "gateway")] + [Node(NodeId(f"edge{n}"), "edge", 64) for n in range(edges)]
    links = [
        Link(NodeId(f"edge{n}"), NodeId(f"edge{(n - 1) // FANOUT}") if n else GATEWAY, random.randint(1_000, 20_000))
        for n in range(edges)
    ]
    devices = [NodeId(f"device{n}") for n in range(nodes - 1 - edges)]
    found += [Node(device, "device", 8) for device in devices]
    links += [Link(d, NodeId(f"edge{random.randrange(edges)}"), random.randint(5_000, 60_000)) for d in devices]
    return Topology(found, links), devices


def line(hops: int) -> tuple[Topology, list[NodeId]]:
    """A topology with one device, so many hops away from the gateway."""
    names = [NodeId("device"), *(NodeId(f"edge{n}") for n in range(hops - 1)), GATEWAY]
    kinds = ["device", *(["edge"] * (hops - 1)), "gateway"]
    nodes = [Node(name, kind, 64) for name, kind in zip(names, kinds, strict=True)]  # type: ignore[arg-type]
    return Topology(nodes, [Link(a, b) for a, b in pairwise(names)]), [names[0]]


def stages() -> Stages:
    """The occupancy of each train every half minute: a filter, a watermark, and a window in two halves."""
    trains = rove.Session.local().stream("trains", schema=SCHEMA)
    busy = (
        trains.where("boarding + alighting > 0")
        .withWatermark("ts", "5 seconds")
        .groupBy(F.window("ts", "30 seconds"), "train")
        .agg(F.sum("boarding").alias("on"), F.sum("alighting").alias("off"))
    )
    return Stages.of({"out": optimize(busy.plan)})


def request(plan: Stages, devices: list[NodeId], query: int, sources: int) -> Request:
    """Requests for queries, each over some randomly chosen devices."""
    chosen = Random(query).sample(devices, min(sources, len(devices)))
    found = tuple(SourceAt(Origin("trains", device), device) for device in chosen)
    return Request(query=QueryId(f"q{query}"), stages=plan, sources={Stage(0): found}, gateway=GATEWAY)


def deployed(asked: Request, placed: Placement) -> ChangeSet:
    """All that nodes are told of a query that was placed."""
    parts = split(asked.stages, placed.spark)
    terms = Terms(query=asked.query, stages=asked.stages, split=parts, ends=ends_of(asked.query, parts, {}, asked.sink))
    deployment = Deployment(terms, asked.root, Load(), {})
    deployment.place(placed, asked.sources)
    return deployment.settle()

"""A dumb twin of deployments: everything that nodes are told, worked out from the whole placement at once.

It is written apart from `rove.control.deployment`, which follows changes node by node; both must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.split import Split
from rove.control.placement import Placement, Request
from rove.model.ids import NodeId, Origin, Stage
from rove.plan.stages import merges, ordered, stateful, stateless

_Book: TypeAlias = dict[NodeId, dict[Stage, set[Origin]]]
_At: TypeAlias = tuple[Stage, NodeId]
Told: TypeAlias = tuple[
    tuple[Stage, ...], dict[Stage, Origin], dict[Stage, tuple[Origin, ...]], dict[Stage, tuple[Origin, ...]]
]


def agree(deployment: Deployment, asked: Request) -> None:
    """Raise if what nodes are told is not what follows from the whole placement."""
    deployment.validate()
    placed, sources = deployment.placement({}), deployment.sources()
    whole = Request(query=asked.query, stages=asked.stages, sources=sources, gateway=asked.gateway, sink=asked.sink)
    expected = told(whole, placed, deployment.terms.split, frozenset(deployment.absent))
    fragments = {n: f for n, f in deployment.fragments.items() if n not in deployment.relays}
    actual = {n: (f.runs, f.makes, f.waits, f.knows) for n, f in fragments.items()}
    assert actual == expected, {n: (actual.get(n), expected.get(n)) for n in expected if actual.get(n) != expected[n]}
    assert {n: f.next for n, f in fragments.items()} == dict(placed.routes)


def told(request: Request, placement: Placement, parts: Split, absent: frozenset[NodeId]) -> dict[NodeId, Told]:
    """By node: what it runs, what it makes, whom it waits for, and whom it knows."""
    runs = runs_of(request, placement)
    waits, knows = _waits(request, placement, parts, runs, absent)
    number = parts.numbers
    return {
        node: (
            tuple(sorted(number[s] for s in here if s in number)),
            {
                number[s]: origin(request, s, node)
                for s in sorted(here)
                if s in number and stateful(request.stages.operators[s])
            },
            {s: tuple(sorted(waiting)) for s, waiting in sorted(waits.get(node, {}).items())},
            {s: tuple(sorted(known)) for s, known in sorted(knows.get(node, {}).items())},
        )
        for node, here in runs.items()
    }


def origin(request: Request, stage: Stage, node: NodeId) -> Origin:
    """The name of what an operator gives."""
    merging = merges(request.stages.operators[stage])
    return Origin(request.query, "" if merging else node, stage=stage)


def runs_of(request: Request, placement: Placement) -> dict[NodeId, set[Stage]]:
    """What is done when a batch leaves a node: what is hosted there, and what is stateless and hosted below, since a
    batch that missed it is finished here. What is ordered has its one place and is not repeated.

    So a node may finish rows whose own host is further up, and hand them to what stands behind. An ordered operator up
    there that nothing reaches any more is left out: as an origin that never speaks it would hold everyone up.
    """
    found: dict[NodeId, set[Stage]] = {node: set() for node in placement.routes}
    reached: dict[Stage, dict[NodeId, None]] = {}
    for stage, hosts in sorted(placement.hosts.items()):
        op, inputs = request.stages.operators[stage], request.stages.inputs[stage]
        if stateless(op):
            for node in (node for host in hosts for node in placement.route(host)):
                found[node].add(stage)
        elif inputs:
            for host in hosts:
                found[host].add(stage)
        starts = (start for i in inputs for start in reached[i])
        taken = (taker(placement, found, stage, start) for start in starts)
        reached[stage] = dict.fromkeys(node for node in taken if node is not None) if inputs else dict.fromkeys(hosts)
        if ordered(op) and not merges(op):
            for host in hosts:
                if host not in reached[stage]:
                    found[host].discard(stage)
    return found


def taker(placement: Placement, runs: Mapping[NodeId, set[Stage]], stage: Stage, start: NodeId) -> NodeId | None:
    """The first node, from one upwards, that runs an operator; None if Spark does."""
    return next((node for node in placement.route(start) if stage in runs[node]), None)


def _waits(
    request: Request,
    placement: Placement,
    parts: Split,
    runs: Mapping[NodeId, set[Stage]],
    absent: frozenset[NodeId],
) -> tuple[_Book, _Book]:
    """By node and stage of their making, the origins that an ordered operator or a sink there has to hear from; and
    those that it may hear from: who is absent, and operators with nobody left below them."""
    found: _Book = {}
    known: _Book = {}
    ends = {stage for _, stage in parts.lower.outputs}
    outputs = {stage for stage, number in parts.numbers.items() if number in ends}

    def consumers(stage: Stage, host: NodeId) -> Iterator[tuple[Stage, NodeId]]:
        """Where batches that leave an operator on a host meet one that takes them in order, or their end."""
        if stage in outputs:
            yield stage, request.root
        for reader in request.stages.readers[stage]:
            op, node = request.stages.operators[reader], taker(placement, runs, reader, host)
            if node is None:
                continue
            if ordered(op):
                yield reader, node
            if not stateful(op):
                yield from consumers(reader, node)

    met = {
        (stage, host): tuple(consumers(stage, host))
        for stage, hosts in placement.hosts.items()
        for host in hosts
        if stage in parts.numbers and (not request.stages.inputs[stage] or _makes(request, runs, stage, host))
    }
    below: dict[_At, list[_At]] = {}
    for maker, readers in met.items():
        for reader in readers:
            below.setdefault(reader, []).append(maker)

    def away(maker: _At) -> bool:
        makers = below.get(maker, ()) if request.stages.inputs[maker[0]] else ()
        return maker[1] in absent or (bool(makers) and all(map(away, makers)))

    for (stage, host), readers in met.items():
        is_source = not request.stages.inputs[stage]
        origins = (
            tuple(s.origin for s in request.sources[stage] if s.node == host)
            if is_source
            else (origin(request, stage, host),)
        )
        for _, node in readers:
            # Others do not wait for one who is absent, but know it; it waits for itself.
            book = known if node != host and away((stage, host)) else found
            if is_source or node != host:
                book.setdefault(node, {}).setdefault(parts.numbers[stage], set()).update(origins)
    return found, known


def _makes(request: Request, runs: Mapping[NodeId, set[Stage]], stage: Stage, host: NodeId) -> bool:
    """Whether an operator with memory runs on a host."""
    return stateful(request.stages.operators[stage]) and stage in runs[host]

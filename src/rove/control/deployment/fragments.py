"""What each node on the routes of a query is told.

Law: a fragment follows from the request and the placement alone. Every fragment of a version carries the same plan, so
a batch can be finished by whichever node it meets; what differs is who owns state, who waits for whom, and who is next.

An origin is named by its number in the whole plan. That number does not depend on where the plan is cut, so an origin
keeps its name through every placement of its query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from rove.control.deployment.alternatives import Alternatives
from rove.control.deployment.split import Split, split
from rove.control.placement.placement import Placement
from rove.control.placement.request import Request
from rove.model.errors import PlanError
from rove.model.ids import NodeId, Origin, Stage, Version
from rove.model.messages import Fragment, Sink
from rove.plan.operators import Aggregate
from rove.plan.spans import keeps_time, span_us
from rove.plan.stages import merges, ordered, stateful, stateless

LOG = Sink(kind="log")

_Book: TypeAlias = dict[NodeId, dict[Stage, set[Origin]]]
_At: TypeAlias = tuple[Stage, NodeId]  # an operator, or a source, where it is


def fragments(
    request: Request,
    placement: Placement,
    version: Version,
    sinks: Mapping[str, Sink] | None = None,
    others: Alternatives | None = None,
    copies: bool = False,
    thins: int = 0,
    folds: bool = False,
    parts: Split | None = None,
) -> dict[NodeId, Fragment]:
    """A fragment for every node on the routes. `sinks` are the user's, by output; in the cloud every output ends in the
    gateway's log. With `copies`, what was kept goes over all routes; `thins` and `folds` are for devices without room.
    `parts` are those of `split`, where they are known.
    O(nodes × stages + origins × stages × height)."""
    parts = parts or split(request.stages, placement.spark)
    plan = parts.plan
    ends = _ends(request, parts, sinks or {})
    runs = runs_of(request, placement)
    waits, knows = _waits(request, placement, parts, runs)
    number = parts.numbers
    in_order = any(map(ordered, request.stages.operators)) or any(sink.time for sink in ends.values())
    feeds: dict[NodeId, list[Origin]] = {}
    for source in (source for found in request.sources.values() for source in found):
        feeds.setdefault(source.node, []).append(source.origin)
    others = others or Alternatives()
    relays = {
        node: Fragment(
            query=request.query,
            version=version,
            plan=plan,
            runs=(),
            makes={},
            waits={},
            next=above,
            sinks={},
            overtakes=not in_order,
        )
        for node, above in others.relays.items()
    }
    return relays | {
        node: Fragment(
            query=request.query,
            version=version,
            plan=plan,
            runs=tuple(sorted(number[s] for s in here if s in number)),
            makes={
                number[s]: origin(request, s, node)
                for s in sorted(here)
                if s in number and stateful(request.stages.operators[s])
            },
            waits={s: tuple(sorted(waiting)) for s, waiting in sorted(waits.get(node, {}).items())},
            knows={s: tuple(sorted(known)) for s, known in sorted(knows.get(node, {}).items())},
            next=placement.routes[node],
            sinks=ends if placement.routes[node] is None else {},
            feeds=tuple(sorted(feeds.get(node, ()))),
            overtakes=not in_order,
            others=others.begin.get(node, ()),
            copies=copies and bool(others.begin.get(node)),
            thins=thins if node in feeds else 0,
            folds=folds and node in feeds,
        )
        for node, here in runs.items()
    }


def origin(request: Request, stage: Stage, node: NodeId) -> Origin:
    """The name of a stateful operator's output: one for all places where it merges, one a place where it is partial. On
    a node that forgets it is another one after each start, since its numbers begin anew."""
    merging = merges(request.stages.operators[stage])
    name = f"{request.query}/{stage}" if merging else f"{request.query}/{stage}/{node}"
    start = request.starts.get(node)
    return Origin(f"{name}~{start}" if start else name)


def _ends(request: Request, parts: Split, sinks: Mapping[str, Sink]) -> dict[Stage, Sink]:
    found: dict[Stage, Sink] = {}
    for name, stage in parts.lower.outputs:
        if name not in sinks and request.sink is not None:
            raise PlanError(
                f"query `{request.query}` ends on node `{request.sink}`, and output `{name}` has no sink there"
            )
        found[stage] = sinks.get(name, LOG)
        if name not in sinks and any(map(keeps_time, parts.upper.values())):
            operator = parts.lower.operators[stage]
            pane = operator.window.pane_us if isinstance(operator, Aggregate) else 1
            span = max(map(span_us, parts.upper.values()))
            found[stage] = Sink(kind="log", time=operator.traits.event_time or "", grain_us=pane - 1, span_us=span)
    return found


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
    request: Request, placement: Placement, parts: Split, runs: Mapping[NodeId, set[Stage]]
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
        return maker[1] in request.absent or (bool(makers) and all(map(away, makers)))

    for (stage, host), readers in met.items():
        is_source = not request.stages.inputs[stage]
        origins = request.origins(stage, host) if is_source else (origin(request, stage, host),)
        for _, node in readers:
            # Others do not wait for one who is absent, but know it; it waits for itself.
            book = known if node != host and away((stage, host)) else found
            if is_source or node != host:
                book.setdefault(node, {}).setdefault(parts.numbers[stage], set()).update(origins)
    return found, known


def _makes(request: Request, runs: Mapping[NodeId, set[Stage]], stage: Stage, host: NodeId) -> bool:
    """Whether an operator with memory runs on a host."""
    return stateful(request.stages.operators[stage]) and stage in runs[host]

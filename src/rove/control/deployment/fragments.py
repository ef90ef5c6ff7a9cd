"""Makes the fragments of a query, one for each node on its routes.

Law: a fragment follows from the parts of its query alone. Every fragment of a query names the same plan, so any node
can finish a batch. Fragments differ in the state that they own, the origins that they wait for, and the next node.

An origin is named by its number in the whole plan. That number does not depend on where the plan is cut, so an origin
keeps its name through every placement of its query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rove.control.deployment.part import At, Part
from rove.control.deployment.split import Split
from rove.control.deployment.tables.meetings import Meetings
from rove.model.clock import MICROS_MIN
from rove.model.errors import PlanError
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import Begin, Counted, Fragment, Sink
from rove.model.spans import Spans, union
from rove.plan.operators import Aggregate, Map
from rove.plan.spans import keeps_time, span_us
from rove.plan.stages import Stages, merges, ordered, stateful

LOG = Sink(kind="log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What all fragments of a query have in common. With `copies`, kept batches are sent over all routes; `thins` and
    `folds` are for devices without room. With `whole`, operators that move wait for their whole state."""

    query: QueryId
    stages: Stages
    split: Split
    ends: Mapping[Stage, Sink]
    copies: bool = False
    thins: int = 0
    folds: bool = False
    whole: bool = False

    def merges(self, stage: Stage) -> bool:
        """Whether an operator needs the rows of all origins in one place."""
        return merges(self.stages.operators[stage])

    @property
    def in_order(self) -> bool:
        """Whether something depends on the order of batches."""
        return any(map(ordered, self.stages.operators)) or any(sink.time for sink in self.ends.values())

    @property
    def timed(self) -> bool:
        """Whether results wait for the watermarks of all origins."""
        return any(map(stateful, self.split.lower.operators)) or any(sink.time for sink in self.ends.values())

    @property
    def outputs(self) -> frozenset[Stage]:
        """The stages of the whole plan whose rows leave the workers."""
        ends = {stage for _, stage in self.split.lower.outputs}
        return frozenset(stage for stage, number in self.split.numbers.items() if number in ends)


def ends_of(query: QueryId, split: Split, sinks: Mapping[str, Sink], node: NodeId | None) -> dict[Stage, Sink]:
    """The sink of each output. `sinks` are the user's, by output, for a query that ends on a `node`. In the cloud every
    output ends in the gateway's log."""
    found: dict[Stage, Sink] = {}
    for name, stage in split.lower.outputs:
        if name not in sinks and node is not None:
            raise PlanError(f"query `{query}` ends on node `{node}`, but output `{name}` has no sink there")
        found[stage] = sinks.get(name, LOG)
        if name not in sinks and any(map(keeps_time, split.upper.values())):
            operator = split.lower.operators[stage]
            pane = operator.window.pane_us if isinstance(operator, Aggregate) else 1
            span = max(map(span_us, split.upper.values()))
            found[stage] = Sink(kind="log", time=operator.traits.event_time or "", grain_us=pane - 1, span_us=span)
    return found


def origin(terms: Terms, stage: Stage, node: NodeId, starts: Mapping[NodeId, int], part: Part | None = None) -> Origin:
    """The origin of a stateful operator's output: one name for a merging operator, one for each node of a partial one.
    On a node without a disk it changes with each start, because its numbers begin at 0 again. An operator that came
    with its state keeps the name that it had."""
    for named in () if part is None else part.names:
        if named.stage == stage and named.while_start == (starts.get(node) or 0):
            return Origin(terms.query, named.node, named.start, stage)
    merging = merges(terms.stages.operators[stage])
    return Origin(terms.query, "" if merging else node, starts.get(node) or 0, stage)


def state_origin(terms: Terms, stage: Stage, node: NodeId, version: Version) -> Origin:
    """The origin of the pieces of an operator's state that leaves a node. Its start tells migrations apart."""
    return Origin(terms.query, node, version, stage)


def relay(terms: Terms, version: Version, part: Part, in_order: bool) -> Fragment:
    """The fragment of a node that is only on an alternative route."""
    return Fragment(
        query=terms.query,
        version=version,
        plan=terms.split.digest,
        runs=(),
        makes={},
        waits={},
        next=part.next,
        sinks={},
        overtakes=not in_order,
    )


def fragment(
    terms: Terms,
    version: Version,
    node: NodeId,
    part: Part,
    meetings: Meetings,
    in_order: bool,
    absent: Collection[NodeId],
    starts: Mapping[NodeId, int],
    sources: Mapping[At, tuple[Origin, ...]],
    parts: Mapping[NodeId, Part],
    passing: Mapping[Stage, tuple[Origin, ...]],
) -> Fragment:
    """The fragment of a node on a route. `sources` gives the sources of a source stage on a node, `parts` the parts of
    all nodes, `passing` the origins that operators here let pass by. O(makers that it reads + stages)."""
    number = terms.split.numbers
    running = meetings.running(node)
    ending = [s for s in part.ends if s in number and s not in running]
    waits: dict[Stage, set[Origin]] = {}
    knows: dict[Stage, set[Origin]] = {}
    anywhere: set[Origin] = set()
    away = _Away(meetings, absent, parts)
    for maker in meetings.read_by(node):
        stage, host = maker
        is_source = meetings.is_source(stage)
        if is_source or host != node:
            origins = sources.get(maker, ()) if is_source else (origin(terms, stage, host, starts, parts.get(host)),)
            # An absent node is known to others but not waited for. It waits for itself.
            book = knows if host != node and absent and away(maker) else waits
            book.setdefault(number[stage], set()).update(origins)
            if (made := parts.get(host)) is not None and made.forgotten:
                anywhere.update(origins)
    feeds = tuple(sorted(o for _, o in part.sources))
    read = {origin for origins in (*waits.values(), *knows.values()) for origin in origins}
    lifts = {s: _lifted(s, meetings.makers.get((s, node), ()), sources, parts) for s in part.lifting if s in number}
    for stage, host in dict.fromkeys(maker for s in part.lifting for maker in meetings.makers.get((s, node), ())):
        earlier = {each.origin for each in parts[host].begins} - set(sources.get((stage, host), ()))
        if earlier:
            knows.setdefault(number[stage], set()).update(earlier)
    return Fragment(
        query=terms.query,
        version=version,
        plan=terms.split.digest,
        runs=tuple(sorted(number[s] for s in running if s in number)),
        makes={
            number[s]: origin(terms, s, node, starts, part)
            for s in (*running, *ending)
            if s in number and stateful(terms.stages.operators[s])
        },
        waits={s: tuple(sorted(origins)) for s, origins in sorted(waits.items())},
        knows={s: tuple(sorted(origins)) for s, origins in sorted(knows.items())},
        next=part.next,
        sinks=dict(terms.ends) if part.next is None else {},
        feeds=feeds,
        overtakes=not in_order,
        others=part.others,
        copies=terms.copies and bool(part.others),
        thins=terms.thins if feeds else 0,
        folds=terms.folds and bool(feeds),
        loads=tuple(sorted(number[s] for s in part.hosts if isinstance(terms.stages.operators[s], Map))),
        sends={number[s]: state_origin(terms, s, node, version) for s, version in part.sends},
        ends=tuple(sorted(number[s] for s in ending)),
        awaits={number[s]: state for s, state in part.awaits},
        whole=terms.whole and bool(part.awaits),
        above=part.above,
        anywhere=tuple(sorted(anywhere)),
        anew=part.anew,
        leads=dict(part.leads),
        lost={number[s]: state for s, state in part.lost},
        releases=_releases(part, passing, number),
        lifts={number[s]: origins for s, origins in lifts.items()},
        begins={
            origin: begin
            for origin in sorted({origin for origins in lifts.values() for origin in origins})
            if (begin := _begin(parts[NodeId(origin.node)], origin)) is not None
        },
        elsewhere=_elsewhere(node, part, read, parts),
    )


def _elsewhere(node: NodeId, part: Part, read: Collection[Origin], parts: Mapping[NodeId, Part]) -> Counted:
    """Batches that operators on other nodes have counted, or take. What comes here again is not with others any
    more."""
    makers = [parts[maker] for maker in sorted({NodeId(origin.node) for origin in read}) if maker in parts]
    counted = [each for maker in makers for each in maker.taken if each.by not in ("", node) and each.origin in read]
    others = [each for each in part.taken if not each.by and each.origin not in read]
    found: dict[tuple[str, Origin], Spans] = {}
    for each in (*counted, *others):
        key = (each.taker, each.origin)
        found[key] = union((found.get(key, ()), each.spans))
    return tuple((*key, spans) for key, spans in sorted(found.items()))


def _releases(
    part: Part, passing: Mapping[Stage, tuple[Origin, ...]], number: Mapping[Stage, Stage]
) -> dict[Stage, tuple[Origin, ...]]:
    """The origins that operators let go, and those that pass them by."""
    found: dict[Stage, set[Origin]] = {}
    for stage, origin in (*part.releases, *((stage, o) for stage, origins in passing.items() for o in origins)):
        found.setdefault(number[stage], set()).add(origin)
    return {stage: tuple(sorted(origins)) for stage, origins in sorted(found.items())}


def _lifted(
    stage: Stage, makers: Iterable[At], sources: Mapping[At, tuple[Origin, ...]], parts: Mapping[NodeId, Part]
) -> tuple[Origin, ...]:
    """The origins of makers whose rows an operator takes batch by batch, also earlier ones of the same devices."""
    found = {origin for maker in makers for origin in sources.get(maker, ())}
    devices = dict.fromkeys(node for _, node in makers)
    found |= {each.origin for node in devices if stage in parts[node].lifts for each in parts[node].begins}
    return tuple(sorted(found))


def _begin(device: Part, origin: Origin) -> Begin | None:
    """Where an origin of a device begins at the root; None as long as that is not known."""
    if any(origin == held for held, _ in device.held):
        return None
    known = (Begin(each.next, each.mark) for each in device.begins if each.origin == origin)
    return next(known, Begin(0, MICROS_MIN))  # others have begun after their device had moved


class _Away:
    """Whether nothing comes from a maker for now, because its node or all its sources are absent, or an edge that has
    not let it go."""

    def __init__(self, meetings: Meetings, absent: Collection[NodeId], parts: Mapping[NodeId, Part]) -> None:
        self._meetings, self._absent, self._parts = meetings, absent, parts
        self._known: dict[At, bool] = {}

    def __call__(self, maker: At) -> bool:
        if maker not in self._known:
            makers = () if self._meetings.is_source(maker[0]) else self._meetings.makers.get(maker, ())
            held = () if (part := self._parts.get(maker[1])) is None else part.held
            lost = maker[1] in self._absent or any(edge in self._absent for _, edge in held)
            self._known[maker] = lost or (bool(makers) and all(map(self, makers)))
        return self._known[maker]

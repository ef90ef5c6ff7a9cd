"""Checks the laws that every history must keep, independently of the code under test.

Law: a checker looks at the world from outside: the rows that sources made, the content of disks and wires. It does not
rely on what a machine says of itself.

At every step: nothing is lost, watermarks only grow, memory stays below its bound, a merging operator has one owner.
After healing: nothing is duplicated, and accounts add up. `rows` compares the rows that arrived.
"""

from __future__ import annotations

from collections.abc import Iterator

from rove.control.asks.requests import AccountLine
from rove.control.coordinator import Coordinator
from rove.control.members.accounts import excess
from rove.control.members.membership import Membership
from rove.control.members.missing.missing import LOOK_US
from rove.data.fragment.build import ends
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.errors import RoveError
from rove.model.ids import SOURCE, NodeId, Origin, QueryId, Stage, read_origin
from rove.model.messages import Data
from rove.model.spans import Spans, both
from rove.plan.operators import Source
from rove.plan.stages import Stages, merges
from rove.sim.nodes import SimNode
from rove.sim.queries import START_US
from rove.sim.world import World

Name = tuple[str, Origin, int]  # query, origin, seq
# Allowed above the bound: a frame may be larger than the credit left for it, and windows may close together.
SPARE_BYTES = 2 * 1024 * 1024
REPORTED_US = 2_000_000  # a report that arrives this long after an event was made after it
LOOKED_US = LOOK_US + 1_000_000  # the coordinator has looked at a report that arrived this long ago
BATCHES_BYTES = 8_192  # of the last batches, one for each query: a store takes them, and makes room then


class BrokenLaw(RoveError):
    """A law is broken."""


class NothingLost:
    """A batch that a node lets go of is held by a node that answers for it: its maker, a node that has it on its disk,
    or a node whose operator has taken it. A node that passes it on does not answer for it, and neither does one that is
    still writing it: both may die at any moment. If the maker is an operator on a node that died without a disk, no
    node answers for the batches that it still held. While a node opens the folders of a query, or computes again what
    is in them, batches of that query count as held; they are checked after that. A node that has started and does not
    know yet what it ran has not opened them: it waits for the coordinator."""

    def __init__(self) -> None:
        self._held: dict[NodeId, set[Name]] = {}
        self._starts: dict[NodeId, int] = {}
        self._begun: dict[NodeId, set[str]] = {}  # the queries that a node has run or opened since its start

    def stepped(self, world: World, node: SimNode) -> None:
        worker = node.worker
        if worker is None:
            return
        now = set(held_by(worker))
        if self._starts.get(node.place, node.start_number) != node.start_number and node.sources:
            self._held.pop(node.place, None)  # a device that died: no other node had its batches
        if self._starts.get(node.place) != node.start_number:
            self._begun[node.place] = set()
        self._starts[node.place] = node.start_number
        self._begun[node.place].update(worker.opening(), worker.running())
        gone = self._held.get(node.place, set()) - now
        if gone:
            replays = {query for query, each in worker.running().items() if each.replays}
            later = {name for name in gone if name[0] in replays or self._unopened(node, name[0])}
            now |= later
            gone -= later
        self._held[node.place] = now
        missing = [name for name in gone if not self._anywhere(world, name)]
        if missing:
            raise BrokenLaw(f"{node.name} let go of {sorted(missing)[:3]}, which no other node has")

    def _anywhere(self, world: World, name: Name) -> bool:
        query, origin, _ = name
        if origin.node in world.liars:
            return True
        if query in world.stopped or query in world.forgot or query in world.hurt or name in world.evicted:
            return True
        if origin in world.dead or origin.node in world.twins:  # its device has lost it, and other nodes may die too
            return True  # batches on its disk are checked at the end
        if origin.node in world.nodes and world.nodes[NodeId(origin.node)].left:
            return True
        if name in world.unsaved or _made_again(world, name):
            return True
        for other in world.nodes.values():
            if other.worker is not None and _answers(other.worker, name):
                return True
            if self._unopened(other, query):
                return True
        return False

    def _unopened(self, node: SimNode, query: str) -> bool:
        """Whether a query may have batches on a disk that its node has not opened: it is down, opens the folders, or
        has not been told of the query since its start. What is there counts after that."""
        if node.shelf is None:
            return False
        if node.worker is None or query in node.worker.opening():
            return True
        untold = query not in self._begun.get(node.place, ())
        return untold and query in node.shelf.queries()


class WatermarksGrow:
    """The watermark of an operator never falls. An operator that left a node, and later begins there anew, has another
    name."""

    def __init__(self) -> None:
        self._low: dict[tuple[NodeId, int, str, int, Origin | None], int] = {}

    def stepped(self, world: World, node: SimNode) -> None:
        if node.worker is None:
            return
        for query, running in node.worker.running().items():
            for stage, low in running.pipeline.lows().items():
                key = (node.place, node.start_number, query, stage, running.fragment.makes.get(stage))
                if low < self._low.get(key, low):
                    fell = f"fell from {self._low[key]} to {low}"
                    raise BrokenLaw(f"the watermark of operator {stage} of `{query}` on {node.name} {fell}")
                self._low[key] = low


class MemoryBounded:
    """A node holds no more than its bound, apart from the last batch, which may be an operator's output of any size.
    Batches that a device has sent and that are not acked may take more, as far as the peer allows."""

    def stepped(self, world: World, node: SimNode) -> None:
        worker = node.worker
        if worker is None:
            return
        kept = list(worker.store)
        largest = max((entry.bytes for entry in kept), default=0)
        held = worker.store.bytes + worker.output.pending_bytes + worker.input_log.pending_bytes - largest
        if held > node.settings.memory_bytes + SPARE_BYTES:
            raise BrokenLaw(f"{node.name} holds {held} bytes; it may hold {node.settings.memory_bytes}")
        sent = sum(entry.bytes for entry in kept if entry.number or entry.copies or entry.original is not None)
        waiting = worker.store.bytes - sent - worker.store.leaving_bytes
        if node.settings.kind == "device" and waiting > node.settings.memory_bytes + BATCHES_BYTES:
            raise BrokenLaw(f"{waiting} bytes wait on {node.name}; it may hold {node.settings.memory_bytes}")
        counted = sum(entry.bytes for entry in kept)
        if counted != worker.store.bytes:
            raise BrokenLaw(f"the store of {node.name} has {counted} bytes and says {worker.store.bytes}")


class OneOwner:
    """A merging operator runs on one node at a time. It may move: then the old node has ended it before the new one
    takes rows. A node that computes its input again after a restart emits nothing new."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, Origin], NodeId] = {}

    def stepped(self, world: World, node: SimNode) -> None:
        if node.worker is None:
            return
        for query, origin in _owned(node.worker):
            owner = self._owners.setdefault((query, origin), node.place)
            if owner != node.place:
                other = world.nodes[owner].worker
                if other is not None and (query, origin) in _owned(other):
                    raise BrokenLaw(f"`{origin}` of `{query}` runs on {owner} and on {node.name}")
                self._owners[query, origin] = node.place


def _owned(worker: Worker) -> set[tuple[str, Origin]]:
    """The merging operators that take rows on a node, by query and name."""
    return {
        (query, running.fragment.makes[stage])
        for query, running in worker.running().items()
        for stage in running.pipeline.lows()
        if not running.replays and merges(running.stages.operators[stage]) and not _begins(running, stage)
    }


def _begins(running: RunningFragment, stage: Stage) -> bool:
    """Whether an operator is to wait for its state, and its node has not written that to its disk yet."""
    state, moves = running.fragment.awaits.get(stage), running.pipeline.moves
    return state is not None and moves.awaited(stage) is None and not moves.has_come(stage, state)


def check_sums(world: World) -> None:
    """The accounts that users see add up at every moment, whichever reports have arrived: no rows are counted
    twice."""
    machine = world.coordinator.machine
    if machine is None:
        return
    for line in machine.snapshot(world.now, START_US + world.now).accounts:
        if excess(line) and not _explained(world, line):
            raise BrokenLaw(f"the account of {line.origin} for `{line.query}` does not add up: {line}")


def _explained(world: World, line: AccountLine) -> bool:
    """Whether more rows may be counted than were produced: an operator whose input is damaged computes fewer rows again
    than have arrived. What a device says of its own rows means nothing if it lies."""
    if read_origin(line.origin).node in world.liars:
        return True
    return excess(line) > 0 and line.query in world.hurt and read_origin(line.origin).stage != SOURCE


class MissingIsNowhere:
    """A batch that is named as missing is held by no node. A node that has just started may compute
    again what it has on its disk, and has not reported that yet. A batch that was missing before may be computed again
    too: the coordinator learns of it from the next report, and looks after that. What a node holds that counts as dead
    is missing, also if the node lives and cannot be heard."""

    def __init__(self) -> None:
        self._named: dict[tuple[QueryId, Origin], Spans] = {}  # the batches that were missing at the last look
        self._found: dict[Name, tuple[int, int | None]] = {}  # of those, since when a node holds them and has said so

    def __call__(self, world: World) -> None:
        machine = world.coordinator.machine
        named = {} if machine is None else _named_as_missing(machine)
        heard = {} if machine is None else _heard(machine.membership)
        running = [node.worker for node in world.nodes.values() if node.worker is not None]
        workers = [worker for worker in running if worker.start == heard.get(worker.node, (None, 0))[0]]
        found: dict[Name, tuple[int, int | None]] = {}
        for worker in workers if named else ():
            for name in held_by(worker):
                query, origin, seq = name
                line = (QueryId(query), origin)
                if not both((seq, seq + 1), named.get(line, ())):
                    continue
                since, said = found.get(name, self._found.get(name, (world.now, None)))
                if said is None and heard[worker.node][1] > since + REPORTED_US:
                    said = world.now
                found[name] = (since, said)
                before = name in self._found or both((seq, seq + 1), self._named.get(line, ()))
                if not before or (said is not None and world.now > said + LOOKED_US):
                    raise BrokenLaw(f"`{origin}` {seq} of `{query}` is named as missing, and {worker.node} holds it")
        self._named, self._found = named, found


def _heard(membership: Membership) -> dict[NodeId, tuple[int, int]]:
    """The starts of nodes that do not count as dead, and when they were heard."""
    alive = ((name, m) for name, m in membership.members.items() if not membership.topology.is_dead(name))
    return {name: (member.start, member.heard_us) for name, member in alive}


def _named_as_missing(machine: Coordinator) -> dict[tuple[QueryId, Origin], Spans]:
    missing = machine.membership.missing
    found = ((QueryId(query), line) for query in sorted(missing.queries()) for line in missing.lines(QueryId(query)))
    return {(query, origin): doubt.batches for query, (origin, doubt) in found}


def held_by(worker: Worker) -> Iterator[Name]:
    """The names of all batches with rows that a node holds."""
    for entry in worker.store:
        yield from _names(entry.header)
    for running in worker.running().values():
        for batch in running.pipeline.held():
            yield from _names(batch.header, running.fragment.query)
    for header in worker.waiting():
        yield from _names(header)


def _made_again(world: World, name: Name) -> bool:
    """Whether a source that reads a file has still to give this batch to its node, again after a restart."""
    _, origin, seq = name
    maker = world.nodes.get(NodeId(origin.node))
    sources = () if maker is None else maker.sources
    return any(s.origin == origin and s.replays and s.next <= seq for s in sources)


def _answers(worker: Worker, name: Name) -> bool:
    """Whether nothing is lost if all other nodes forget a batch."""
    query, origin, seq = name
    running = worker.running().get(QueryId(query))
    makes = () if running is None else running.fragment.makes.values()
    if origin.node == worker.node or origin in makes:
        return name in held_by(worker) or _took(worker, query, origin, seq) or _is_lost(worker, name)
    # An operator that has moved away had taken it and acked it, so no other node has it.
    if any(entry.receipt is None and name in _names(entry.header) for entry in worker.store):
        return True
    if running is not None and any(name in _names(batch.header, query) for batch in running.pipeline.held()):
        return True
    if running is not None and running.pipeline.took(origin, seq):
        return True
    # A batch may arrive at two stages. Then there are two copies, and one may still wait for the disk.
    logged = (spans for q, o, spans in worker.input_log.names() if (q, o) == (query, origin))
    copies = sum(bool(both(spans, (seq, seq + 1))) for spans in logged)
    if copies > sum(name in _names(header) for header in worker.input_log.waiting()):
        return True
    # Output of operators may be written for long after their input is safe.
    return any(
        end.took(QueryId(query), origin, seq) and not any(name in _names(header) for header in end.waiting())
        for end in (worker.input_log, worker.output)
    )


def _is_lost(worker: Worker, name: Name) -> bool:
    """Whether the rows of a batch can never be read, and its header says so."""
    query, origin, seq = name
    of_it = (e.header for e in worker.store if e.header.query == query and e.header.origin.unsided == origin)
    return any(header.lost and header.seq <= seq <= header.through for header in of_it)


def _names(header: Header, query: str = "") -> Iterator[Name]:
    if header.born and not header.late:
        yield (header.query or query, header.origin.unsided, header.seq)


def _took(worker: Worker, query: str, origin: Origin, seq: int) -> bool:
    """Whether a batch has reached a stateful operator, or a disk, on a node."""
    running = worker.running().get(QueryId(query))
    if running is not None and running.pipeline.took(origin, seq):
        return True
    return worker.took(QueryId(query), origin, seq)


# After healing


def check_disks(world: World) -> None:
    """Batches on the disk of a device that died have arrived, or were evicted later."""
    workers = [node.worker for node in world.nodes.values() if node.worker is not None]
    for query, origin, seq in sorted(world.safe - world.evicted):
        spared = query in world.stopped or query in world.hurt
        if not spared and not any(_took(worker, query, origin, seq) for worker in workers):
            raise BrokenLaw(f"`{origin}` {seq} of `{query}` was on a disk when its device died, and is nowhere")


def check_accounts(world: World) -> None:
    """Check the accounts that users see, for each query and origin: produced = delivered + evicted + late + lost, and
    rows of open windows; nothing else is in flight, nothing is missing, and not more than was made."""
    machine = world.coordinator.machine
    if machine is None:
        raise BrokenLaw("the coordinator is down after healing")
    placed = [id for id in world.first if machine.queries[id].deployment is not None]
    made = {id: _made(world, id, machine.deployments.parts(machine.queries[id])[0]) for id in placed}
    found = machine.snapshot(world.now, START_US + world.now)
    troubled = {line.query for line in found.queries if line.troubles}
    for line in found.accounts:
        missing = line.missing if line.query in world.forgot else 0  # rows of open windows that no node has
        if line.query in world.hurt:
            named = line.missing or line.query in troubled
            wrong = line.in_flight > line.open + line.buffered and not named
        else:
            wrong = line.in_flight != line.open + missing or line.missing != missing
        if _explained(world, line):
            continue
        if excess(line) or wrong:
            raise BrokenLaw(f"the account of {line.origin} for `{line.query}` does not add up: {line}")
        most = made.get(QueryId(line.query), {}).get(line.origin)  # none, if it was stopped before a restart
        if most is not None and line.produced > most:
            raise BrokenLaw(f"{line.origin} made {most} rows for `{line.query}`: {line}")


def _made(world: World, query: QueryId, lower: Stages) -> dict[str, int]:
    """The rows that sources made since a query began, once for each way through the plan."""
    ways = {op.stream: n for op, n in zip(lower.operators, ends(lower), strict=True) if isinstance(op, Source)}
    return {
        str(source.origin): sum(batch.num_rows for batch in source.made[source.fed[query] :]) * ways[source.stream]
        for node in world.nodes.values()
        for source in node.sources
        if query in source.fed
    }


def flying_data(world: World) -> int:
    return sum(isinstance(f.message, Data) for f in world.flying.values())

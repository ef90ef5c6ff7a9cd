"""Checks names against what is really there: what a node says it holds, what it has acked, what its log holds.

Law: as in `checkers`, a checker looks from outside. What a node holds is counted batch by batch, in its parts and on
its simulated disk, and compared with what the node reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Conn, Send
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Ack, Data
from rove.model.spans import BOUNDS_MAX, Coverage, union
from rove.sim.checkers import BrokenLaw, Name
from rove.sim.nodes import SimNode
from rove.sim.world import World

SAID_EVERY = 8  # in every n-th look of the coordinator, each node's report is compared with what it holds


class AckedIsSafe:
    """A batch that a node has acked, and that ends there or in the input of its operators, is on its disk after any
    crash. It is known by its name when the node has opened its folders again."""

    def __init__(self) -> None:
        self._frames: dict[tuple[NodeId, Conn], dict[int, Header]] = {}
        self._acked: dict[NodeId, dict[Name, None]] = {}
        self._starts: dict[NodeId, int] = {}

    def told(self, world: World, who: NodeId, event: object, commands: Sequence[object]) -> None:
        """Note which batches came, and which of them are acked."""
        if isinstance(event, Arrived) and isinstance(event.message, Data):
            self._frames.setdefault((who, event.conn), {})[event.message.number] = event.message.header
        node = world.nodes.get(who)
        if node is None or node.worker is None or node.shelf is None:
            return
        for command in commands:
            if isinstance(command, Send) and isinstance(command.message, Ack):
                frames = self._frames.get((who, command.conn), {})
                for number in [n for n in frames if n <= command.message.through]:
                    self._note(node.worker, who, frames.pop(number))

    def _note(self, worker: Worker, who: NodeId, header: Header) -> None:
        name = (header.query, header.origin.unsided, header.seq)
        if header.born and not header.late and worker.took(QueryId(name[0]), name[1], name[2]):
            self._acked.setdefault(who, {})[name] = None

    def stepped(self, world: World, node: SimNode) -> None:
        """After a restart, look for what was acked before it."""
        worker = node.worker
        if worker is None or node.shelf is None or self._starts.get(node.place) == node.start_number:
            return
        if self._starts.get(node.place, 0) and worker.opening():
            return
        self._starts[node.place] = node.start_number
        acked = self._acked.get(node.place, {})
        for query, origin, seq in list(acked):
            running = worker.running().get(QueryId(query))
            moved = running is not None and not (running.remembers or running.fragment.sinks)
            if running is None or moved or query in world.hurt:
                del acked[query, origin, seq]
            elif not worker.took(QueryId(query), origin, seq):
                raise BrokenLaw(f"{node.name} had acked `{origin}` {seq} of `{query}`, and has lost it in a crash")


class WatermarksRestored:
    """An operator whose input is on a disk has its watermark back when a restart has computed it again."""

    def __init__(self) -> None:
        self._low: dict[tuple[NodeId, QueryId], tuple[int, int]] = {}  # the start, and the watermark then

    def stepped(self, world: World, node: SimNode) -> None:
        if node.worker is None or node.shelf is None:
            return
        running = node.worker.running()
        for query, each in running.items():
            low = each.pipeline.low()
            if each.replays or not each.remembers or low is None or query in world.hurt:
                continue
            start, before = self._low.get((node.place, query), (node.start_number, low))
            if start != node.start_number and low < before:
                raise BrokenLaw(f"the watermark of `{query}` on {node.name} was {before} before a restart, now {low}")
            self._low[node.place, query] = (node.start_number, low)
        for query in [q for place, q in self._low if place == node.place and q not in running]:
            if query not in node.worker.opening() and self._low[node.place, query][0] == node.start_number:
                del self._low[node.place, query]  # it runs elsewhere now, and may come back without its state


def check_reports(world: World) -> None:
    """What a node reports to hold and to buffer is what it holds, batch by batch."""
    if (world.now // 500_000) % SAID_EVERY:
        return
    for node in world.nodes.values():
        if node.worker is not None:
            _check_report(world, node, node.worker)


def _check_report(world: World, node: SimNode, worker: Worker) -> None:
    held: dict[tuple[str, Origin], Coverage] = {}
    buffered: dict[tuple[str, Origin], int] = {}
    for query, header in _held(worker):
        key = (query, header.origin.unsided)
        buffered[key] = buffered.get(key, 0) + header.born
        if not header.late:  # late rows have no numbers of their own
            held.setdefault(key, Coverage()).add(header.seq, header.through)
    for header in (*worker.waiting(), *worker.on_disk()):
        if not header.late:
            held.setdefault((header.query, header.origin.unsided), Coverage()).add(header.seq, header.through)
    opened = {q: [*each.pipeline.open_batches()] for q, each in worker.running().items()}
    unsure = {*world.hurt, *worker.input_log.unwritten()}  # what is safe may not be published to readers yet
    sure = {q for q, each in worker.running().items() if q not in unsure and not each.replays}
    for tally in worker.report().tallies:
        key = (tally.query, tally.origin)
        if tally.buffered != buffered.pop(key, 0):
            raise BrokenLaw(f"{node.name} buffers other rows of {key} than it says: {tally}")
        windows = [names.spans() for origin, names in opened.get(tally.query, ()) if origin == tally.origin]
        real = union((held.pop(key, Coverage()).spans(), *windows))
        if tally.query in sure and len(tally.held) < BOUNDS_MAX and tally.held != real:
            raise BrokenLaw(f"{node.name} holds {real} of {key}, and says {tally.held}")
    if left := [key for key in held if key[0] in sure]:
        raise BrokenLaw(f"{node.name} holds batches of {left[:3]}, and does not say so")


def check_let_go(world: World) -> None:
    """A node that holds no batch has let go of all names of batches, and an end knows what it took as one range."""
    if world.hurt or world.forgot:
        return
    alive = {source.origin for node in world.nodes.values() for source in node.sources if not source.dead}
    for node in world.nodes.values():
        if node.worker is None or node.name in world.twins:
            continue
        store = node.worker.store
        if names := {**store.names(), **store.rows()}:
            raise BrokenLaw(f"{node.name} holds nothing, and still names {[*names][:3]}")
        for query, _, origin, spans in node.worker.output.taken():
            if len(spans) > 2 and origin in alive:
                raise BrokenLaw(f"{node.name} has taken {spans} of {origin} for `{query}`, with gaps")


def _held(worker: Worker) -> Iterator[tuple[str, Header]]:
    """The batches in the store of a node, and those that came too early for an operator."""
    kept = (entry.header for entry in worker.store if entry.original is None)
    yield from ((header.query, header) for header in kept if not header.state)
    yield from ((q, batch.header) for q, each in worker.running().items() for batch in each.pipeline.held())

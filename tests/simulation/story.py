"""A small network that a test leads by the hand, and the transcript of what its machines hear and ask for.

Law: the machines are the real ones, in the simulator's world; nothing is left to chance. One line says what happened to
whom, the lines below it all that came of it. What says nothing new is left out: beats, acks of nothing more, reports
that say what the last one said, a hello that is lost again, moments in which nothing is asked for. So is who may
connect: no keys are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from textwrap import wrap

from rove.data.events import Produced, Remember
from rove.data.settings import WorkerSettings
from rove.model.events import COORDINATOR, Allow, Arrived, Conn, Drop, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Ack, Beat, Goodbye, Hello, Kind, Message, Report, Sink
from rove.plan.stages import Stages
from rove.sim.network import Network, Wire
from rove.sim.nodes import SimSource
from rove.sim.queries import START_US, some_rows
from rove.sim.world import World
from tests.lines import event as happened
from tests.lines import line, name
from tests.lines import message as shown

SECOND_US = 1_000_000
NEVER_US = 10**15
WIDTH = 118


class StraightNetwork(Network):
    """A network in which everything takes a millisecond."""

    def dial(self, dialer: NodeId, listener: NodeId) -> Wire:
        wire = super().dial(dialer, listener)
        wire.delay_us, wire.jitter_us, wire.bytes_per_s = 1_000, 0, 10**12
        return wire


class Story:
    """Nodes, a coordinator, and what they said."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.world = World(Random(1))
        self.world.network = StraightNetwork(Random(1))
        self.world.listeners.append(self)
        self._said: dict[object, str] = {}  # by who says it to whom, the last of its kind
        self._random = Random(1)
        self._quiet = False
        self._last: tuple[NodeId, int] | None = None  # whose event it was, and when
        self._held: list[str] = []  # the line of an event of which nothing came yet

    # What the test does

    def comment(self, text: str) -> None:
        """A word to the reader."""
        self.lines += ["", *wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")]

    def coordinator(self) -> None:
        self.note("coordinator starts")
        self.world.start_coordinator()

    def node(
        self, name: str, kind: Kind, *parents: str, durable: bool = False, stream: str = "", slots: int = 16
    ) -> None:
        """Start a node for the first time; with a stream it has a source of it."""
        above = tuple(map(NodeId, parents))
        found = WorkerSettings(node=NodeId(name), kind=kind, address=name, parents=above, compress="off", slots=slots)
        sources = (SimSource(stream, Origin(stream, name), NEVER_US, 1, 10**9),) if stream else ()
        self.world.add_node(found, durable, sources)
        self.start(name)

    def start(self, name: str) -> None:
        self.note(f"{name} starts")
        self.world.start(NodeId(name))

    def kill(self, name: str, power: bool = False) -> None:
        self.note(f"{name} is killed{', and the power goes' if power else ''}")
        self.world.kill(NodeId(name), power)

    def submit(self, query: str, stages: Stages, sink: Sink) -> None:
        self.world.submit(QueryId(query), stages, sink)

    def drain(self, name: str, back: bool = False) -> None:
        self.world.drain(NodeId(name), back)

    def update(self, query: str, stages: Stages) -> None:
        self.world.update(QueryId(query), stages)

    def stop(self, query: str) -> None:
        self.world.stop(QueryId(query))

    def makes(self, name: str, rows: int = 2) -> None:
        """A source makes rows."""
        node = self.world.nodes[NodeId(name)]
        source = next(s for s in node.sources if not s.ended)
        moment = START_US + self.world.now
        made = some_rows(self._random, name, moment, rows, 0)
        self.world.handle(node, Produced(source.origin, made, moment))

    def says(self, name: str, message: Message) -> None:
        """A node's process says something to the coordinator by itself."""
        self.world._send(self.world.nodes[NodeId(name)], COORDINATOR, message, None)

    def leaves(self, name: str) -> None:
        """A node leaves for good."""
        self.note(f"{name} leaves")
        self.says(name, Goodbye(NodeId(name)))
        self.world.nodes[NodeId(name)].worker = None  # it says nothing more, and what it said last arrives
        self.passes(0.01)
        self.world.kill(NodeId(name))

    def cut(self, dialer: str, listener: str) -> None:
        self.note(f"{dialer} and {listener} do not hear each other")
        wires = self.world.network.wires
        self.world.network.cut(wires.get((NodeId(dialer), NodeId(listener))) or self._dial(dialer, listener))

    def mend(self, dialer: str, listener: str) -> None:
        self.note(f"{dialer} and {listener} hear each other")
        self.world.network.mend(self.world.network.wires[NodeId(dialer), NodeId(listener)])

    def _dial(self, dialer: str, listener: str) -> Wire:
        return self.world.network.dial(NodeId(dialer), NodeId(listener))

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """What happens now is not written down."""
        self._quiet = True
        yield
        self._quiet = False

    def passes(self, seconds: float) -> None:
        """Time goes by."""
        self.world.run(self.world.now + int(seconds * SECOND_US))

    def counts(self, name: str, query: str) -> None:
        """What a node has counted of a query's rows."""
        worker = self.world.nodes[NodeId(name)].worker
        assert worker is not None
        mine = [tally for tally in worker.report().tallies if tally.query == query]
        delivered, twice = sum(t.delivered for t in mine), sum(t.duplicates for t in mine)
        self.note(f"{name} has counted {delivered} rows of {query}, and dropped {twice} batches that came again")

    # What is written down

    def note(self, text: str) -> None:
        if self._quiet:
            return
        self.lines.append(f"{self.world.now / SECOND_US:7.3f} s  {text}")

    def told(self, world: World, who: NodeId, event: object, commands: Sequence[object]) -> None:
        asked = [self._asked(who, command) for command in commands if self._is_news(who, command)]
        if isinstance(event, Tick):  # every event is followed by a moment for the machine itself
            last, self._last = self._last, None
            heading = [] if last == (who, world.now) else [f"{who} looks around"]
        else:
            self._last = (who, world.now)
            heading = [self._heading(who, event)]
        if self._quiet or (not asked and self._is_routine(event)):
            self._held = heading if not self._quiet and heading else []
            return
        for text in (*(self._held if not heading else ()), *heading):
            self.note(text)
        self._held = []
        self.lines += [f"             {text}" for text in asked]

    def _heading(self, who: NodeId, event: object) -> str:
        match event:
            case Arrived(conn=conn, message=message):
                return f"{who} hears {_peer(conn)}: {shown(message)}"
            case Remember():
                return f"{who} goes on with what it ran before"
        return f"{who}: {happened(event)}"

    def _asked(self, who: NodeId, command: object) -> str:
        if isinstance(command, Drop):
            return f"hang up on {_peer(command.conn)}"
        if not isinstance(command, Send):
            return line(command)
        return f"to {_peer(command.conn)}: {shown(command.message)}{self._lost(who, command.conn)}"

    def _lost(self, who: NodeId, conn: Conn) -> str:
        """Whether nobody will hear it: the wire is cut, or the process at its other end is dead."""
        peer, wires = NodeId(_peer(conn)), self.world.network.wires
        wire = wires.get((who, peer)) or wires.get((peer, who))
        dead = peer in self.world.nodes and self.world.nodes[peer].worker is None
        return "  (lost)" if dead or (wire is not None and wire.cut) else ""

    def _is_news(self, who: NodeId, command: object) -> bool:
        """Whether a command is worth a line: of acks and reports, those that say something else than the last."""
        if isinstance(command, Allow) or (isinstance(command, Send) and isinstance(command.message, Beat)):
            return False
        if not isinstance(command, Send) or not isinstance(command.message, Ack | Hello | Report):
            return True
        key, text = (who, _peer(command.conn), type(command.message)), shown(command.message)
        if text == "News, nothing new":
            return False
        before, self._said[key] = self._said.get(key, "Ack 0"), text
        return before != text or (isinstance(command.message, Hello) and self._lost(who, command.conn) == "")

    def _is_routine(self, event: object) -> bool:
        """Whether an event of which nothing comes is left out."""
        said = event.message if isinstance(event, Arrived) else None
        return isinstance(event, Tick) or isinstance(said, Beat | Report | Ack)


def _peer(conn: Conn) -> str:
    """Who is at the other end: connections that were made anew are numbered."""
    return name(conn).partition("#")[0]

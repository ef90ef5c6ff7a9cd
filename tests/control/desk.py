"""A coordinator at a desk: a test plays the nodes and the user, and obeys its orders."""

from __future__ import annotations

from itertools import count

import rove
from rove.control.asks.requests import Submit, to_body
from rove.control.commands import Command
from rove.control.coordinator import Coordinator
from rove.control.deployment.deployment import Deployment
from rove.data.link.below import Below
from rove.model.events import Arrived, Send
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version, read_origin
from rove.model.messages import (
    PROTOCOL,
    Answer,
    Ask,
    Facts,
    Held,
    Kind,
    Orders,
    Report,
    Sink,
    SourceHere,
    Tally,
    digest_of,
)
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from tests.lines import lines

COLUMNS = "key string, value int"


def submission(sink: Sink | None = None) -> Submit:
    """The query `q` over the stream `s`."""
    stream = rove.Session.local().stream("s", schema=COLUMNS).where("value > 1")
    plan = codec.encode(Stages.of({"out": optimize(stream.plan)}))
    return Submit(name="q", plan=plan, sink=sink or Sink(kind="log"))


class Desk:
    """A coordinator, and nodes that do what they are told. A node that learns whose batches it may take says so at
    once."""

    def __init__(self, keys: bool = False) -> None:
        self.machine = Coordinator(keys, "O" * 40)
        self.running: dict[str, dict[QueryId, Version]] = {}
        self.knows: dict[str, str] = {}
        self.waits: dict[str, dict[Stage, tuple[Origin, ...]]] = {}
        self.below: dict[str, Below] = {}
        self.obeyed: dict[str, int] = {}
        self._last: dict[str, tuple[int, int, str]] = {}  # of each node, its start, the number of its report, its key
        self._ids = count()
        self.now = 0

    def report(
        self,
        node: str,
        kind: Kind,
        *parents: str,
        origins: tuple[str | Origin, ...] = (),
        key: str = "",
        reaches: tuple[str, ...] | None = None,
        held: tuple[Held, ...] = (),
        taken_bytes: int = 0,
        tallies: tuple[Tally, ...] = (),
        start: int = 1,
    ) -> list[Command]:
        self.now += 1_000_000
        made = [o if isinstance(o, Origin) else read_origin(o) for o in origins]
        sources = tuple(SourceHere(stream=o.name, origin=o, columns=COLUMNS) for o in made)
        report = Report(
            protocol=PROTOCOL,
            node=NodeId(node),
            start=start,
            number=1,
            whole=True,
            facts=Facts(
                kind=kind,
                address="here",
                parents=tuple(NodeId(p) for p in parents),
                slots=8,
                memory_bytes=10**8,
                sources=sources,
                durable=kind == "gateway",
            ),
            running=dict(self.running.get(node, {})),
            unknown=(),
            tallies=tallies,
            refused={},
            knows=self.knows.get(node, ""),
            reaches=tuple(NodeId(p) for p in (parents if reaches is None else reaches)),
            held=held,
            taken_bytes=taken_bytes,
            learned=self.below.setdefault(node, Below()).known,
            obeyed=self.obeyed.get(node, 0),
        )
        self._last[node] = (start, 1, key)
        return self.obey(self.machine.handle(Arrived(node.encode(), report, None, key), self.now, self.now))

    def obey(self, commands: list[Command]) -> list[Command]:
        self.machine.validate()
        for command in commands:
            if isinstance(command, Send) and isinstance(command.message, Orders) and isinstance(command.conn, bytes):
                node, orders = command.conn.decode(), command.message
                self.obeyed[node] = orders.number
                for fragment in orders.deploy:
                    self.running.setdefault(node, {})[fragment.query] = fragment.version
                    self.waits[node] = fragment.waits
                for query in orders.leave:
                    del self.running[node][query]
                if orders.peers is not None:
                    self.knows[node] = digest_of(orders.peers)
                if orders.learn is not None and self.below[node].learn(orders.learn):
                    commands += self._confirm(node)
        return commands

    def _confirm(self, node: str) -> list[Command]:
        start, number, key = self._last[node]
        self._last[node] = (start, number + 1, key)
        report = Report(
            protocol=PROTOCOL,
            node=NodeId(node),
            start=start,
            number=number + 1,
            whole=False,
            knows=self.knows.get(node, ""),
            learned=self.below[node].known,
            obeyed=self.obeyed.get(node, 0),
        )
        return self.obey(self.machine.handle(Arrived(node.encode(), report, None, key), self.now, self.now))

    def ask(self, verb: str, body: object) -> Answer:
        ask = Ask(str(next(self._ids)), verb, to_body(body))
        commands = self.obey(self.machine.handle(Arrived("user", ask, None, "O" * 40), self.now, self.now))
        (answer,) = [c for c in commands if isinstance(c, Send) and isinstance(c.message, Answer)]
        self.beside_the_answer = lines([c for c in commands if c is not answer])
        assert isinstance(answer.message, Answer)
        return answer.message

    def submit(self, sink: Sink | None = None) -> Answer:
        return self.ask("submit", submission(sink))

    @property
    def deployment(self) -> Deployment:
        found = self.machine.queries[QueryId("q")].deployment
        assert found is not None
        return found

    def absent(self) -> tuple[str, ...]:
        return tuple(sorted(self.deployment.absent))

    def sources(self) -> set[str]:
        deployment = self.deployment
        return {str(source.origin) for found in deployment.sources().values() for source in found}

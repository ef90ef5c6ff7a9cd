"""A coordinator in this process, asked as a client asks it: real answers, no network."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from rove.control.asks.requests import Named, from_body, to_body
from rove.control.coordinator import Coordinator
from rove.model.errors import RoveError
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin, QueryId, Version
from rove.model.messages import PROTOCOL, Answer, Ask, Facts, Held, Kind, Report, SourceHere, Tally, TroubleHere

COLUMNS = "train string, coach int, ts timestamp, boarding int"
START_US = 1_760_428_800_000_000


class Desk:
    """Stands where a `Client` would. `now` is moved by hand."""

    def __init__(self) -> None:
        self.machine, self.now, self._ids = Coordinator(), 0, count()

    def ask(self, verb: str, body: msgspec.Struct | None, kind: type[Any]) -> Any:
        ask = Ask(str(next(self._ids)), verb, to_body(Named() if body is None else body))
        commands = self.machine.handle(Arrived("user", ask), self.now, START_US + self.now)
        (answer,) = [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, Answer)]
        if answer.trouble:
            raise RoveError(answer.trouble)
        return from_body(answer.body, kind)

    def close(self) -> None:
        """Nothing to hang up."""

    def report(
        self,
        node: str,
        kind: Kind,
        parents: tuple[str, ...] = (),
        streams: tuple[str, ...] = (),
        running: dict[str, int] | None = None,
        tallies: tuple[Tally, ...] = (),
        trusts: bool = False,
        held: tuple[Held, ...] = (),
        taken_bytes: int = 0,
        shrunk: tuple[int, int] = (0, 0),
        troubles: dict[str, tuple[TroubleHere, ...]] | None = None,
        reaches: tuple[str, ...] | None = None,
        columns: str = COLUMNS,
    ) -> None:
        """A node says that it is there."""
        sources = tuple(SourceHere(stream=s, origin=Origin(s, node), columns=columns) for s in streams)
        report = Report(
            protocol=PROTOCOL,
            node=NodeId(node),
            start=1,
            number=1,
            whole=True,
            facts=Facts(
                kind=kind,
                address="",
                parents=tuple(map(NodeId, parents)),
                slots=8,
                memory_bytes=1 << 26,
                sources=sources,
                durable=kind != "device",
                trusts=trusts,
            ),
            running={QueryId(q): Version(v) for q, v in (running or {}).items()},
            unknown=(),
            tallies=tallies,
            refused={},
            held=held,
            taken_bytes=taken_bytes,
            shrunk=shrunk,
            troubles={QueryId(q): each for q, each in (troubles or {}).items()},
            reaches=None if reaches is None else tuple(map(NodeId, reaches)),
        )
        self.machine.handle(Arrived(node, report), self.now, START_US + self.now)

    def tick(self) -> None:
        """Let the coordinator look at its clock."""
        self.machine.handle(Tick(), self.now, START_US + self.now)

    def line_up(self, trusts: bool = False) -> None:
        """A gateway, an edge below it, and a tram with one stream below that."""
        self.report("gateway", "gateway", trusts=trusts)
        self.report("mast", "edge", ("gateway",), trusts=trusts)
        self.report("tram", "device", ("mast",), ("trains",))

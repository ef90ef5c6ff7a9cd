"""What one node will be told because of one event, in one message, and which of its orders it has taken."""

from __future__ import annotations

from dataclasses import dataclass, field

from rove.model.ids import QueryId
from rove.model.messages import PROTOCOL, Counted, Fragment, Learned, Orders, Peer


@dataclass(slots=True)
class Order:
    """One message to a node. Filled while one event is handled, then sent."""

    deploy: list[Fragment] = field(default_factory=list)
    stop: dict[QueryId, None] = field(default_factory=dict)
    leave: dict[QueryId, None] = field(default_factory=dict)
    plans: dict[str, bytes] = field(default_factory=dict)
    peers: tuple[Peer, ...] | None = None
    trouble: str = ""
    learn: Learned | None = None
    counted: dict[QueryId, Counted] = field(default_factory=dict)

    def message(self, number: int) -> Orders:
        return Orders(
            PROTOCOL,
            tuple(self.deploy),
            tuple(self.stop),
            self.peers,
            self.trouble,
            tuple(self.leave),
            self.plans,
            learn=self.learn,
            counted=self.counted,
            number=number,
        )


@dataclass(slots=True)
class Numbers:
    """The orders of one node. `sent` is the number of the last ones, `obeyed` the number of the last ones that it had
    taken when it reported, and `told` the number of those that last told it its part of a query."""

    sent: int = 0
    obeyed: int = 0
    told: dict[QueryId, int] = field(default_factory=dict)

    def next(self) -> int:
        """The number of the next orders."""
        self.sent += 1
        return self.sent

    def tells(self, query: QueryId) -> None:
        """The next orders tell the node its part of a query."""
        self.told[query] = self.sent + 1

    def knew(self, query: QueryId) -> bool:
        """Whether the node knew, when it reported, the last part of a query that it was told. A larger number than it
        was sent comes from an earlier coordinator."""
        return self.told.get(query, 0) <= (self.obeyed if self.obeyed <= self.sent else 0)

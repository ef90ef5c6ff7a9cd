"""What one node will be told because of one event, in one message."""

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

    def message(self) -> Orders:
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
        )

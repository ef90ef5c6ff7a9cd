"""Parks frames of queries that a node does not know yet.

Law: a parked frame is not acked, and its bytes count against the node's room until its query is deployed or stopped.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from rove.data.link.receipts import FrameReceipt
from rove.model.batch import Header
from rove.model.errors import must
from rove.model.events import Payload
from rove.model.ids import NodeId, QueryId


class Parked(NamedTuple):
    header: Header
    payload: Payload | None
    receipt: FrameReceipt


class Parking:
    """Frames by query, in the order of arrival."""

    def __init__(self) -> None:
        self._queries: dict[QueryId, deque[Parked]] = {}
        self.bytes = 0

    def put(self, query: QueryId, frame: Parked) -> None:
        self._queries.setdefault(query, deque()).append(frame)
        self.bytes += frame.receipt.bytes

    def take(self, query: QueryId) -> list[Parked]:
        """Take all frames of a query out."""
        frames = list(self._queries.pop(query, ()))
        self.bytes -= sum(frame.receipt.bytes for frame in frames)
        return frames

    def forget_stale(self, query: QueryId) -> None:
        """Drop the frames of a query that are of earlier sessions. The others stay: only an ack lets their senders
        forget them."""
        for frame in self.take(query):
            if not frame.receipt.stale:
                self.put(query, frame)

    def validate(self) -> None:
        """Its bytes are those of its frames. O(frames)."""
        held = sum(frame.receipt.bytes for frames in self._queries.values() for frame in frames)
        must(self.bytes == held, "parked bytes are those of parked frames", self.bytes, held)

    def of(self, peer: NodeId) -> int:
        """The bytes of the frames of a peer. O(frames)."""
        return sum(f.receipt.bytes for frames in self._queries.values() for f in frames if f.receipt.link.peer == peer)

    def queries(self) -> tuple[QueryId, ...]:
        return tuple(self._queries)

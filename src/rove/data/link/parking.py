"""Frames of queries that a node does not know yet.

Law: what is parked is not acked, and its bytes count against the node's room until its query comes or is stopped.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from rove.data.link.receipts import FrameReceipt
from rove.model.batch import Header
from rove.model.events import Payload
from rove.model.ids import QueryId


class Parked(NamedTuple):
    header: Header
    payload: Payload | None
    receipt: FrameReceipt


class Parking:
    """Frames by query, in the order they came."""

    def __init__(self) -> None:
        self._queries: dict[QueryId, deque[Parked]] = {}
        self.bytes = 0

    def put(self, query: QueryId, frame: Parked) -> None:
        self._queries.setdefault(query, deque()).append(frame)
        self.bytes += frame.receipt.bytes

    def take(self, query: QueryId) -> list[Parked]:
        """All frames of a query, which are parked no longer."""
        frames = list(self._queries.pop(query, ()))
        self.bytes -= sum(frame.receipt.bytes for frame in frames)
        return frames

    def queries(self) -> tuple[QueryId, ...]:
        return tuple(self._queries)

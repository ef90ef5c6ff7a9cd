"""Reads rows from the disk that a link will send next.

Law: rows are requested before their turn, a bounded number of bytes ahead, and held until they are sent. Rows that are
gone for good, or cannot be read in many attempts, are lost, and their header says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from rove.data.events import Load, Loaded
from rove.data.log.segments.stored import Stored
from rove.data.store.kept_batch import KeptBatch
from rove.model.errors import must
from rove.model.events import Payload
from rove.model.ids import NodeId

AHEAD_BYTES = 1024 * 1024  # bytes that one link requests ahead; the last batch may exceed it
ATTEMPTS_MAX = 8  # for one batch, over about a quarter of a minute
PAUSE_US_MIN = 100_000  # after the first attempt for a batch that failed; after each further one twice as long


class Loading:
    """For one link. `bytes` counts rows that were requested and not sent yet."""

    def __init__(self, peer: NodeId) -> None:
        self._peer = peer
        self._asked: dict[int, tuple[KeptBatch, int]] = {}  # the batch and its bytes, by number of the request
        self._orders = 0
        self._due_us = 0
        self._must_ask_again = False  # whether some rows must be requested again
        self._out: list[Load] = []
        self.bytes = 0
        self.trouble = ""

    def ready(self, entry: KeptBatch) -> bool:
        """Whether a batch can be sent: its rows are in memory, or it has none."""
        return not isinstance(entry.payload, Stored) or entry.loaded is not None

    def unasked(self, entry: KeptBatch) -> bool:
        """Whether the rows of a batch are on the disk, and were not requested yet."""
        return not self.ready(entry) and not entry.load

    @property
    def full(self) -> bool:
        return self.bytes >= AHEAD_BYTES

    def ask(self, entry: KeptBatch, now: int) -> None:
        """Request the rows of a batch, unless they are read or requested already."""
        if self.ready(entry) or entry.load or not isinstance(entry.payload, Stored):
            return
        if now < self._due_us:
            self._must_ask_again = True
            return
        self._orders += 1
        entry.load = self._orders
        self._asked[entry.load] = (entry, len(entry.payload))
        self.bytes += len(entry.payload)
        self._out.append(Load(self._peer, entry.load, entry.payload))

    def asked(self) -> list[Load]:
        """The rows to read from the disk now."""
        out, self._out = self._out, []
        return out

    def loaded(self, event: Loaded, now: int) -> KeptBatch | None:
        """Take an answer. Returns the batch if its rows can never be read."""
        entry, size = self._asked.pop(event.order, (None, 0))
        self.bytes -= size
        if entry is None:
            return None
        entry.load = 0
        if not isinstance(entry.payload, Stored):
            return None  # evicted meanwhile
        if event.payload is not None:
            entry.loaded = event.payload
            self.bytes += len(event.payload)
            entry.failed, self.trouble = 0, ""
            return None
        entry.failed += 1
        if event.gone or entry.failed >= ATTEMPTS_MAX:
            entry.failed, self.trouble = 0, ""
            return entry
        self._must_ask_again, self.trouble = True, event.trouble
        self._due_us = max(self._due_us, now + PAUSE_US_MIN * 2 ** (entry.failed - 1))
        return None

    def due(self, now: int) -> bool:
        """Whether to request again now. True once for each attempt."""
        if self._must_ask_again and now >= self._due_us:
            self._must_ask_again = False
            return True
        return False

    def validate(self, entries: Iterable[KeptBatch]) -> None:
        """Its bytes are those asked for, and those held, of the batches on its link. O(batches)."""
        held = sum(len(entry.loaded) for entry in entries if entry.loaded is not None)
        asked = sum(size for _, size in self._asked.values())
        must(self.bytes == held + asked, "bytes read ahead add up", self.bytes, held, asked)

    def taken(self, entry: KeptBatch) -> Payload | None:
        """The rows of a ready batch, for sending. They are no longer held here."""
        rows = entry.loaded if isinstance(entry.payload, Stored) else entry.in_memory
        self.let_go(entry)
        return rows

    def let_go(self, entry: KeptBatch) -> None:
        """A batch is not sent now, so its rows stay on the disk."""
        if entry.load:
            self.bytes -= self._asked.pop(entry.load, (entry, 0))[1]
            entry.load = 0
        if entry.loaded is not None:
            self.bytes -= len(entry.loaded)
            entry.loaded = None

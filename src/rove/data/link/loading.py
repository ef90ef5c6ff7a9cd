"""Rows that lie on the disk and are about to be sent.

Law: rows are asked for before their turn comes, a bounded number of bytes ahead, and are held until they are sent. Rows
that are gone for good, or cannot be read in many attempts, are lost, and their header says so.
"""

from __future__ import annotations

from rove.data.events import Load, Loaded
from rove.data.log.segments.stored import Stored
from rove.data.store.kept_batch import KeptBatch
from rove.model.events import Payload
from rove.model.ids import NodeId

AHEAD_BYTES = 1024 * 1024  # that one link asks for before they are sent; the last may go over it
ATTEMPTS_MAX = 8  # in a row, over about half a minute
PAUSE_US_MIN = 100_000  # after an attempt that failed; each pause is twice as long as the one before


class Loading:
    """Of one link. `bytes` are those asked for and not sent yet."""

    def __init__(self, peer: NodeId) -> None:
        self._peer = peer
        self._asked: dict[int, tuple[KeptBatch, int]] = {}  # with its bytes
        self._orders = 0
        self._failures, self._due_us = 0, 0
        self._owes = False  # whether something has to be asked for again
        self._out: list[Load] = []
        self.bytes = 0
        self.trouble = ""

    def ready(self, entry: KeptBatch) -> bool:
        """Whether a batch can be sent: its rows are in memory, or it has none."""
        return not isinstance(entry.payload, Stored) or entry.loaded is not None

    @property
    def full(self) -> bool:
        return self.bytes >= AHEAD_BYTES

    def ask(self, entry: KeptBatch, now: int) -> None:
        """Have its rows read, if they are not, and nobody reads them."""
        if self.ready(entry) or entry.load or not isinstance(entry.payload, Stored):
            return
        if now < self._due_us:
            self._owes = True
            return
        self._orders += 1
        entry.load = self._orders
        self._asked[entry.load] = (entry, len(entry.payload))
        self.bytes += len(entry.payload)
        self._out.append(Load(self._peer, entry.load, entry.payload))

    def asked(self) -> list[Load]:
        """What is to be read from the disk now."""
        out, self._out = self._out, []
        return out

    def loaded(self, event: Loaded, now: int) -> KeptBatch | None:
        """An answer; the batch whose rows cannot be read any more, if it is one."""
        entry, size = self._asked.pop(event.order, (None, 0))
        self.bytes -= size
        if entry is None:
            return None
        entry.load = 0
        if not isinstance(entry.payload, Stored):
            return None  # it was thrown away meanwhile
        if event.payload is not None:
            entry.loaded = event.payload
            self.bytes += len(event.payload)
            self._failures, self.trouble = 0, ""
            return None
        self._failures += 1
        if event.gone or self._failures >= ATTEMPTS_MAX:
            self._failures, self.trouble = 0, ""
            return entry
        self._owes, self.trouble = True, event.trouble
        self._due_us = now + PAUSE_US_MIN * 2 ** (self._failures - 1)
        return None

    def due(self, now: int) -> bool:
        """Whether it is time to ask again; it is said once."""
        if self._owes and now >= self._due_us:
            self._owes = False
            return True
        return False

    def taken(self, entry: KeptBatch) -> Payload | None:
        """The rows of a batch that is ready, to be sent now; they are held no longer."""
        rows = entry.loaded if isinstance(entry.payload, Stored) else entry.in_memory
        self.let_go(entry)
        return rows

    def let_go(self, entry: KeptBatch) -> None:
        """A batch is not sent for now: its rows stay on the disk."""
        if entry.load:
            self.bytes -= self._asked.pop(entry.load, (entry, 0))[1]
            entry.load = 0
        if entry.loaded is not None:
            self.bytes -= len(entry.loaded)
            entry.loaded = None

"""A queue of waiting batches, the oldest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rove.data.store.kept_batch import KeptBatch


class Queue(deque[KeptBatch]):
    """A queue that removes gone batches from time to time, so it is at most twice as long as the batches that wait."""

    _gone = 0  # how many entries may be gone

    def sweep(self) -> None:
        """One more entry may be gone. When half of the entries may be gone, all are checked. Amortized O(1)."""
        self._gone += 1
        if 2 * self._gone > len(self):
            self.keep(lambda entry: not entry.gone)

    def keep(self, wanted: Callable[[KeptBatch], bool]) -> None:
        """Keep only the wanted entries. O(entries)."""
        kept = [entry for entry in self if wanted(entry)]
        self.clear()
        self.extend(kept)
        self._gone = 0

"""Batches that wait for their turn, the oldest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rove.data.store.kept_batch import KeptBatch


class Queue(deque[KeptBatch]):
    """A queue that forgets those that are gone, some time: it is never more than twice as long as what waits."""

    _gone = 0  # of its entries, those that may be

    def sweep(self) -> None:
        """One more may be gone. A look at all of them when half of them may be. O(1), spread out."""
        self._gone += 1
        if 2 * self._gone > len(self):
            self.keep(lambda entry: not entry.gone)

    def keep(self, wanted: Callable[[KeptBatch], bool]) -> None:
        """Only these. O(entries)."""
        kept = [entry for entry in self if wanted(entry)]
        self.clear()
        self.extend(kept)
        self._gone = 0

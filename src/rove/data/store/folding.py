"""Folds batches for which there is no room into partial aggregates, for queries that ask for it.

Law: no row is lost. The oldest batch that is not folded is next. A batch can be folded if the next operator that is
applied to it, on any node, is a window; the window takes the folded rows as it would have taken the rows.
"""

from __future__ import annotations

from msgspec.structs import replace

from rove.data.fragment.running_fragment import RunningFragment
from rove.data.operators.folded import Fold, folds_into
from rove.data.store.degrading import Degradable, decoded, encoded
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.pack_queue import BYTES_MIN
from rove.data.store.store import Store
from rove.model.errors import DataError

# Batches tried at a time. With many keys folding may save nothing; the bound keeps a new batch from waiting.
TRIES = 16


class Folding:
    """The batches of one query that may be folded."""

    def __init__(self, store: Store, codec: str) -> None:
        self._store, self._codec = store, codec
        self._entries = Degradable(store)
        self._folds: dict[int, Fold | None] = {}  # by stage; None where nothing can be folded

    def waits(self, entry: KeptBatch) -> None:
        self._entries.add(entry)

    def degrade(self, running: RunningFragment) -> tuple[KeptBatch, int] | None:
        """Fold a batch. O(rows of the batch, and of batches that get no smaller; each is tried once)."""
        for _ in range(TRIES):
            found = self._entries.next(running)
            if found is None:
                return None
            if self._folded(found[0], running):
                return found[0], 0
        return None

    def _folded(self, entry: KeptBatch, running: RunningFragment) -> bool:
        header, payload = entry.header, entry.in_memory
        fold = self._fold(header.stage, running)
        rows = decoded(entry, running) if fold is not None and payload is not None else None
        if fold is None or payload is None or rows is None or rows.num_rows != header.rows:
            return False
        try:
            states = fold(rows)
        except DataError:  # the window will report the error when it takes the rows
            return False
        packs = header.packed > 0 and states.nbytes >= BYTES_MIN
        smaller, packed = encoded(states, packs, None, self._codec)
        if not states.num_rows or len(smaller) >= len(payload):
            return False
        self._store.replace(entry, replace(header, rows=states.num_rows, folded=True, packed=packed), smaller)
        return True

    def _fold(self, stage: int, running: RunningFragment) -> Fold | None:
        if stage not in self._folds:
            window = folds_into(running.stages, stage)
            self._folds[stage] = None if window is None else Fold(window)
        return self._folds[stage]

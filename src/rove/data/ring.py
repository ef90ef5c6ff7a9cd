"""What becomes of batches that cannot be sent: they are packed, and thrown away when there is no room.

Law: rows go only by the policy's word, never those that may have arrived, and whoever wants to know is told which.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rove.data.events import Evicted, Pack, Packed
from rove.data.eviction import policy
from rove.data.settings import WorkerSettings
from rove.data.shrinking import Shrinking
from rove.data.store import Entry, Store
from rove.data.tier import Tier
from rove.model.ids import QueryId, source_of


class Ring:
    """The rules for a store of bounded size."""

    def __init__(self, store: Store, settings: WorkerSettings, tier: Tier | None = None) -> None:
        self._store, self._tier = store, tier
        self._policy = policy(settings.evict, settings.weights)
        self._shrinking = Shrinking(store) if settings.compress != "off" else None

    def waits(self, entry: Entry, schema: pa.Schema) -> list[Pack]:
        """A batch could not be sent at once."""
        return [] if self._shrinking is None else self._shrinking.waits(entry, schema)

    def packed(self, event: Packed) -> list[Pack]:
        return [] if self._shrinking is None else self._shrinking.packed(event)

    def make_room(self, query: QueryId) -> Iterator[Evicted]:
        """Throw away what the policy points at, after a batch of `query` has come, until what is left fits, on the disk
        if that takes some."""
        self._spill()
        while self._store.room < 0 and (victim := self._policy.victim(self._store, query)) is not None:
            gone = victim.header
            self._store.evict(victim)
            self._spill()
            yield Evicted(QueryId(gone.query), source_of(gone.origin), gone.seq, gone.through, gone.born)

    def _spill(self) -> None:
        if self._tier is not None:
            self._tier.press()
            self._store.evicts_disk = self._tier.evicts

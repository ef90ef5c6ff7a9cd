"""Eviction policies: which batch a full store drops.

Law: a policy only chooses a batch; the store does the accounting. A batch that was sent and not acked is never a
candidate, because it may have arrived. A policy is any object with `victim`, so users may write their own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from rove.data.events import Note
from rove.data.store.kept_batch import KeptBatch
from rove.model.errors import RAISED_BY_USERS, SetupError, nearest


class Candidates:
    """The batches that may be evicted, by query, the oldest first. Every call is O(1)."""

    def __init__(self, bytes_of: Callable[[str], int]) -> None:
        self.bytes_of = bytes_of  # the bytes of a query, including batches that may not be evicted
        self._entries: dict[str, OrderedDict[int, KeptBatch]] = {}

    def queries(self) -> Iterable[str]:
        return self._entries

    def batches(self, query: str) -> int:
        """How many batches of a query there are."""
        return len(self._entries.get(query, ()))

    def oldest(self, query: str) -> KeptBatch | None:
        return next(iter(self._entries.get(query, {}).values()), None)

    def __contains__(self, entry: KeptBatch) -> bool:
        return entry.order in self._entries.get(entry.header.query, ())

    def __iter__(self) -> Iterator[KeptBatch]:
        return (entry for entries in self._entries.values() for entry in entries.values())

    def add(self, entry: KeptBatch) -> None:
        self._entries.setdefault(entry.header.query, OrderedDict())[entry.order] = entry

    def remove(self, entry: KeptBatch) -> None:
        """Remove a batch that may no longer be evicted."""
        mine = self._entries.get(entry.header.query)
        if mine is not None and mine.pop(entry.order, None) is not None and not mine:
            del self._entries[entry.header.query]


class Policy(Protocol):
    """Chooses what to evict when a batch of `query` arrived and there is no room; None for nothing."""

    def victim(self, candidates: Candidates, query: str) -> KeptBatch | None: ...


class Block:
    """Evict nothing. Sources wait until there is room."""

    def victim(self, candidates: Candidates, query: str) -> KeptBatch | None:
        return None


class Fifo:
    """The oldest batch of all. O(queries)."""

    def victim(self, candidates: Candidates, query: str) -> KeptBatch | None:
        oldest = [entry for name in candidates.queries() if (entry := candidates.oldest(name)) is not None]
        return min(oldest, key=lambda entry: entry.order, default=None)


class QueryAware:
    """The oldest batch of the same query, else of the query with most batches: Algorithm 1 of NebulaStream-MSS.
    O(1), or O(queries) where the query has none itself."""

    def victim(self, candidates: Candidates, query: str) -> KeptBatch | None:
        if candidates.batches(query) > 1:  # besides the batch that has just come
            return candidates.oldest(query)
        others = [name for name in candidates.queries() if name != query]
        return candidates.oldest(max(others, key=lambda name: (candidates.batches(name), name), default=query))


class Priority:
    """The oldest batch of the query with the most bytes for its weight. The default weight is 1. O(queries)."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        for query, weight in weights.items():
            if weight <= 0:
                raise SetupError(f"query `{query}` has weight {weight:g}; a weight must be above 0")
        self._weights = dict(weights)

    def victim(self, candidates: Candidates, query: str) -> KeptBatch | None:
        def heaviness(query: str) -> tuple[float, str]:
            return candidates.bytes_of(query) / self._weights.get(query, 1.0), query

        heaviest = max(candidates.queries(), key=heaviness, default=None)
        return None if heaviest is None else candidates.oldest(heaviest)


class Guarded:
    """A user's policy. If it raises, or chooses a batch that may not be evicted, the oldest batch is evicted instead.
    `tell` gets the first failure."""

    def __init__(self, policy: Policy, tell: Callable[[Note], None]) -> None:
        self._policy, self._instead, self._tell, self._failed = policy, Fifo(), tell, False

    def victim(self, candidates: Candidates, query: str) -> KeptBatch | None:
        try:
            found = self._policy.victim(candidates, query)
            if found is None or found in candidates:
                return found
        except RAISED_BY_USERS as error:
            if not self._failed:  # log once, because the policy is called for every batch
                name = type(self._policy).__name__
                self._tell(Note(f"the eviction policy {name} failed; the oldest batch is evicted instead", error))
            self._failed = True
        return self._instead.victim(candidates, query)


POLICIES = ("block", "fifo", "query_aware", "priority")


def policy(name: str, weights: Mapping[str, float] | None = None) -> Policy:
    """A policy by its name."""
    match name:
        case "block":
            return Block()
        case "fifo":
            return Fifo()
        case "query_aware":
            return QueryAware()
        case "priority":
            return Priority(weights or {})
    raise SetupError(f"no eviction policy `{name}`; {nearest(name, list(POLICIES))}")

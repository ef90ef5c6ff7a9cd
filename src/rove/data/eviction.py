"""What a full store throws away.

Law: a policy only points at a batch; the store counts what its going means. A batch that was sent and not acked is
never pointed at: it may have arrived. A policy is any object with `victim`, so users may write their own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from rove.data.store import Entry, Store
from rove.model.errors import SetupError, nearest

log = logging.getLogger(__name__)


class Policy(Protocol):
    """Chooses what goes when a batch of `query` has come and there is no room; None if nothing may."""

    def victim(self, store: Store, query: str) -> Entry | None: ...


class Block:
    """Nothing goes: sources wait until there is room."""

    def victim(self, store: Store, query: str) -> Entry | None:
        return None


class Fifo:
    """The oldest batch of all. O(queries)."""

    def victim(self, store: Store, query: str) -> Entry | None:
        oldest = [entry for name in store.queries() if (entry := store.oldest(name)) is not None]
        return min(oldest, key=lambda entry: entry.order, default=None)


class QueryAware:
    """The oldest batch of the same query, else of the query with most batches: Algorithm 1 of NebulaStream-MSS.
    O(1), or O(queries) where the query has none itself."""

    def victim(self, store: Store, query: str) -> Entry | None:
        if store.batches(query) > 1:  # beside the one that has just come
            return store.oldest(query)
        others = [name for name in store.queries() if name != query and store.batches(name)]
        return store.oldest(max(others, key=lambda name: (store.batches(name), name), default=query))


class Priority:
    """The oldest batch of the query that has most bytes for its weight. Queries without a weight have 1. O(queries)."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        for query, weight in weights.items():
            if weight <= 0:
                raise SetupError(f"query `{query}` has weight {weight:g}; a weight is above 0")
        self._weights = dict(weights)

    def victim(self, store: Store, query: str) -> Entry | None:
        full = [name for name in store.queries() if store.batches(name)]
        heaviest = max(full, key=lambda name: (store.bytes_of(name) / self._weights.get(name, 1.0), name), default=None)
        return None if heaviest is None else store.oldest(heaviest)


class Guarded:
    """A user's policy. Where it fails, or points at what may not go, the oldest batch of all goes instead."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._instead = policy, Fifo()

    def victim(self, store: Store, query: str) -> Entry | None:
        try:
            found = self._policy.victim(store, query)
            if found is None or (found.may_go and store.holds(found)):
                return found
        except Exception:
            log.exception("the eviction policy %s failed", type(self._policy).__name__)
        return self._instead.victim(store, query)


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

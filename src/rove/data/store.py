"""Encoded batches that a node keeps, with exact accounts of their bytes and rows.

Law: what is put in is there until it is dropped, and the accounts are those of what is there, by query and by origin.
A store decides nothing about roads; links and policies do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from rove.model.batch import Header
from rove.model.events import Payload
from rove.model.ids import QueryId
from rove.model.messages import Held

ENTRY_BYTES = 128  # what a batch without rows is counted as: its header, and the objects around it


class Receipt(Protocol):
    """Whoever sent a batch here, and may forget it once it is in safe hands."""

    def release(self) -> None: ...


class Entry:
    """One batch, and since when it is here; `number` is its frame on the link that carries it, 0 before it has one."""

    __slots__ = ("bytes", "header", "number", "payload", "receipt", "since")

    def __init__(self, header: Header, payload: Payload | None, receipt: Receipt | None, since: int) -> None:
        self.header, self.payload, self.receipt, self.since = header, payload, receipt, since
        self.bytes = ENTRY_BYTES if payload is None else ENTRY_BYTES + len(payload)
        self.number = 0


class Store:
    """A bounded number of bytes. `put` never refuses: who fills it looks at `room` first, and stops in time."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.bytes_most = 0
        self._entries: dict[str, dict[int, Entry]] = {}  # by query, the oldest first
        self._bytes: dict[str, int] = {}
        self._rows: dict[tuple[str, str], int] = {}

    def put(self, header: Header, payload: Payload | None, receipt: Receipt | None = None, now: int = 0) -> Entry:
        """Keep a batch. O(1)."""
        entry = Entry(header, payload, receipt, now)
        self._entries.setdefault(header.query, {})[id(entry)] = entry
        self._account(entry, 1)
        if self.bytes > self.bytes_most:
            self.bytes_most = self.bytes
        return entry

    def drop(self, entry: Entry) -> None:
        """Forget a batch: it is in safe hands, or nobody wants it any more. O(1)."""
        del self._entries[entry.header.query][id(entry)]
        self._account(entry, -1)
        if entry.receipt is not None:
            entry.receipt.release()

    @property
    def room(self) -> int:
        """Bytes left below the limit; negative if the last batch went over it."""
        return self.limit_bytes - self.bytes

    def bytes_of(self, query: str) -> int:
        return self._bytes.get(query, 0)

    def held(self, now: int) -> tuple[Held, ...]:
        """Bytes kept, and for how long the oldest of them, by query. O(queries)."""
        return tuple(
            Held(QueryId(query), self._bytes[query], now - next(iter(entries.values())).since)
            for query, entries in sorted(self._entries.items())
            if entries
        )

    def rows(self) -> dict[tuple[str, str], int]:
        """Rows kept, as they were at their origins, by query and origin."""
        return dict(self._rows)

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entries in self._entries.values() for entry in entries.values())

    def _account(self, entry: Entry, sign: int) -> None:
        header = entry.header
        self.bytes += sign * entry.bytes
        self._bytes[header.query] = self._bytes.get(header.query, 0) + sign * entry.bytes
        key = (header.query, header.origin)
        self._rows[key] = self._rows.get(key, 0) + sign * header.born

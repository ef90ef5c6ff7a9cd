"""A store as anybody would write it first: one list of batches, and every account added up anew when it is asked for.

Law: this file knows the laws of the store and nothing of how it keeps them. It imports no part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from msgspec.structs import replace

from rove.model.batch import Header

HEADER_BYTES = 128  # what a batch counts beside its rows


@dataclass(eq=False)
class Batch:
    """One batch that is kept. Those of a `group` have the same rows; the first of them counts the bytes."""

    header: Header
    rows: bytes | None
    since: int
    receipt: bool = False
    alone: bool = False
    place: Literal["memory", "leaving", "disk"] = "memory"
    sent: bool = False
    original: Batch | None = None
    copied: bool = False
    group: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group = [self]

    @property
    def untouched(self) -> bool:
        """Whether nobody else can have it."""
        return self.original is None and not (self.copied or self.sent or self.receipt)

    @property
    def may_go(self) -> bool:
        return self.untouched and self.rows is not None

    @property
    def may_change(self) -> bool:
        """Whether its rows are in memory, and nobody else but those who gave it to us can have them."""
        first = self.original is None and not self.copied and not self.sent
        return first and self.rows is not None and self.place == "memory"

    @property
    def folds(self) -> bool:
        counts = self.header.born or self.header.evicted or self.header.lost
        return self.rows is None and not self.header.late and self.untouched and not (self.alone and counts)

    @property
    def rows_bytes(self) -> int:
        """Bytes of its rows in memory that count as its own."""
        mine = self.original is None and self.group[0] is self and self.place != "disk"
        return len(self.rows) if mine and self.rows is not None else 0

    @property
    def disk_bytes(self) -> int:
        return len(self.rows) if self.place == "disk" and self.original is None and self.rows is not None else 0


class Twin:
    """Batches in the order in which they came."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.on_disk: list[Batch] = []  # all that ever were, in the order in which they came to be there
        self.released: list[Batch] = []  # those whose senders may forget them
        self.taken_bytes = 0
        self.shrunk = (0, 0)

    # What is done to it

    def put(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.taken_bytes += HEADER_BYTES + (len(batch.rows) if batch.rows is not None else 0)
        self._fold(batch)

    def share(self, first: Batch, other: Batch) -> None:
        first.group.append(other)
        other.group = first.group

    def copy(self, batch: Batch) -> Batch:
        batch.copied = True
        found = Batch(batch.header, batch.rows, batch.since, place=batch.place, original=batch)
        self.batches.append(found)
        return found

    def drop(self, batch: Batch) -> None:
        for copy in [c for c in self.batches if c.original is batch and not c.sent]:
            self.drop(copy)
        self._leave_group(batch)
        self.batches.remove(batch)
        if batch.receipt:
            self.released.append(batch)

    def evict(self, batch: Batch) -> None:
        header = batch.header
        if header.late:
            self.drop(batch)
            return
        self._leave_group(batch)
        batch.rows, batch.place = None, "memory"
        evicted = header.evicted + header.born
        batch.header = replace(header, rows=0, born=0, evicted=evicted, packed=0, event_min=None, event_max=None)
        self._fold(batch)

    def spilled(self, batch: Batch) -> None:
        self._leave_group(batch)
        batch.place = "disk"
        self.on_disk.append(batch)
        for copy in self.batches:
            if copy.original is batch:
                copy.place = "disk"

    def lost(self, batch: Batch) -> None:
        """Its rows cannot be read any more."""
        header = batch.header
        batch.rows, batch.place = None, "memory"
        lost = header.lost + header.born
        batch.header = replace(header, rows=0, born=0, lost=lost, packed=0, event_min=None, event_max=None)

    def packed(self, batch: Batch, small: bytes) -> None:
        assert batch.rows is not None
        plain = len(batch.rows)
        self.shrunk = (self.shrunk[0] + plain, self.shrunk[1] + len(small))
        for each in batch.group:
            each.rows, each.header = small, replace(each.header, packed=plain)

    def _leave_group(self, batch: Batch) -> None:
        batch.group.remove(batch)
        batch.group = [batch]

    def _fold(self, batch: Batch) -> None:
        """A header and its neighbours of one origin become one: first with the one before it, then with the one after
        it. Others stay: rows that cannot be read leave headers beside each other."""
        for _ in range(2):
            chain = [
                b for b in self.batches if b.original is None and not b.header.late and _chain(b.header, batch.header)
            ]
            for first, second in pairwise(chain):
                if batch in (first, second) and first.folds and second.folds and _follow(first.header, second.header):
                    self._merge(first, second)
                    batch = first
                    break

    def _merge(self, first: Batch, second: Batch) -> None:
        a, b = first.header, second.header
        first.header = replace(
            a,
            through=b.through,
            watermark=max(a.watermark, b.watermark),
            born=a.born + b.born,
            evicted=a.evicted + b.evicted,
            lost=a.lost + b.lost,
            produced_at=b.produced_at,
        )
        self.drop(second)

    # What goes when there is no room

    def candidates(self, place: str) -> dict[str, list[Batch]]:
        """What may go, by query, the oldest first; on the disk, what was there first."""
        found: dict[str, list[Batch]] = {}
        for batch in self.on_disk if place == "disk" else self.batches:
            if batch.may_go and batch.place == place and batch in self.batches:
                found.setdefault(batch.header.query, []).append(batch)
        return found

    def victim(self, policy: str, weights: dict[str, float], place: str, query: str) -> Batch | None:
        by_query = self.candidates(place)
        if not by_query or policy == "block":
            return None
        if policy == "fifo":
            return min((batches[0] for batches in by_query.values()), key=self.batches.index)
        if policy == "query_aware":
            others = {name: len(batches) for name, batches in by_query.items() if name != query}
            own = len(by_query.get(query, ())) > 1 or not others
            return by_query[query if own else max(others, key=lambda name: (others[name], name))][0]
        return by_query[max(by_query, key=lambda name: (self.bytes_of(name) / weights.get(name, 1.0), name))][0]

    def make_room(
        self, limit_bytes: int, policy: str, weights: dict[str, float], query: str
    ) -> Iterator[tuple[str, int, int, int, bool]]:
        """What goes from memory, as (query, seq, through, rows, late)."""
        while self.room(limit_bytes) < 0:
            victim = self.victim(policy, weights, "memory", query)
            if victim is None:
                return
            for each in [b for b in victim.group if b.may_go]:
                gone = each.header
                self.evict(each)
                yield gone.query, gone.seq, gone.through, gone.born, gone.late

    # What it tells

    def of(self, query: str) -> list[Batch]:
        return [b for b in self.batches if b.header.query == query]

    def queries(self) -> list[str]:
        return sorted({b.header.query for b in self.batches})

    @property
    def bytes(self) -> int:
        return sum(HEADER_BYTES + b.rows_bytes for b in self.batches)

    @property
    def disk_bytes(self) -> int:
        return sum(b.disk_bytes for b in self.batches)

    @property
    def leaving_bytes(self) -> int:
        return sum(b.rows_bytes for b in self.batches if b.place == "leaving")

    def room(self, limit_bytes: int) -> int:
        return limit_bytes - self.bytes + self.leaving_bytes

    def bytes_of(self, query: str) -> int:
        return sum(HEADER_BYTES + b.rows_bytes + b.disk_bytes for b in self.of(query))

    def rows(self) -> dict[tuple[str, str], int]:
        found: Counter[tuple[str, str]] = Counter()
        for batch in self.batches:
            if batch.original is None and batch.header.born:
                found[batch.header.query, batch.header.origin] += batch.header.born
        return dict(found)

    def oldest_us(self, query: str, now: int) -> int:
        return now - next((b.since for b in self.of(query) if b.rows is not None), now)

    def unwritten(self) -> list[Batch]:
        """What may be written to the disk, the oldest first."""
        made_here = (b for b in self.batches if b.original is None and not b.receipt and not b.header.late)
        return [b for b in made_here if b.rows is not None and b.place == "memory"]


def _chain(header: Header, like: Header) -> bool:
    """Whether two batches are numbered together, and have come equally far."""
    return (header.query, header.origin, header.stage) == (like.query, like.origin, like.stage)


def _follow(a: Header, b: Header) -> bool:
    return a.through + 1 == b.seq and a.epoch == b.epoch

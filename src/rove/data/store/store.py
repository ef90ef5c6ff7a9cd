"""The store: encoded batches that a node keeps, with exact accounts of their bytes and rows.

Law: a batch is in the store until it is dropped, and the accounts equal its content, by query and by origin. An evicted
batch leaves its header, which says how many rows were evicted. Neighbouring headers are merged, so there are never more
headers than batches between them. So numbers have no gaps, and evicted rows are counted at the end. A store decides
nothing about routes; links and policies do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from rove.data.log.segments.stored import Stored
from rove.data.store.eviction import Candidates
from rove.data.store.kept_batch import KEPT_BYTES_MIN, KeptBatch, Receipt
from rove.model.batch import Header, without_rows
from rove.model.errors import must
from rove.model.events import Payload
from rove.model.foreign.checks import HEADER_ROWS_MAX, counted
from rove.model.ids import Origin, QueryId
from rove.model.messages import Held
from rove.model.spans import Coverage, both

K = TypeVar("K", bound=Hashable)


class Store:
    """A bounded number of bytes. `put` never refuses: callers check `room` first, and stop in time."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.disk_bytes = 0
        self.leaving_bytes = 0  # bytes in memory that are being written to the disk
        self.bytes_taken = 0
        self.damage: dict[QueryId, str] = {}  # why rows on the disk were lost for the first time
        self.shrunk = (0, 0)  # bytes of all packed rows, before and after packing
        self._entries: dict[str, dict[int, KeptBatch]] = {}  # by query, the oldest first
        self._bytes: dict[str, int] = {}
        self._rows: dict[tuple[str, Origin], int] = {}
        self._pieces: dict[tuple[str, Origin], int] = {}  # of states, by query and origin
        self._names: dict[tuple[str, Origin], Coverage] = {}  # which batches are kept, without late ones
        self._late: dict[tuple[str, Origin], Coverage] = {}  # the batches whose late rows are kept
        self.in_memory = Candidates(self.bytes_of)  # batches that may be evicted to free memory
        self.on_disk = Candidates(self.bytes_of)  # batches that may be evicted to free disk space
        self._unwritten: OrderedDict[int, KeptBatch] = (
            OrderedDict()
        )  # batches of this node with rows that are not being written to the disk
        self._last: dict[tuple[str, Origin, int], KeptBatch] = {}  # the newest batch, by query, origin and stage
        self._count = 0

    def put(
        self,
        header: Header,
        payload: Payload | Stored | None,
        receipt: Receipt | None = None,
        now: int = 0,
        alone: bool = False,
    ) -> KeptBatch:
        """Keep a batch. A header may be `gone` at once, merged into the header before it, unless it must stay `alone`:
        it may have been sent before, and merged counts could not be separated again. O(1)."""
        entry = KeptBatch(header, payload, receipt)
        entry.alone = alone
        self._count += 1
        entry.order, entry.since = self._count, now
        if entry.may_go:
            self.in_memory.add(entry)
            if not header.late:
                self._unwritten[entry.order] = entry
        if not header.late:  # late rows are outside of the sequence of numbers
            key = (header.query, header.origin, header.stage)
            entry.before = self._last.get(key)
            if entry.before is not None:
                entry.before.after = entry
            self._last[key] = entry
        self._entries.setdefault(header.query, {})[id(entry)] = entry
        self._account(entry, 1)
        self.bytes_taken += entry.bytes
        self._fold(entry)
        return entry

    @property
    def order(self) -> int:
        """The order of the newest batch that was put here."""
        return self._count

    def copy(self, entry: KeptBatch) -> KeptBatch:
        """A copy of a batch for another route. From now on the batch may arrive, so it is not evicted. O(1)."""
        found = KeptBatch(entry.header, entry.payload, None)
        found.original, found.bytes, found.since = entry, KEPT_BYTES_MIN, entry.since
        entry.copies.append(found)
        self.sent(entry)
        self._entries[entry.header.query][id(found)] = found
        self._account(found, 1)
        return found

    def share(self, entry: KeptBatch, other: KeptBatch) -> None:
        """Keep the rows of two waiting batches once, because they are the same. O(1)."""
        self._account(other, -1)
        if entry.sharers is None:
            entry.sharers = [entry]
        entry.sharers.append(other)
        other.payload, other.bytes, other.sharers = entry.payload, KEPT_BYTES_MIN, entry.sharers
        self._account(other, 1)

    def _unshare(self, entry: KeptBatch) -> None:
        """Let a batch no longer share its rows. Another sharer counts them. O(queries that share them)."""
        sharers, entry.sharers = entry.sharers, None
        if sharers is None:
            return
        first = sharers[0] is entry
        sharers.remove(entry)
        if first and sharers:
            heir, rows_bytes = sharers[0], entry.bytes - KEPT_BYTES_MIN
            self._account(heir, -1)
            heir.bytes = entry.bytes
            self._account(heir, 1)
            self._account(entry, -1)
            entry.bytes = KEPT_BYTES_MIN
            self._account(entry, 1)
            if heir.stored:  # the heir is being written to the disk too, so these bytes still leave
                heir.leaving_bytes = rows_bytes
                self.leaving_bytes += rows_bytes

    def drop(self, entry: KeptBatch) -> None:
        """Forget a batch that is acked or no longer wanted, with its unsent copies. O(copies and sharers)."""
        query = entry.header.query
        self._unshare(entry)
        mine = self._entries[query]
        del mine[id(entry)]
        self._stays(entry)
        for copy in entry.copies:
            if not copy.number and not copy.gone and self.holds(copy):
                copy.gone = True
                self.drop(copy)
        entry.copies.clear()
        self.sent(entry)
        if entry.original is None:
            self._unlink(entry)
        self._account(entry, -1)
        if not mine:
            self._entries.pop(query, None)
        entry.payload = None  # so that remaining references hold no rows
        if entry.receipt is not None:
            entry.receipt.release()

    def unreadable(self, entry: KeptBatch, why: str) -> None:
        """Count the rows of a batch as lost, because they can never be read from the disk, and the header says so."""
        self.damage.setdefault(QueryId(entry.header.query), why)
        self._account(entry, -1)
        entry.header = without_rows(entry.header)
        entry.payload, entry.disk_bytes = None, 0
        self._account(entry, 1)
        self.on_disk.remove(entry)  # there is nothing left to evict

    def holds(self, entry: KeptBatch) -> bool:
        return id(entry) in self._entries.get(entry.header.query, ())

    def shrink(self, entry: KeptBatch, payload: Payload) -> None:
        """Replace a batch's rows by packed rows, for all queries that share them. O(queries that share them)."""
        before, after = self.shrunk
        plain = 0 if entry.payload is None else len(entry.payload)
        self.shrunk = (before + plain, after + len(payload))
        for each in entry.sharers or (entry,):
            self._account(each, -1)
            each.header = replace(each.header, packed=plain)
            each.payload = payload
            if each.bytes > KEPT_BYTES_MIN:
                each.bytes = KEPT_BYTES_MIN + len(payload)
            self._account(each, 1)

    def replace(self, entry: KeptBatch, header: Header, payload: Payload) -> None:
        """Replace the rows of a batch that no other node has. O(1)."""
        self._account(entry, -1)
        entry.header, entry.payload, entry.bytes = header, payload, KEPT_BYTES_MIN + len(payload)
        self._account(entry, 1)

    # The disk

    def first_unwritten(self) -> KeptBatch | None:
        """The oldest batch of this node whose rows are in memory and not being written to the disk."""
        return next(iter(self._unwritten.values()), None)

    def leaves(self, entry: KeptBatch) -> None:
        """Note that a batch is being written to the disk. Evicting it would free nothing: its bytes count as free
        already."""
        del self._unwritten[entry.order]
        self.in_memory.remove(entry)
        entry.stored, entry.leaving_bytes = True, entry.bytes - KEPT_BYTES_MIN
        self.leaving_bytes += entry.leaving_bytes

    def _stays(self, entry: KeptBatch) -> None:
        """Note that a batch is no longer being written: it is on the disk, or the write failed."""
        self._unwritten.pop(entry.order, None)
        self.leaving_bytes -= entry.leaving_bytes
        entry.leaving_bytes = 0

    def spilled(self, entry: KeptBatch, rows: Stored) -> None:
        """Note that the rows of a batch are on the disk now. O(copies and sharers)."""
        self._unshare(entry)
        self._account(entry, -1)
        self._stays(entry)
        entry.payload, entry.stored = rows, True
        for copy in entry.copies:
            copy.payload = rows
        entry.bytes, entry.disk_bytes = KEPT_BYTES_MIN, len(rows)
        self._account(entry, 1)
        self.in_memory.remove(entry)
        if entry.may_go:
            self.on_disk.add(entry)

    # Eviction

    def sent(self, entry: KeptBatch) -> None:
        """Note that a batch was sent, so it may have arrived. The receiver counts its rows, and later header changes
        are ignored."""
        self.in_memory.remove(entry)
        self.on_disk.remove(entry)

    def evict(self, entry: KeptBatch) -> None:
        """Evict a batch's rows. Its header stays, by itself or merged into the one before it. Late rows leave no
        header, because nothing waits for their numbers. O(1)."""
        header = entry.header
        if header.late:
            entry.gone = True
            self.drop(entry)
            return
        self._unshare(entry)
        self._account(entry, -1)
        self._stays(entry)
        self.sent(entry)
        entry.header = replace(
            header, rows=0, born=0, evicted=header.evicted + header.born, event_min=None, event_max=None, packed=0
        )
        entry.payload, entry.bytes, entry.disk_bytes = None, KEPT_BYTES_MIN, 0
        self._account(entry, 1)
        self._fold(entry)

    def _fold(self, entry: KeptBatch) -> None:
        """Merge neighbouring headers."""
        if entry.before is not None and _neighbours(entry.before, entry):
            entry = self._absorb(entry.before, entry)
        if entry.after is not None and _neighbours(entry, entry.after):
            self._absorb(entry, entry.after)

    def _absorb(self, entry: KeptBatch, after: KeptBatch) -> KeptBatch:
        a, b = entry.header, after.header
        self._account(entry, -1)
        entry.header = replace(
            a,
            through=b.through,
            watermark=max(a.watermark, b.watermark),
            born=a.born + b.born,
            evicted=a.evicted + b.evicted,
            lost=a.lost + b.lost,
            faulted=a.faulted + b.faulted,
            belated=a.belated + b.belated,
            produced_at=b.produced_at,
        )
        self._account(entry, 1)
        after.gone = True
        self.drop(after)
        return entry

    def _unlink(self, entry: KeptBatch) -> None:
        key = (entry.header.query, entry.header.origin, entry.header.stage)
        if entry.before is not None:
            entry.before.after = entry.after
        if entry.after is not None:
            entry.after.before = entry.before
        elif self._last.get(key) is entry:
            if entry.before is None:
                del self._last[key]
            else:
                self._last[key] = entry.before
        entry.before = entry.after = None

    @property
    def room(self) -> int:
        """The free bytes. Bytes that are being written to the disk count as free. Negative if the last batch exceeded
        the limit."""
        return self.limit_bytes - self.bytes + self.leaving_bytes

    def pieces_of(self, query: str, state: Origin) -> int:
        """How many pieces of a state are kept."""
        return self._pieces.get((query, state), 0)

    def bytes_of(self, query: str) -> int:
        return self._bytes.get(query, 0)

    def held(self, now: int) -> tuple[Held, ...]:
        """The bytes kept and the age of the oldest rows, by query. O(queries, and headers before those rows)."""

        def waits(entries: dict[int, KeptBatch]) -> int:
            return now - next((e.since for e in entries.values() if e.payload is not None), now)

        return tuple(
            Held(QueryId(query), self._bytes[query], waits(entries)) for query, entries in sorted(self._entries.items())
        )

    def rows(self) -> dict[tuple[str, Origin], int]:
        """The rows kept, as counted at their origins, by query and origin."""
        return dict(self._rows)

    def names(self) -> dict[tuple[str, Origin], Coverage]:
        """Which batches are kept, by query and origin."""
        return self._names

    def late_names(self) -> dict[tuple[str, Origin], Coverage]:
        """The batches whose late rows are kept, by query and origin."""
        return self._late

    def newest_of(self, query: QueryId, header: Header) -> list[KeptBatch]:
        """The newest batches of an origin, one of each stage, if what was made of one batch is kept. They leave after
        it. O(origins with batches)."""
        found = [
            (origin, entry)
            for (name, origin, _), entry in self._last.items()
            if name == query and origin.unsided == header.origin.unsided
        ]
        name, nothing = (header.seq, header.through + 1), Coverage()
        return [entry for origin, entry in found if both(name, self._names.get((query, origin), nothing).spans())]

    def of(self, query: QueryId) -> Iterable[KeptBatch]:
        """The batches of a query."""
        return self._entries.get(query, {}).values()

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def __iter__(self) -> Iterator[KeptBatch]:
        return (entry for entries in self._entries.values() for entry in entries.values())

    def validate(self) -> None:
        """Raise unless the accounts equal the batches, and the lists of batches are complete. O(batches)."""
        sums = (self.bytes, self.disk_bytes, self.leaving_bytes, self._bytes, self._rows, self._pieces, self._names)
        lists = (self._entries, self._last, self._unwritten, self.in_memory.queries(), self.on_disk.queries())
        if not any(sums) and not any(lists):
            return  # it is empty, as most stores are in most steps
        memory = disk = leaving = in_lists = 0
        by_query: dict[str, int] = {}
        rows: dict[tuple[str, Origin], int] = {}
        pieces: dict[tuple[str, Origin], int] = {}
        names: dict[tuple[str, Origin], Coverage] = {}
        for query, entries in self._entries.items():
            must(len(entries) > 0, "a query in the store has batches", query)
            for entry in entries.values():
                self._validate(entry, query)
                memory, disk = memory + entry.bytes, disk + entry.disk_bytes
                leaving += entry.leaving_bytes
                _count(by_query, query, entry.bytes + entry.disk_bytes)
                if entry.original is None:
                    in_lists += not entry.header.late
                    header = entry.header
                    _count(rows, (query, header.origin), header.born)
                    if header.state:
                        _count(pieces, (query, header.origin), 1)
                    elif not header.late:
                        names.setdefault((query, header.origin), Coverage()).add(header.seq, header.through)
        must(self.bytes == memory, "the bytes of a store are those of its batches", self.bytes, memory)
        must(self.disk_bytes == disk, "its bytes on the disk are those of its batches", self.disk_bytes, disk)
        must(self.leaving_bytes == leaving, "bytes that are being written are counted", self.leaving_bytes, leaving)
        must(self._bytes == by_query, "bytes by query add up", self._bytes, by_query)
        must(self._rows == rows, "rows by query and origin add up", self._rows, rows)
        must(self._pieces == pieces, "pieces of states add up", self._pieces, pieces)
        kept = ({key: found.spans() for key, found in each.items()} for each in (self._names, names))
        must(next(kept) == next(kept), "the names of a store are those of its batches", self._names.keys())
        listed = 0
        for key, last in self._last.items():
            must(last.after is None, "nothing follows the last batch of an origin", key)
            entry_before: KeptBatch | None = last
            while entry_before is not None and listed <= in_lists:
                entry, listed = entry_before, listed + 1
                header, entry_before = entry.header, entry.before
                must(self.holds(entry), "a batch in a list is kept", header)
                must((header.query, header.origin, header.stage) == key, "a list is of one origin", key, header)
                must(entry_before is None or entry_before.after is entry, "a list goes both ways", header)
        must(listed == in_lists, "every batch that is not late is in one list", listed, in_lists)
        for on_disk, candidates in ((False, self.in_memory), (True, self.on_disk)):
            for entry in candidates:
                must(
                    self.holds(entry) and entry.may_go,
                    "a batch that may be evicted is kept, and no other node has it",
                    entry.header,
                )
                must(
                    bool(entry.disk_bytes) == on_disk,
                    "a batch that may be evicted is listed where its rows are",
                    entry.header,
                )
        for order, entry in self._unwritten.items():
            must(self.holds(entry) and entry.order == order, "what is to be written is kept", entry.header)

    def validate_carried(self, carried: Sequence[KeptBatch], node: str) -> None:
        """Raise unless every batch is carried by one link, or waits for a route. O(batches)."""
        if not carried and not self._entries:
            return
        twice = len(carried) - len({id(entry) for entry in carried})
        must(twice == 0, "a batch waits in one place", node, twice)
        idle = {id(entry): entry.header for entry in self}
        for entry in carried:
            idle.pop(id(entry), None)
        must(not idle, "a batch that is kept is on a link or waits for a route", node, [*idle.values()][:3])

    def _validate(self, entry: KeptBatch, query: str) -> None:
        header, sharers = entry.header, entry.sharers
        must(header.query == query, "a batch is listed under its query", query, header)
        must(not entry.gone, "what is gone is not kept", header)
        must(entry.bytes >= KEPT_BYTES_MIN, "a batch counts its header", entry.bytes, header)
        must(not entry.disk_bytes or entry.in_memory is None, "rows are in memory or on the disk", header)
        must(entry.original is None or not entry.copies, "a copy has no copies", header)
        if sharers is not None:
            must(entry in sharers, "who shares rows is among the sharers", header)
            must(entry.payload is sharers[0].payload, "sharers have the same rows", header)
            counts = entry is sharers[0] or entry.bytes == KEPT_BYTES_MIN
            must(counts, "the first of the sharers counts their rows", header)

    def _account(self, entry: KeptBatch, sign: int) -> None:
        header = entry.header
        self.bytes += sign * entry.bytes
        self.disk_bytes += sign * entry.disk_bytes
        _count(self._bytes, header.query, sign * (entry.bytes + entry.disk_bytes))
        if entry.original is not None:
            return  # a copy
        key = (header.query, header.origin)
        if header.state:
            _count(self._pieces, key, sign)
            return
        _count(self._rows, key, sign * header.born)
        book = self._late if header.late else self._names  # late rows have no numbers of their own
        names = book.setdefault(key, Coverage())
        names.add(header.seq, header.through, sign)
        if not names:
            del book[key]


def _count(numbers: dict[K, int], key: K, more: int) -> None:
    """Add to a number, and remove it at 0, because origins come and go."""
    number = numbers.get(key, 0) + more
    if number:
        numbers[key] = number
    else:
        numbers.pop(key, None)


def _neighbours(entry: KeptBatch, after: KeptBatch) -> bool:
    """Whether two headers of an origin follow each other without a gap, at one stage."""
    a, b = entry.header, after.header
    follows = entry.folds and after.folds and a.through + 1 == b.seq and (a.stage, a.epoch) == (b.stage, b.epoch)
    return follows and a.state == b.state and counted(a) + counted(b) <= HEADER_ROWS_MAX

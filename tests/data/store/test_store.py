"""The store against a dumb twin: whatever is done to both, they hold the same batches and count the same.

The machine does to the store what links, retention, packing and the disk do to it, in any order that they may.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from rove.data.events import Packed
from rove.data.log.segments.stored import Stored
from rove.data.settings import WorkerSettings
from rove.data.store.eviction import POLICIES, policy
from rove.data.store.kept_batch import KEPT_BYTES_MIN, KeptBatch
from rove.data.store.pack_queue import PATIENCE_US, PackQueue
from rove.data.store.retention import Retention
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.errors import BrokenInvariant
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Held
from tests.data.store.twin import HEADER_BYTES, Batch, Twin
from tests.depth import examples

LIMIT_BYTES = 5_000
QUERIES = ("a", "b", "c")
SIZES = st.sampled_from([1, 100, 1_000, 1_500, 3_000])
KEPT = st.dictionaries(st.sampled_from(QUERIES), SIZES | st.none(), min_size=1)  # by query, what it keeps of a batch
KEPT_ALIKE = st.builds(dict.fromkeys, st.lists(st.sampled_from(QUERIES), min_size=2, unique=True), SIZES)
PICK = st.integers(0, 2**16)
SCHEMA = pa.schema([])


@dataclass
class Slip:
    """Whoever sent a batch here: how often it was told that it may forget it."""

    released: int = 0

    def release(self) -> None:
        self.released += 1


class StoreMachine(RuleBasedStateMachine):
    """A store and its twin. Every rule does one thing to both; the invariants compare all that can be seen."""

    @initialize(name=st.sampled_from(POLICIES), weight=st.sampled_from([0.5, 1.0, 4.0]))
    def begin(self, name: str, weight: float) -> None:
        self.now, self.seqs, self.frames = 0, dict[tuple[str, ...], int](), 0
        self.policy, self.weights = name, {"a": weight}
        self.store, self.twin, self.files = Store(LIMIT_BYTES), Twin(), 0
        node = WorkerSettings(
            node=NodeId("device"), kind="device", memory_bytes=LIMIT_BYTES, evict=name, weights=self.weights
        )
        self.retention = Retention(self.store, node)
        self.pack_queue, self.packing = PackQueue(self.store), dict[int, tuple[Batch, bytes]]()
        self.pairs: dict[Batch, KeptBatch] = {}
        self.slips: dict[Batch, Slip] = {}
        self.writing: dict[tuple[str, bool], deque[Batch]] = {}  # by folder, as the disk will have them

    # Who puts batches in

    @rule(
        sizes=KEPT_ALIKE | KEPT,
        origin=st.sampled_from("ooop"),
        stage=st.sampled_from([0, 0, 0, 1]),
        filtered=st.integers(0, 3),
        lost=st.sampled_from([0, 0, 0, 2]),
        lates=st.lists(st.sampled_from([False, False, True]), min_size=1, max_size=4),
        alone=st.sampled_from([False, False, False, True]),
        came=st.sampled_from([False, False, False, True]),
        epoch=st.sampled_from([0] * 7 + [1]),
        skips=st.sampled_from([0, 0, 0, 1]),
    )
    def put(
        self,
        sizes: dict[str, int | None],
        origin: str,
        stage: int,
        filtered: int,
        lost: int,
        lates: list[bool],
        alone: bool,
        came: bool,
        epoch: int,
        skips: int,
    ) -> None:
        """Batches of a source go to several queries, some too late. Those that keep the same rows keep them once."""
        for query in sizes:  # batches may have gone another way
            key = (query, Origin(origin, "device"))
            self.seqs[key] = self.seqs.get(key, 0) + skips
        for late in lates:
            header = Header(
                origin=Origin(origin, "device"),
                seq=0,
                through=0,
                stage=stage,
                late=late,
                epoch=epoch,
                lost=lost,
                born=filtered,
                produced_at=self.now,
            )
            self._source_makes(header, {q: size or int(late) for q, size in sizes.items()}, alone, came)

    def _source_makes(self, like: Header, sizes: dict[str, int], alone: bool, came: bool) -> None:
        made: list[Batch] = []
        for query, size in sizes.items():
            seq = self.seqs.get((query, like.origin), 0)
            if not like.late:
                self.seqs[query, like.origin] = seq + 1
            born = size + like.born
            header = replace(
                like, query=query, seq=seq, through=seq, rows=size, born=born, watermark=seq, event_min=seq
            )
            batch = self._put(header, bytes(size) if size else None, came, alone)
            if batch.rows is not None and not self._shared(batch, made) and not came:
                self._packs(self.pack_queue.waits(self.pairs[batch], SCHEMA, self.now))
            made.append(batch)

    def _put(self, header: Header, rows: bytes | None, came: bool, alone: bool) -> Batch:
        slip = Slip() if came else None
        twin = Batch(header, rows, self.now, came, alone)
        entry = self.store.put(header, rows, slip, self.now, alone)
        self.twin.put(twin)
        self.pairs[twin] = entry
        if slip is not None:
            self.slips[twin] = slip
        assert entry.gone == (twin not in self.twin.batches), "a header becomes one with its neighbour, or stays"
        return twin

    def _shared(self, batch: Batch, made: list[Batch]) -> bool:
        """Whether another query keeps the same rows."""
        for first in made:
            if batch.may_go and first.rows == batch.rows and not first.header.packed and first.group[0] is first:
                self.store.share(self.pairs[first], self.pairs[batch])
                self.twin.share(first, batch)
                return True
        return False

    @rule(query=st.sampled_from(QUERIES), size=SIZES)
    def find(self, query: str, size: int) -> None:
        """A batch that an earlier start had written is in the store again, and on the disk."""
        seq = self.seqs.get((query, "before"), 0)
        self.seqs[query, "before"] = seq + 1
        header = Header(origin=Origin("o", "device", 1), seq=seq, through=seq, query=query, rows=size, born=size)
        rows = self._stored(bytes(size))
        twin = Batch(header, bytes(size), self.now, alone=True)
        self.pairs[twin] = self.store.put(header, rows, None, self.now, alone=True)
        self.twin.put(twin)
        self.store.spilled(self.pairs[twin], rows)
        self.twin.spilled(twin)

    # Links

    def _pick(self, pick: int, wanted: Callable[[Batch], bool]) -> Batch | None:
        found = [b for b in self.twin.batches if wanted(b)]
        return found[pick % len(found)] if found else None

    @rule(pick=PICK, breaks=st.sampled_from([False, False, False, True]))
    def send(self, pick: int, breaks: bool) -> None:
        """A link sends a batch, for the first time or again; its rows may turn out to be unreadable."""
        twin = self._pick(pick, lambda b: True)
        if twin is not None:
            self._send(twin, breaks)

    @rule(pick=PICK)
    def breaks(self, pick: int) -> None:
        """The rows of a batch are read from the disk before it is sent, and cannot be read."""
        twin = self._pick(pick, lambda b: not b.sent and isinstance(self.pairs[b].payload, Stored))
        if twin is not None:
            self._break(twin)

    def _send(self, twin: Batch, breaks: bool = False) -> None:
        entry = self.pairs[twin]
        self.frames += 1
        self.store.sent(entry)
        entry.number = self.frames
        twin.sent = True
        if breaks and isinstance(entry.payload, Stored):
            self._break(twin)

    def _break(self, twin: Batch) -> None:
        self.store.unreadable(self.pairs[twin], "the rows are not what was written")
        self.twin.lost(twin)

    @rule(pick=PICK)
    def ack(self, pick: int) -> None:
        twin = self._pick(pick, lambda b: b.sent)
        if twin is not None:
            self._drop(twin)

    def _drop(self, twin: Batch) -> None:
        entry = self.pairs[twin]
        self.store.drop(entry)
        self.twin.drop(twin)
        assert entry.payload is None
        assert not self.store.holds(entry)

    @rule(pick=PICK)
    def copy(self, pick: int) -> None:
        """What was kept goes over another route as well."""
        twin = self._pick(pick, lambda b: b.original is None and not b.copied)
        if twin is not None:
            found = self.twin.copy(twin)
            self.pairs[found] = self.store.copy(self.pairs[twin])

    @rule(query=st.sampled_from(QUERIES))
    def move(self, query: str) -> None:
        """The route of a query changes: copies on the old link are forgotten, batches go to another as they are."""
        for twin in [b for b in self.twin.of(query) if b.original is not None]:
            self._drop(twin)

    @rule(query=st.sampled_from(QUERIES))
    def stop(self, query: str) -> None:
        """A query is over: what was not sent is dropped."""
        for twin in [b for b in self.twin.of(query) if not b.sent]:
            if not self.pairs[twin].gone:
                self._drop(twin)

    # No room

    @rule(query=st.sampled_from(QUERIES))
    def make_room(self, query: str) -> None:
        gone = [(e.query, e.seq, e.through, e.rows, e.late) for e in self.retention.make_room(QueryId(query), {})]
        assert gone == list(self.twin.make_room(LIMIT_BYTES, self.policy, self.weights, query))
        fits = self.store.room >= 0
        assert fits or self.policy == "block" or not any(self.store.in_memory), "all that may go has gone, or it fits"

    @rule(query=st.sampled_from(QUERIES))
    def evict_from_the_disk(self, query: str) -> None:
        victim = policy(self.policy, self.weights).victim(self.store.on_disk, query)
        twin = self.twin.victim(self.policy, self.weights, "disk", query)
        assert victim is (None if twin is None else self.pairs[twin])
        if victim is not None and twin is not None:
            self.store.evict(victim)
            self.twin.evict(twin)

    @rule(pick=PICK)
    def thin(self, pick: int) -> None:
        """Of rows that nobody shares half are kept."""
        twin = self._pick(pick, _can_be_thinned)
        if twin is not None:
            self._thin(twin)

    def _thin(self, twin: Batch) -> None:
        assert twin.rows is not None
        gone = twin.header.rows // 2
        kept, header = bytes((len(twin.rows) + 1) // 2), twin.header
        twin.header = replace(header, rows=header.rows - gone, born=header.born - gone, evicted=header.evicted + gone)
        twin.rows = kept
        self.store.replace(self.pairs[twin], twin.header, kept)

    # Packing

    @rule()
    def wait(self) -> None:
        """What has waited for a while is to be packed."""
        self.now += PATIENCE_US
        self._packs(self.pack_queue.due(self.now))

    def _packs(self, orders: list[object]) -> None:
        twins = {entry.order: twin for twin, entry in self.pairs.items() if entry.original is None}
        for order in orders:
            twin = twins[order.order]  # type: ignore[attr-defined]
            assert _waits(twin, self.twin)
            assert order.payload == twin.rows  # type: ignore[attr-defined]
            self.packing[order.order] = (twin, order.payload)  # type: ignore[attr-defined]

    @precondition(lambda self: self.packing)
    @rule(
        pick=PICK,
        size=st.sampled_from([1, 700, 4_000]) | st.none(),
        meanwhile=st.sampled_from(["waits", "waits", "is sent", "is thinned"]),
    )
    def packed(self, pick: int, size: int | None, meanwhile: str) -> None:
        """Rows were made small, or larger, or could not be; much may have become of them meanwhile."""
        order = sorted(self.packing)[pick % len(self.packing)]
        twin, plain = self.packing.pop(order)
        if meanwhile == "is sent" and twin in self.twin.batches:
            self._send(twin)
        elif meanwhile == "is thinned" and twin in self.twin.batches and _can_be_thinned(twin):
            self._thin(twin)
        small = None if size is None else bytes(size)
        if small is not None and len(small) < len(plain) and twin.rows == plain and _waits(twin, self.twin):
            self.twin.packed(twin, small)
        self._packs(self.pack_queue.packed(Packed(order, small), self.now))

    # The disk

    @rule(most=st.integers(1, 4))
    def write(self, most: int) -> None:
        """The oldest batches are on their way to the disk."""
        for _ in range(most):
            entry = self.store.first_unwritten()
            if entry is not None:
                twin = next(iter(self.twin.unwritten()), None)
                assert twin is not None
                assert entry is self.pairs[twin]
                self.store.leaves(entry)
                twin.place = "leaving"
                self.writing.setdefault((entry.header.query, entry.untouched), deque()).append(twin)

    @precondition(lambda self: any(self.writing.values()))
    @rule(pick=PICK, most=st.integers(1, 4))
    def written(self, pick: int, most: int) -> None:
        """The disk has the next batches of a folder; those that have gone meanwhile are not looked at."""
        folder = sorted(key for key, waiting in self.writing.items() if waiting)
        waiting = self.writing[folder[pick % len(folder)]]
        for _ in range(min(most, len(waiting))):
            twin = waiting.popleft()
            entry = self.pairs[twin]
            kept = twin in self.twin.batches and twin.rows is not None
            assert kept == (entry.payload is not None and self.store.holds(entry))
            if twin.rows is not None and kept:
                self.store.spilled(entry, self._stored(twin.rows))
                self.twin.spilled(twin)

    def _stored(self, rows: bytes) -> Stored:
        self.files += 1
        return Stored("retention", str(self.files), 0, len(rows), crc32(rows))

    # What can be seen

    def the_same_batches_in_the_same_order(self) -> None:
        for query in QUERIES:
            kept = [e for e in self.store if e.header.query == query]
            assert [seen(e) for e in kept] == [_seen(b) for b in self.twin.of(query)]
            assert kept == [self.pairs[b] for b in self.twin.of(query)]
        assert len(self.store) == len(self.twin.batches)

    def the_same_bytes(self) -> None:
        store, twin = self.store, self.twin
        assert {e.header.query: store.bytes_of(e.header.query) for e in store} == {
            query: twin.bytes_of(query) for query in twin.queries()
        }
        counted = (store.bytes, store.disk_bytes, store.leaving_bytes, store.bytes_taken, store.shrunk, store.room)
        assert counted == (
            *(twin.bytes, twin.disk_bytes, twin.leaving_bytes, twin.taken_bytes, twin.shrunk),
            twin.room(LIMIT_BYTES),
        )
        assert store.held(self.now) == tuple(
            Held(QueryId(q), twin.bytes_of(q), twin.oldest_us(q, self.now)) for q in twin.queries()
        )

    def the_same_rows(self) -> None:
        assert self.store.rows() == self.twin.rows()

    def the_same_may_go(self) -> None:
        for candidates, place in ((self.store.in_memory, "memory"), (self.store.on_disk, "disk")):
            found = {query: [e for e in candidates if e.header.query == query] for query in candidates.queries()}
            expected = self.twin.candidates(place)
            assert found == {query: [self.pairs[b] for b in batches] for query, batches in expected.items()}

    def the_same_is_written_next(self) -> None:
        unwritten = self.twin.unwritten()
        assert self.store.first_unwritten() is (self.pairs[unwritten[0]] if unwritten else None)

    def senders_are_told_once(self) -> None:
        told = {twin for twin, slip in self.slips.items() if slip.released}
        assert told == set(self.twin.released)
        assert all(slip.released <= 1 for slip in self.slips.values())

    @invariant()
    def the_twins_are_alike(self) -> None:
        if hasattr(self, "store"):
            self.the_same_batches_in_the_same_order()
            self.the_same_bytes()
            self.the_same_rows()
            self.the_same_may_go()
            self.the_same_is_written_next()
            self.senders_are_told_once()

    def teardown(self) -> None:
        """When everything was sent and acked, nothing is left and nothing counts."""
        if not hasattr(self, "store") or len(self.store) != len(self.twin.batches):
            return  # nothing was done, or a rule has failed and says more
        for twin in [b for b in self.twin.batches if b.original is not None]:
            self._drop(twin)
        for twin in list(self.twin.batches):
            self._drop(twin)
        assert (len(self.store), self.store.bytes, self.store.disk_bytes, self.store.leaving_bytes) == (0, 0, 0, 0)
        assert (self.store.rows(), self.store.held(self.now), self.store.first_unwritten()) == ({}, (), None)
        assert not any((*self.store.in_memory.queries(), *self.store.on_disk.queries()))
        self.senders_are_told_once()


def seen(entry: KeptBatch) -> tuple[object, ...]:
    """What can be seen of a batch that is kept."""
    payload = entry.payload
    rows = payload if payload is None or isinstance(payload, bytes) else len(payload)
    return entry.header, rows, entry.bytes, entry.disk_bytes, entry.gone


def _seen(batch: Batch) -> tuple[object, ...]:
    rows = len(batch.rows) if batch.rows is not None and batch.place == "disk" else batch.rows
    return batch.header, rows, HEADER_BYTES + batch.rows_bytes, batch.disk_bytes, False


def _can_be_thinned(batch: Batch) -> bool:
    return batch.may_go and batch.may_change and len(batch.group) == 1 and batch.header.rows >= 2


def _waits(batch: Batch, twin: Twin) -> bool:
    """Whether its rows may become smaller, for all who share them."""
    return not batch.header.packed and all(b.may_change and b in twin.batches for b in batch.group)


TestStore = pytest.mark.deep(StoreMachine.TestCase)
TestStore.settings = settings(max_examples=examples(750), stateful_step_count=40, deadline=None)


def test_the_twin_counts_in_the_same_bytes() -> None:
    assert HEADER_BYTES == KEPT_BYTES_MIN


def test_a_store_that_is_empty_and_says_that_it_holds_bytes_breaks_its_law() -> None:
    store = Store(1_000)
    store.validate()
    store.bytes = 1
    with pytest.raises(BrokenInvariant, match="the bytes of a store are those of its batches"):
        store.validate()
    store.bytes = 0  # every store is validated once more when its test is over

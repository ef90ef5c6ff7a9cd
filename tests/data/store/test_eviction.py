"""Full stores, against dumb twins: lists of batches and the paper's own words."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.data.store.eviction import POLICIES, Policy, policy
from rove.data.store.kept_batch import KEPT_BYTES_MIN
from rove.data.store.store import Store
from rove.model.batch import Header
from rove.model.errors import SetupError
from rove.model.ids import Origin

LIMIT = 4_000
ARRIVALS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 1_500)), max_size=60)
Batch = tuple[str, int, int]  # query, seq, bytes


def filled(chosen: Policy, arrivals: list[tuple[str, int]]) -> tuple[Store, list[Batch], Counter[str]]:
    """A store that everything was put into; what is left of it, and the rows that went, by query."""
    store, seqs = Store(LIMIT), Counter[str]()
    for query, size in arrivals:
        seq = seqs[query]
        seqs[query] += 1
        header = Header(origin=Origin("o", query), seq=seq, through=seq, rows=size, born=size, query=query)
        store.put(header, bytes(size))
        while rows_bytes(store) > LIMIT and (victim := chosen.victim(store.in_memory, query)) is not None:
            store.evict(victim)
    left = [(e.header.query, e.header.seq, len(e.payload)) for e in sorted(store, key=lambda e: e.order) if e.payload]
    gone = Counter[str]()
    for entry in store:
        gone[entry.header.query] += entry.header.evicted
    return store, left, gone


def rows_bytes(store: Store) -> int:
    """As the paper counts: batches with their control blocks, and nothing for what went."""
    return sum(entry.bytes for entry in store if entry.payload is not None)


def fifo_twin(arrivals: list[tuple[str, int]]) -> list[Batch]:
    left: list[Batch] = []
    for batch in numbered(arrivals):
        left.append(batch)
        while size(left) > LIMIT:
            left.pop(0)
    return left


def query_aware_twin(arrivals: list[tuple[str, int]]) -> list[Batch]:
    """Algorithm 1: make room, then take the batch in; one that is larger than all the room is not taken in."""
    left: list[Batch] = []
    for batch in numbered(arrivals):
        while left and size([*left, batch]) > LIMIT:
            query = batch[0]
            if not any(b[0] == query for b in left):
                counts = Counter(b[0] for b in left)
                query = max(counts, key=lambda name: (counts[name], name))
            left.remove(next(b for b in left if b[0] == query))
        if size([batch]) <= LIMIT:
            left.append(batch)
    return left


def numbered(arrivals: list[tuple[str, int]]) -> list[Batch]:
    seqs = Counter[str]()
    found = []
    for query, of in arrivals:
        found.append((query, seqs[query], of))
        seqs[query] += 1
    return found


def size(batches: list[Batch]) -> int:
    return sum(KEPT_BYTES_MIN + b[2] for b in batches)


@given(ARRIVALS)
def test_fifo_keeps_the_newest(arrivals: list[tuple[str, int]]) -> None:
    _, left, _ = filled(policy("fifo"), arrivals)
    assert left == fifo_twin(arrivals)


@given(ARRIVALS)
def test_query_aware_does_as_algorithm_1_says(arrivals: list[tuple[str, int]]) -> None:
    _, left, _ = filled(policy("query_aware"), arrivals)
    assert left == query_aware_twin(arrivals)


@given(ARRIVALS, st.sampled_from(POLICIES))
def test_every_row_is_there_or_counted_and_headers_have_no_gaps(arrivals: list[tuple[str, int]], name: str) -> None:
    store, left, gone = filled(policy(name, {"a": 5.0}), arrivals)
    offered = Counter[str]()
    for query, rows in arrivals:
        offered[query] += rows
    kept = Counter[str]()
    for query, _, rows in left:
        kept[query] += rows
    assert offered == kept + gone
    for query in "abc":
        headers = sorted((e.header.seq, e.header.through) for e in store if e.header.query == query)
        seqs = [seq for first, last in headers for seq in range(first, last + 1)]
        assert seqs == list(range(sum(q == query for q, _ in arrivals)))
        empties = [e for e in store if e.header.query == query and e.payload is None]
        assert len(empties) <= sum(q == query for q, _, _ in left) + 1
    assert store.bytes == sum(e.bytes for e in store)
    if name == "block":
        assert not gone.total()


def test_weights_share_the_room() -> None:
    arrivals = [(query, 90) for _ in range(200) for query in ("a", "b", "c")]
    _, left, _ = filled(policy("priority", {"a": 2.0, "b": 1.0, "c": 1.0}), arrivals)
    counts = Counter(query for query, _, _ in left)
    assert counts["a"] == pytest.approx(2 * counts["b"], abs=2)
    assert counts["b"] == pytest.approx(counts["c"], abs=1)


def test_what_was_sent_is_not_thrown_away() -> None:
    store = Store(LIMIT)
    sent, waits = (
        store.put(Header(origin=Origin("o"), seq=n, through=n, rows=1, born=1, query="q"), b"x") for n in range(2)
    )
    sent.number = 1
    store.sent(sent)
    assert policy("fifo").victim(store.in_memory, "q") is waits
    store.evict(waits)
    assert policy("fifo").victim(store.in_memory, "q") is None
    assert (sent.gone, waits.gone) == (False, False), "a header does not become one with what may have arrived"


def test_late_rows_between_two_headers_do_not_keep_them_apart() -> None:
    store = Store(LIMIT)
    before, late, after = (
        store.put(Header(origin=Origin("o"), seq=seq, through=seq, rows=1, born=1, query="q", late=late), b"x")
        for seq, late in ((0, False), (0, True), (1, False))
    )
    for victim in (before, after):  # with a disk, late rows stay in memory for longer than the others
        store.evict(victim)
    assert [(e.header.seq, e.header.through, e.header.evicted, e.header.late) for e in store] == [
        (0, 1, 2, False),
        (0, 0, 0, True),
    ]
    store.evict(late)
    assert [(e.header.seq, e.header.through, e.header.evicted) for e in store] == [(0, 1, 2)]


@pytest.mark.parametrize(("name", "weights"), [("lifo", {}), ("priority", {"a": 0.0})])
def test_what_makes_no_sense_is_refused(name: str, weights: dict[str, float]) -> None:
    with pytest.raises(SetupError, match=r"no eviction policy|a weight must be above 0"):
        policy(name, weights)


def test_an_evicted_batch_leaves_a_header_and_headers_beside_a_gap_stay_apart() -> None:
    store = Store(LIMIT)
    for seq in (0, 1, 3):
        header = Header(origin=Origin("o"), seq=seq, through=seq, rows=5, born=5, evicted=2, query="q")
        store.evict(store.put(header, bytes(100)))
    left = [(e.header.seq, e.header.through, e.header.rows, e.header.born, e.header.evicted) for e in store]
    assert left == [(0, 1, 0, 0, 14), (3, 3, 0, 0, 7)]
    store.validate()

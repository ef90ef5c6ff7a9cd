"""Input that must be computed again: in order, counted, and deleted with its query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rove.data.ends.pending_input import CaughtUp, PendingBatch, PendingInput
from rove.model.batch import Header
from rove.model.errors import DiskError
from rove.model.ids import QueryId

A, B = QueryId("a"), QueryId("b")


def some(query: QueryId, *sizes: int) -> list[PendingBatch]:
    headers = [Header(origin="o", seq=n, through=n, query=query) for n in range(len(sizes))]
    return [PendingBatch(query, h, bytes(size) if size else None) for h, size in zip(headers, sizes, strict=True)]


def test_batches_come_in_order_and_only_those_in_memory_are_counted() -> None:
    found = PendingInput()
    found.on_disk(A, iter(some(A, 10, 20)))
    found.in_memory(some(B, 5, 0, 7))
    assert found.bytes == 12
    a, b = some(A, 10, 20), some(B, 5, 0, 7)
    taken = [(each, found.bytes) for each in iter(found.next, None)]
    assert taken == [(a[0], 12), (a[1], 12), (CaughtUp(A), 12), (b[0], 7), (b[1], 7), (b[2], 0)]
    assert not found


def test_what_is_let_go_of_takes_no_room_any_more() -> None:
    found = PendingInput()
    found.in_memory(some(A, 5, 6))
    found.on_disk(A, iter(some(A, 100)))
    found.in_memory(some(B, 7))
    found.next()
    found.forget(A)
    assert found.bytes == 7
    assert [r.query for r in iter(found.next, None)] == ["b"]
    assert found.bytes == 0


def test_damage_is_an_error_of_the_query_that_is_first() -> None:
    def damaged() -> Iterator[PendingBatch]:
        raise DiskError("torn")
        yield

    found = PendingInput()
    found.on_disk(A, iter(()))
    found.on_disk(B, damaged())
    assert found.next() == CaughtUp(A)
    with pytest.raises(DiskError):
        found.next()
    assert found.first == B

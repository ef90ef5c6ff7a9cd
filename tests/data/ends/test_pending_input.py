"""Input that must be computed: in order, counted, read back in parts, and gone with its query."""

from __future__ import annotations

from rove.data.ends.pending_input import READ_AHEAD, CaughtUp, PendingBatch, PendingInput
from rove.data.events import LogRead, ReadLog
from rove.data.log.segments.commands import START, Position
from rove.data.log.segments.format import Mark
from rove.data.log.segments.stored import ReadEntry, Stored
from rove.model.batch import Header
from rove.model.ids import Origin, QueryId

A, B = QueryId("a"), QueryId("b")
UPTO = Mark(0, 0, 0, Position(10))


def some(query: QueryId, *sizes: int) -> list[PendingBatch]:
    headers = [Header(origin=Origin("o"), seq=n, through=n, query=query) for n in range(len(sizes))]
    return [
        PendingBatch(query, h, bytes(size) if size else None, Position(h.seq))
        for h, size in zip(headers, sizes, strict=True)
    ]


def part(first: int, count: int, over: bool = False) -> LogRead:
    """So many entries of ten bytes, as the disk gives them."""
    entries = []
    for n in range(first, first + count):
        header = Header(origin=Origin("o"), seq=n, through=n, query=A)
        entries.append(ReadEntry(Position(n), header, Stored("memory/a", "f", 0, 10, 0), bytes(10)))
    return LogRead("memory/a", Position(first), tuple(entries), Position(first + count), over)


def taken(found: PendingInput) -> list[tuple[str, int] | CaughtUp]:
    return [e if isinstance(e, CaughtUp) else (e.query, e.header.seq) for e in iter(found.next, None)]


def test_what_was_there_before_a_restart_comes_first_and_no_other_query_waits_for_it() -> None:
    found = PendingInput()
    found.on_disk(A, "memory/a", UPTO)
    found.in_memory(some(A, 5))
    found.in_memory(some(B, 5, 0, 7))
    assert found.bytes == 17
    assert found.ask(0) == [ReadLog("memory/a", START, UPTO, rows=True)]
    assert taken(found) == [("b", 0), ("b", 1), ("b", 2)]
    assert found.ask(0) == [], "one part at a time"
    assert found.read(part(0, 2), 0) is None
    assert taken(found) == [("a", 0), ("a", 1)]
    assert found.ask(0) == [ReadLog("memory/a", Position(2), UPTO, rows=True)]
    assert found.read(part(2, 1, over=True), 0) is None
    assert taken(found) == [("a", 2), CaughtUp(A), ("a", 0)]
    assert (found.bytes, bool(found)) == (0, False)


def test_the_next_part_is_asked_for_before_the_last_one_is_used_up() -> None:
    found = PendingInput()
    found.on_disk(A, "memory/a", UPTO)
    found.ask(0)
    found.read(part(0, READ_AHEAD + 1), 0)
    assert found.ask(0) == []
    for _ in range(2):
        found.next()
    assert found.ask(0) == [ReadLog("memory/a", Position(READ_AHEAD + 1), UPTO, rows=True)]


def test_a_part_that_cannot_be_read_now_is_asked_for_again_later_and_said() -> None:
    found = PendingInput()
    found.on_disk(A, "memory/a", UPTO)
    found.ask(0)
    found.read(LogRead("memory/a", START, trouble="[Errno 5]"), 0)
    assert found.troubles() == {"memory/a": "[Errno 5]"}
    assert found.ask(99_999) == []
    assert found.ask(100_000) == [ReadLog("memory/a", START, UPTO, rows=True)]
    found.read(part(0, 1, over=True), 100_001)
    assert found.troubles() == {}


def test_what_is_let_go_of_takes_no_room_any_more() -> None:
    found = PendingInput()
    found.on_disk(A, "memory/a", UPTO)
    found.in_memory(some(A, 5, 6))
    found.in_memory(some(B, 7))
    found.ask(0)
    found.read(part(0, 1), 0)
    found.forget(A)
    assert found.bytes == 7
    found.read(part(1, 1), 0)  # an answer that nobody waits for
    assert taken(found) == [("b", 0)]
    assert found.bytes == 0


def test_a_query_whose_log_is_empty_catches_up_at_once() -> None:
    found = PendingInput()
    found.on_disk(A, "memory/a", Mark(0, 0, 0, START))
    found.ask(0)
    assert found.read(LogRead("memory/a", START, over=True), 0) is None
    assert taken(found) == [CaughtUp(A)]
    assert not found


def test_what_became_safe_and_waits_is_named() -> None:
    found = PendingInput()
    found.on_disk(A, "memory/a", UPTO)
    fresh = some(A, 1, 2)
    found.in_memory(fresh)
    assert [*found.headers()] == [batch.header for batch in fresh]

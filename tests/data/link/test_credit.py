"""A peer sends what it was promised and no more, and whatever is not acked yet counts against the room."""

from __future__ import annotations

from rove.data.link.credit import PROMISE_BYTES_MIN, Credit
from rove.data.link.link import Link
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.store.kept_batch import size_of
from rove.data.store.store import Store
from rove.data.worker import Worker
from rove.model.batch import Header
from rove.model.events import Arrived, Send, Tick
from rove.model.ids import NodeId, Origin
from rove.model.messages import PROTOCOL, Ack, Data, Hello
from tests.data.test_worker import edge, linked, rows
from tests.lines import lines

MEMORY_BYTES = 400_000
ROWS = encode_rows(rows(1_000))
assert ROWS is not None


def frame(number: int) -> Data:
    header = Header(
        query="unknown", origin=Origin("s", "device"), seq=number - 1, through=number - 1, rows=1_000, born=1_000
    )
    return Data(number, header)


def promised(worker: Worker, peer: bytes, now: int) -> int:
    """The bytes that a peer may send in all, as it was told last."""
    said = worker.handle(Tick(), now)
    acks = [s.message for s in said if isinstance(s, Send) and s.conn == peer and isinstance(s.message, Ack)]
    return acks[-1].allowance if acks else 0


def test_a_frame_beyond_the_promise_is_refused_and_comes_again_when_there_is_room() -> None:
    worker = edge()
    conn = linked(worker)
    link = worker.links()[NodeId("device")]
    number = 0
    while link.outstanding:
        number += 1
        assert lines(worker.handle(Arrived(conn, frame(number), ROWS), 2)) == []
    refused = worker.handle(Arrived(conn, frame(number + 1), ROWS), 3)
    assert lines(refused) == ["to c: Refused, credit"]
    assert link.open_frames() == number
    worker.validate()


def test_parked_frames_take_room_until_they_are_acked() -> None:
    settings = WorkerSettings(node=NodeId("edge"), kind="edge", memory_bytes=MEMORY_BYTES)
    worker = Worker(settings, 1)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    allowance, number = promised(worker, b"c", 1), 0
    size = size_of(frame(1).header, ROWS)
    while number * size < min(allowance, 2 * MEMORY_BYTES):
        number += 1
        worker.handle(Arrived(b"c", frame(number), ROWS), number)
        allowance = max(allowance, promised(worker, b"c", number))
    assert worker.room == MEMORY_BYTES - number * size
    assert number * size <= MEMORY_BYTES, "nobody acks these frames, so no more than the memory was promised"


def test_a_quarter_of_the_room_is_not_promised() -> None:
    credit, link = Credit(MEMORY_BYTES), Link(NodeId("edge"), 1, NodeId("device"), Store(MEMORY_BYTES))
    credit.share({link.peer: link}, MEMORY_BYTES // 4, 1)
    assert link.outstanding == 0
    credit.share({}, MEMORY_BYTES // 4 + 1, 1)
    assert link.outstanding == PROMISE_BYTES_MIN, "a link that got nothing is not forgotten"
    credit.validate({link.peer: link})

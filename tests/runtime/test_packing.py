"""The thread that packs answers every order, whatever it is."""

from __future__ import annotations

import time

import pyarrow as pa

from rove.data.events import Pack, Packed
from rove.data.store.packing import unpack
from rove.runtime.packing import PackThread

ROWS = pa.RecordBatch.from_pydict({"n": list(range(1_000))})


def answers(thread: PackThread, count: int) -> list[Packed]:
    found, deadline = list[Packed](), time.monotonic() + 10
    while len(found) < count and time.monotonic() < deadline:
        found += thread.done()
        time.sleep(0.01)
    return found


def test_orders_are_answered_in_turn_those_that_cannot_be_done_too() -> None:
    thread = PackThread("zstd")
    thread.begin(Pack(1, "q 0", ROWS.schema, memoryview(ROWS.serialize())))
    thread.begin(Pack(2, "q 0", ROWS.schema, b"no rows"))
    thread.begin(Pack(3, "q 0", None, b""))  # which nobody should ask
    thread.begin(Pack(4, "q 0", ROWS.schema, memoryview(ROWS.serialize())))
    first, second, third, fourth = answers(thread, 4)
    assert (second, third) == (Packed(2, None), Packed(3, None))
    assert first.payload == fourth.payload is not None
    assert unpack(first.payload or b"", ROWS.schema).equals(ROWS)

"""Sources number their batches without gaps, and wait before the room is used up."""

from __future__ import annotations

import pyarrow as pa
import pytest
from msgspec.structs import replace

from rove.data.events import Go, Produced, Wait
from rove.data.sources.sources import Sources
from rove.model.errors import SchemaMismatch
from rove.model.ids import Origin, QueryId, Stage
from tests.data.test_worker import COLUMNS, ORIGIN, fragment, rows

QUERY = QueryId("q")


def made(sources: Sources, count: int = 1) -> list[int]:
    return [sources.named(Produced(ORIGIN, rows(), 0))[1].header.seq for _ in range(count)]


def test_a_batch_that_does_not_fit_its_stream_gets_no_number() -> None:
    sources = Sources()
    sources.add("s", ORIGIN, COLUMNS)
    assert made(sources) == [0]
    with pytest.raises(SchemaMismatch):
        sources.named(Produced(ORIGIN, pa.RecordBatch.from_pydict({"x": [1]}), 0))
    assert made(sources, 2) == [1, 2]


def test_a_query_that_begins_later_begins_after_all_that_was_made() -> None:
    sources = Sources()
    sources.add("s", ORIGIN, COLUMNS)
    assert list(sources.missed(QUERY, [ORIGIN])) == []
    made(sources, 3)
    ((stream, batch),) = sources.missed(QUERY, [ORIGIN])
    assert (stream, batch.header.seq, batch.header.through, batch.rows) == ("s", 0, 2, 0)
    assert made(sources) == [batch.header.through + 1]


def test_sources_wait_below_a_quarter_of_the_room_and_go_on_above_half_of_it() -> None:
    sources = Sources()
    sources.add("s", ORIGIN, COLUMNS)
    assert sources.held(25, 100) == []
    assert sources.held(24, 100) == [Wait(ORIGIN)]
    for room in (24, 25, 50):
        assert sources.held(room, 100) == []
    assert sources.waiting() == [ORIGIN]
    assert sources.held(51, 100) == [Go(ORIGIN)]
    assert sources.held(25, 100) == []


def test_a_fragment_of_the_last_start_feeds_and_waits_for_the_sources_of_this_one() -> None:
    sources = Sources()
    now, other = Origin("s", "device", 7), Origin("s", "elsewhere")
    sources.add("s", now, COLUMNS)
    before = Origin("s", "device", 3)
    part = replace(fragment(feeds=(before,)), waits={Stage(0): (before, other)})
    renamed = sources.renamed(part)
    assert renamed.feeds == (now,)
    assert renamed.waits == {Stage(0): (now, other)}

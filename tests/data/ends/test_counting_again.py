"""What an end has counted, after a second start, a second frame, or a change of who is waited for."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from rove.data.ends.wait_changes import changes_of
from rove.data.fragment.frontier import Frontier
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.log.segments.ledger import Lane, Ledger
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import Header, HeaderKind
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, Stage
from rove.model.messages import PROTOCOL, Fragment, Hello, Sink
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.plans import plans_of
from tests.data.test_strangers import KNOWN, STRANGER, UP, part
from tests.data.test_worker import data, fragment, orders, rows


def end(shelf: SimShelf, start: int, sink: Sink) -> Worker:
    """A gateway where a query ends, with a device that has said hello."""
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), start, durable=True)
    done_at_once(worker, shelf, worker.handle(orders(replace(fragment(), sinks={Stage(0): sink})), 0), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
    done_at_once(worker, shelf, worker.handle(Tick(), 1), 1)
    return worker


def test_rows_that_were_evicted_below_are_counted_again_by_a_restart() -> None:
    shelf = SimShelf(Random(1))
    worker = end(shelf, 1, Sink(kind="log"))
    worker.handle(Arrived(b"c", data(1, 0, rows=0, born=0, evicted=3)), 2)
    done_at_once(worker, shelf, worker.handle(Tick(), 3), 3)
    for found in (worker, end(shelf, 2, Sink(kind="log"))):
        assert [tally.evicted for tally in found.report().tallies] == [3]


def test_rows_that_were_late_for_a_watermark_below_are_counted_again_by_a_restart() -> None:
    shelf = SimShelf(Random(1))
    worker = end(shelf, 1, Sink(kind="log"))
    worker.handle(Arrived(b"c", data(1, 0, rows=0, born=0, belated=3)), 2)
    done_at_once(worker, shelf, worker.handle(Tick(), 3), 3)
    for found in (worker, end(shelf, 2, Sink(kind="log"))):
        assert [tally.late for tally in found.report().tallies] == [3]


def test_a_batch_that_comes_twice_to_an_end_that_discards_it_is_delivered_once() -> None:
    worker = end(SimShelf(Random(1)), 1, Sink(kind="discard"))
    for number in (1, 2):
        worker.handle(Arrived(b"c", data(number, 0), encode_rows(rows())), 2)
    (tally,) = worker.report().tallies
    assert (tally.delivered, tally.duplicates) == (2, 1)


def test_rows_that_are_too_large_for_a_link_are_lost_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rove.data.ends.exits.ROWS_BYTES_MAX", 10)
    worker = end(SimShelf(Random(1)), 1, Sink(kind="discard"))
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows())), 2)
    (tally,) = worker.report().tallies
    assert (tally.delivered, tally.lost, worker.refused["oversize"]) == (0, 2, 1)


def test_a_batch_at_two_stages_of_an_input_log_is_two_batches() -> None:
    ledger = Ledger()
    batch = Header(origin=KNOWN, seq=0, through=0, kind=HeaderKind.INPUT)
    assert [ledger.take(replace(batch, stage=stage)) for stage in (1, 2, 1)] == [[(0, 0)], [(0, 0)], []]


def running(found: Fragment) -> RunningFragment:
    return RunningFragment(found, plans_of(found)[found.plan])


def written(kept: Frontier[Lane], found: Fragment) -> list[tuple[HeaderKind, Origin, int]]:
    """The changes that a fragment writes to its input log, and takes as written."""
    changes = list(changes_of(running(found), kept))
    for each in changes:
        kept.take(Lane(each.kind, each.stage, each.origin), each.seq, each.through)
    return [(each.kind, each.origin, each.seq) for each in changes]


def test_every_change_of_who_is_waited_for_is_written_with_a_number_of_its_own() -> None:
    kept: Frontier[Lane] = Frontier()
    both, one = part(UP, (KNOWN, STRANGER)), part(UP, (KNOWN,))
    assert written(kept, both) == [(HeaderKind.EXPECT, KNOWN, 0), (HeaderKind.EXPECT, STRANGER, 0)]
    for times in range(3):
        gone = [] if times else [(HeaderKind.GONE, STRANGER, 0)]
        assert written(kept, one) == [(HeaderKind.DISMISS, STRANGER, times), *gone]
        assert written(kept, one) == []
        assert written(kept, both) == [(HeaderKind.EXPECT, STRANGER, times + 1)]


def test_an_origin_that_is_known_and_not_waited_for_is_written_once() -> None:
    kept: Frontier[Lane] = Frontier()
    knows = part(UP, (KNOWN,), knows=True)
    assert written(kept, knows) == [(HeaderKind.EXPECT, KNOWN, 0), (HeaderKind.KNOW, STRANGER, 0)]
    assert written(kept, knows) == []


def test_the_names_of_an_operator_that_comes_with_its_state_are_written_before_it_goes_on_without_the_state() -> None:
    kept: Frontier[Lane] = Frontier()
    stays = part(UP, (KNOWN,))
    stage, name = min(stays.makes.items())
    state, renamed = Origin("q", "old", 3, stage), replace(name, start=4)
    expect = (HeaderKind.EXPECT, KNOWN, 0)
    await_state, dismiss = (HeaderKind.AWAIT_STATE, state, 0), (HeaderKind.DISMISS, state, 0)
    comes = replace(stays, awaits={stage: state})
    assert written(kept, comes) == [(HeaderKind.NAME, name, 0), await_state, expect]
    assert written(kept, comes) == []
    gone = [(HeaderKind.GONE, origin, 0) for origin in sorted((name, state))]
    goes_on = replace(stays, makes={**stays.makes, stage: renamed})
    assert written(kept, goes_on) == [(HeaderKind.NAME, renamed, 0), dismiss, *gone]

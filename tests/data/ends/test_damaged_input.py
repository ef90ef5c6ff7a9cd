"""Damage in the input of operators: what is gone is named and counted, and the query goes on with the rest."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random

import pytest
from msgspec.structs import replace

from rove.data.fragment import gaps
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import data_file, index_file
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.batch import HeaderKind
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, QueryId, Stage
from rove.model.messages import PROTOCOL, Fragment, Hello, Sink, Tally
from rove.model.spans import both, size
from rove.sim.disk import SimFile
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.ends.test_output import MOMENTS, timed
from tests.data.test_worker import data, orders, rows

Q = QueryId("q")
BATCHES, MANY = 5, 90  # the latter take more than one segment


def part() -> Fragment:
    return replace(timed(), sinks={Stage(1): Sink(kind="discard")})


def gateway(shelf: SimShelf, start: int) -> Worker:
    """A gateway with an operator whose input is on its disk, of earlier starts too."""
    worker = Worker(WorkerSettings(node=NodeId("gateway"), kind="gateway"), start, durable=True)
    done_at_once(worker, shelf, worker.handle(orders(part()), 0), 0)
    worker.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), start)), 0)
    done_at_once(worker, shelf, worker.handle(Tick(), 1), 1)
    return worker


def fed(batches: int = BATCHES) -> SimShelf:
    """The disk of a gateway that has taken some batches of two rows."""
    shelf = SimShelf(Random(3))
    worker = gateway(shelf, 1)
    for seq in range(batches):
        worker.handle(Arrived(b"c", data(seq + 1, seq), encode_rows(rows().cast(MOMENTS))), 2 + seq)
        done_at_once(worker, shelf, worker.handle(Tick(), 3 + seq), 3 + seq)
    assert tally(worker).delivered == 2 * batches
    return shelf


def tally(worker: Worker) -> Tally:
    (found,) = (each for each in worker.report().tallies if each.origin.node == "device")
    return found


def flip(shelf: SimShelf, seq: int) -> None:
    """Change a byte of the rows of a batch."""
    disk = shelf.disk("memory/q")
    entry = next(e for e in Reader(disk).rest() if e.header.kind is HeaderKind.INPUT and e.header.seq == seq)
    file = disk._files[data_file(entry.segment)]
    file.written[entry.offset + entry.length - 1] ^= 1
    file.synced = bytes(file.written)


def test_a_batch_whose_rows_are_damaged_is_lost_and_the_query_goes_on() -> None:
    shelf = fed()
    flip(shelf, 2)
    again = gateway(shelf, 2)
    found = tally(again)
    assert (found.delivered, found.lost) == (2 * BATCHES - 2, 2)
    assert again.refused["damaged"] >= 1
    assert "memory/q/0000000000.arrows are not what was written" in str(again.report().troubles)
    again.handle(Arrived(b"c", data(1, BATCHES), encode_rows(rows().cast(MOMENTS))), 10)
    done_at_once(again, shelf, again.handle(Tick(), 11), 11)
    assert tally(again).delivered == 2 * BATCHES


def test_operators_go_on_without_a_segment_that_is_gone_and_it_is_named() -> None:
    shelf = fed(MANY)
    files = shelf.disk("memory/q")._files
    for name in [name for name in files if name.startswith("0000000001")]:
        del files[name]
    assert any(name.startswith("0000000002") for name in files)
    again = gateway(shelf, 2)
    assert again.running()[Q].state.value == "running"
    found = tally(again)
    ((_, computed),) = found.counted
    assert (found.delivered, found.buffered) == (2 * size(computed), 2 * size(found.held)), "all that is there was read"
    assert 0 < size(computed) < size(computed) + size(found.held) < MANY
    assert not both(computed, found.held), "between them is what is gone"
    assert "the input of its operators is damaged: memory/q/0000000001.index" in str(again.report().troubles)


def _columns(files: dict[str, SimFile]) -> None:
    files[data_file(0)].written[:8] = bytes(8)


def _names(files: dict[str, SimFile]) -> None:
    """The same batches are unreadable in the index and in the segment."""
    for file in (index_file(0), data_file(0)):
        third = len(files[file].written) // 3
        files[file].written[third : 2 * third] = bytes(third)


def _last(files: dict[str, SimFile]) -> None:
    last = max(name for name in files if name.endswith(".index")).removesuffix(".index")
    for name in [name for name in files if name.startswith(last)]:
        del files[name]


@pytest.mark.parametrize(("batches", "harm"), [(12, _columns), (12, _names), (MANY, _last)])
def test_damage_is_trouble_at_every_start_until_the_files_are_restored(
    batches: int, harm: Callable[[dict[str, SimFile]], None]
) -> None:
    shelf = fed(batches)
    files = shelf.disk("memory/q")._files
    copy = deepcopy(files)
    harm(files)
    for start in range(2, 5):
        again = gateway(shelf, start)
        troubles = [each.text for found in again.report().troubles.values() for each in found]
        assert any("the input of its operators is damaged: memory/q/" in text for text in troubles), start
        assert again.refused["damaged"] >= 1
    shelf.disk("memory/q")._files = copy
    again = gateway(shelf, 5)
    assert again.report().troubles == {}
    assert tally(again).delivered == 2 * batches


def test_batches_that_do_not_come_are_named_while_later_ones_wait_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk has lost all that it had confirmed, and the device does not have it any more."""
    monkeypatch.setattr(gaps, "LASTING_US", 100)  # a link that is silent for as long as it really is ends
    shelf = SimShelf(Random(3))
    again = gateway(shelf, 2)

    def named(now: int) -> str:
        done_at_once(again, shelf, again.handle(Tick(), now), now)
        return str(again.report().troubles)

    again.handle(Arrived(b"c", data(1, 2), encode_rows(rows().cast(MOMENTS))), 10)
    assert "wait for them" not in named(11)
    assert "wait for them" not in named(110)
    assert "batches 0 to 1 of `s/device` have not come, and later ones wait for them" in named(111)
    for number, seq in ((2, 0), (3, 1)):
        again.handle(Arrived(b"c", data(number, seq), encode_rows(rows().cast(MOMENTS))), 112)
    assert "wait for them" not in named(113)
    assert tally(again).delivered == 6

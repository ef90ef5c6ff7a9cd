"""The input of operators on the disk of a node that is stopped in good order."""

from __future__ import annotations

from random import Random

from rove.data.events import Stop
from rove.data.rows import encode_rows
from rove.model.events import Arrived
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.ends.test_damaged_input import gateway, tally
from tests.data.ends.test_output import MOMENTS
from tests.data.test_worker import data, rows
from tests.lines import lines


def test_a_node_that_is_stopped_writes_the_input_that_it_has_taken() -> None:
    shelf = SimShelf(Random(3))
    worker = gateway(shelf, 1)
    worker.handle(Arrived(b"c", data(1, 0), encode_rows(rows().cast(MOMENTS))), 2)
    commands = worker.handle(Stop(), 3)
    assert lines(commands) == ["disk memory/q: 2 write, 2 sync, publish"]
    done_at_once(worker, shelf, commands, 3)
    assert tally(gateway(shelf, 2)).delivered == 2

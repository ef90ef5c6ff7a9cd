"""The states of a fragment that runs."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from rove.data.events import Command, Event, Open, Remember
from rove.data.fragment.lifecycle import FRAGMENT, FragmentEvent, FragmentState
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, QueryId, Version
from rove.model.lifecycle import IllegalStep
from rove.model.messages import PROTOCOL, Orders, Peer
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.plans import plans_of
from tests.data.test_strangers import KNOWN, UP, part
from tests.data.test_worker import orders

Q = QueryId("q")
LEAVE = Arrived("coordinator", Orders(PROTOCOL, (), (), (), leave=(Q,)))
PEERS = (Peer(node=UP, address="there"),)


class Node:
    """A worker whose disk opens folders at once, and reads when it is told to."""

    def __init__(self, settings: WorkerSettings, start: int = 1) -> None:
        self.worker, self._shelf = Worker(settings, start, durable=True), SimShelf(Random(1))
        self._rest: list[Command] = []

    def handle(self, event: Event, now: int) -> None:
        self.obey(self.worker.handle(event, now))

    def obey(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Open):
                self.obey(self.worker.handle(self._shelf.answer(command), 0))
            else:
                self._rest.append(command)

    def reads(self) -> None:
        """The disk does all that it was asked."""
        self.handle(Tick(), 1)
        rest, self._rest = self._rest, []
        done_at_once(self.worker, self._shelf, rest, 1)

    def running(self) -> dict[QueryId, RunningFragment]:
        return self.worker.running()


def gateway() -> Node:
    return Node(WorkerSettings(node=NodeId("gateway"), kind="gateway"))


def state(worker: Node | Worker) -> str:
    return worker.running()[Q].state.value


def test_operators_on_a_disk_replay_before_they_run() -> None:
    worker = gateway()
    worker.handle(orders(part(None)), 0)
    assert state(worker) == "replaying"
    worker.reads()
    assert state(worker) == "running"
    worker.handle(orders(replace(part(None), version=Version(2))), 2)
    assert state(worker) == "running"


def test_where_nothing_is_on_a_disk_nothing_is_replayed() -> None:
    worker = Worker(WorkerSettings(node=NodeId("edge"), kind="edge"), 1)
    worker.handle(orders(part(UP), peers=PEERS), 0)
    assert state(worker) == "running"


@pytest.mark.parametrize("caught_up", [False, True])
def test_a_device_that_started_anew_holds_what_it_gives_until_those_above_are_told(caught_up: bool) -> None:
    settings = WorkerSettings(node=NodeId("device"), kind="device", parents=(UP,))
    worker = Node(settings, 2)
    worker.worker.add_source("s", KNOWN, "key string, ts timestamp, value bigint")
    fed = replace(part(UP), feeds=(KNOWN,))
    worker.obey(worker.worker.remembered(Remember((fed,), PEERS, plans_of(fed))))
    assert state(worker) == "resuming"
    if caught_up:
        worker.reads()
        assert state(worker) == "holding"
    worker.handle(orders(replace(fed, version=Version(2))), 2)
    assert state(worker) == ("running" if caught_up else "replaying")


def test_a_query_that_is_left_and_comes_again_before_it_has_caught_up_replays_once() -> None:
    worker = gateway()
    worker.handle(orders(part(None)), 0)
    first = worker.running()[Q]
    worker.handle(LEAVE, 1)
    assert first.state is FragmentState.ENDED
    worker.handle(orders(part(None)), 2)
    worker.reads()
    assert state(worker) == "running"


def test_nothing_happens_to_a_fragment_that_has_ended() -> None:
    worker = gateway()
    worker.handle(orders(part(None)), 0)
    running = worker.running()[Q]
    worker.handle(LEAVE, 1)
    for event in FragmentEvent:
        with pytest.raises(IllegalStep) as broken:
            running.machine.step(event)
        assert str(broken.value) == (
            f"the fragment of query `q` is `ended`, where `{event.value}` cannot happen; "
            "so far: running ─► deployed: running ─► opened: replaying ─► ended: ended"
        )


def test_every_fragment_can_end() -> None:
    assert set(FRAGMENT) == set(FragmentState)
    for state, row in FRAGMENT.items():
        assert FragmentEvent.ENDED in row or state is FragmentState.ENDED

"""Fragments that wait for their folders: nothing is lost, the trouble is told, and an older version runs on."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from rove.data.events import Command, DiskAnswer, DiskWork, Event, Open, OpenFailed, Produced, Remember
from rove.data.settings import WorkerSettings
from rove.data.worker import Worker
from rove.model.events import COORDINATOR, Arrived, Send, Tick
from rove.model.ids import NodeId, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Ack, Data, Hello, Orders, Report, Sink, TroubleHere
from rove.sim.shelf import SimShelf
from tests.data.disk_driver import done_at_once
from tests.data.test_worker import COLUMNS, ORIGIN, data, encode_rows, fragment, orders, rows
from tests.lines import lines

Q = QueryId("q")
LOG = replace(fragment(), sinks={Stage(0): Sink(kind="log")})


class Bad(SimShelf):
    """A disk on which nothing can be opened, for now."""

    def __init__(self) -> None:
        super().__init__(Random(1))
        self.mended = False

    def answer(self, order: DiskWork) -> DiskAnswer:
        if isinstance(order, Open) and not self.mended:
            return OpenFailed(order.folder, order.number, "[Errno 5] Input/output error")
        return super().answer(order)


class Gateway:
    """A worker and its disk. Answers of the disk wait until they are asked for."""

    def __init__(self, shelf: SimShelf) -> None:
        self.worker, self.shelf, self.now = Worker(WorkerSettings(node=NodeId("g"), kind="gateway"), 1, True), shelf, 0
        self.work: list[Command] = []
        self.said: list[Send] = []

    def handle(self, event: Event) -> None:
        self.now += 1_000
        for command in (*self.worker.handle(event, self.now), *self.worker.handle(Tick(), self.now)):
            (self.said if isinstance(command, Send) else self.work).append(command)  # type: ignore[arg-type]

    def disk(self) -> None:
        """The disk does what it was asked, and what comes of it."""
        work, self.work = self.work, []
        others = done_at_once(self.worker, self.shelf, work, self.now)
        self.said += [command for command in others if isinstance(command, Send)]
        self.handle(Tick())

    def acked(self) -> int:
        acks = [send.message.through for send in self.said if isinstance(send.message, Ack)]
        return max(acks, default=0)

    def troubles(self) -> dict[QueryId, tuple[TroubleHere, ...]] | None:
        return self.worker.report().troubles


def test_frames_of_a_query_wait_while_its_folder_opens_and_are_acked_when_they_are_on_the_disk() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.handle(orders(LOG))
    gateway.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)))
    gateway.handle(Arrived(b"d", data(1, 0), encode_rows(rows())))
    assert Q not in gateway.worker.running()
    assert gateway.acked() == 0
    assert gateway.worker.room < gateway.worker.settings.memory_bytes, "what is parked is counted"
    gateway.disk()
    assert Q in gateway.worker.running()
    gateway.disk()
    assert gateway.acked() == 1
    assert [t.delivered for t in gateway.worker.report().tallies] == [2]


def test_a_folder_that_cannot_be_opened_is_the_querys_trouble_until_it_is_open() -> None:
    shelf = Bad()
    gateway = Gateway(shelf)
    gateway.handle(orders(LOG))
    gateway.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)))
    gateway.handle(Arrived(b"d", data(1, 0), encode_rows(rows())))
    for _ in range(5):
        gateway.disk()
        gateway.now += 3_000_000
    assert Q not in gateway.worker.running()
    assert "tried again: log/q/out: [Errno 5]" in str((gateway.troubles() or {})[Q])
    assert gateway.acked() == 0
    shelf.mended = True
    for _ in range(3):
        gateway.now += 10_000_000
        gateway.handle(Tick())
        gateway.disk()
    assert gateway.troubles() == {}
    gateway.disk()
    assert [t.delivered for t in gateway.worker.report().tallies] == [2]


def test_an_older_version_runs_on_while_the_folders_of_a_newer_one_open() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.handle(orders(LOG))
    gateway.disk()
    moved = replace(LOG, version=Version(2), sinks={Stage(0): Sink(kind="file", path="elsewhere")})
    gateway.handle(orders(moved))
    assert gateway.worker.running()[Q].fragment.version == 1
    gateway.disk()
    assert gateway.worker.running()[Q].fragment.version == 2


def test_a_query_that_is_stopped_while_its_folder_opens_does_not_begin() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.handle(orders(LOG))
    gateway.handle(Arrived(COORDINATOR, Orders(PROTOCOL, (), (Q,))))
    gateway.disk()
    assert Q not in gateway.worker.running()
    assert not gateway.worker.busy


def test_what_a_nodes_own_sources_make_while_a_folder_opens_is_fed_to_the_query_in_order() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.worker.add_source("s", ORIGIN, COLUMNS)
    gateway.handle(Produced(ORIGIN, rows(), 0))
    gateway.handle(orders(replace(LOG, feeds=(ORIGIN,))))
    for _ in range(3):
        gateway.handle(Produced(ORIGIN, rows(), 0))
    assert gateway.worker.fed(ORIGIN) == [Q]
    gateway.disk()
    gateway.disk()
    print(gateway.worker.refused, gateway.worker.report().tallies, gateway.troubles(), gateway.acked())
    (tally,) = gateway.worker.report().tallies
    assert (tally.produced, tally.delivered) == (6, 6), "the first came before the query did"


def test_what_sources_make_is_kept_when_a_newer_version_comes_before_the_folder_is_open() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.worker.add_source("s", ORIGIN, COLUMNS)
    gateway.handle(orders(replace(LOG, feeds=(ORIGIN,))))
    gateway.handle(Produced(ORIGIN, rows(), 0))
    gateway.handle(orders(replace(LOG, feeds=(ORIGIN,), version=Version(2))))
    gateway.handle(Produced(ORIGIN, rows(), 0))
    gateway.worker.validate()
    gateway.disk()
    gateway.disk()
    print(gateway.worker.refused, gateway.worker.report().tallies, gateway.troubles(), gateway.acked())
    (tally,) = gateway.worker.report().tallies
    assert (gateway.worker.running()[Q].fragment.version, tally.produced, tally.delivered) == (2, 4, 4)


def test_a_fragment_that_waits_is_remembered_for_the_next_start() -> None:
    gateway = Gateway(Bad())
    gateway.handle(orders(LOG))
    assert lines(gateway.work) == ["disk open log/q/out", "remember q v1 ends in log; peers nothing"]
    assert lines(gateway.said) == ["to coordinator: Report, runs nothing, reaches nothing, asks for q"]
    remembered = [command for command in gateway.work if isinstance(command, Remember)]
    assert [[f.query for f in each.fragments] for each in remembered] == [[Q]]
    assert remembered[0].plans
    assert not any(isinstance(send.message, Report) and Q in send.message.running for send in gateway.said)


def test_a_node_reports_the_queries_whose_folders_it_opens() -> None:
    """The coordinator would take it for a node that has let go of the query."""
    gateway = Gateway(SimShelf(Random(1)))
    gateway.handle(orders(LOG))
    assert (gateway.worker.report().running, gateway.worker.report().unknown) == ({}, (Q,))
    gateway.disk()
    assert (gateway.worker.report().running, gateway.worker.report().unknown) == ({Q: LOG.version}, ())


def test_late_rows_that_are_none_do_not_end_the_node_when_their_folder_is_open() -> None:
    gateway = Gateway(SimShelf(Random(1)))
    gateway.handle(orders(LOG))
    gateway.handle(Arrived(b"d", Hello(PROTOCOL, NodeId("device"), 1)))
    gateway.disk()
    assert Q in gateway.worker.running()
    header = replace(data(1, 1).header, late=True, rows=6, born=6)
    gateway.handle(Arrived(b"d", Data(1, header), None))
    gateway.disk()
    gateway.disk()
    assert gateway.worker.refused == {"DataError": 1}
    (trouble,) = (gateway.troubles() or {})[Q]
    assert "have 6 rows in 0 bytes" in trouble.text
    gateway.worker.validate()

"""Queries whose rows are folded into partial aggregates where there is no room for them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import rove
from rove import functions as F
from rove.data.events import Evicted, Pack, Produced
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.operators.folded import Fold, folded_schema, folds_into, rows_in
from rove.data.operators.window import WindowConfig
from rove.data.rows import encode_rows
from rove.data.settings import WorkerSettings
from rove.data.store.packing import Packer, unpack
from rove.data.worker import Worker
from rove.model.batch import Batch, Header
from rove.model.clock import MICROS_MAX
from rove.model.errors import ProtocolError
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Origin, QueryId, Stage, Version
from rove.model.messages import PROTOCOL, Data, Fragment, Hello, Orders, Peer, Sink, Welcome
from rove.plan import codec
from rove.plan.operators import Aggregate
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from tests.data import streams
from tests.data.acks import heard
from tests.data.plans import named, plans_of
from tests.depth import examples
from tests.portable.rows import assert_same_rows

SECOND_US = 1_000_000
START_US = 1_760_000_000 * SECOND_US
COLUMNS = "sensor int, ts timestamp, value bigint"
ORIGIN, EDGE = Origin("s", "device"), NodeId("edge")
ROWS = 200
EXACT = ["__pane", "key", "__n__n", "__amounts__hi", "__amounts__lo", "__low__min", "__last__max"]


def window_of(query: Callable[[Any, Any], Any]) -> Aggregate:
    plan = streams.plan_of(query, "partial")
    assert isinstance(plan, Aggregate)
    return plan


@pytest.mark.deep
@pytest.mark.parametrize("query", [streams.tumbling, streams.hopping], ids=lambda q: q.__name__)
def test_a_window_makes_of_folded_rows_what_it_makes_of_rows(query: Callable[[Any, Any], Any]) -> None:
    window = window_of(query)
    fold = Fold(window)

    @settings(max_examples=examples(40), deadline=None, derandomize=True)
    @given(streams.feeds(), st.lists(st.booleans(), min_size=40, max_size=40), st.integers(0, 12))
    def check(feed: streams.Feed, folds: list[bool], closed_s: int) -> None:
        """Some batches are folded, some are not, and some come after their windows have closed."""
        plain, folded = (WindowConfig(window).build(Origin("w", stage=1)) for _ in range(2))
        out: list[list[Batch]] = [[], []]
        late = [0, 0]
        batches = [batch for stream, batch in feed if stream == "a" and batch.data is not None]
        for n, (batch, folds_it) in enumerate(zip(batches, folds, strict=False)):
            states = fold(batch.data) if folds_it else batch.data
            header = replace(batch.header, rows=states.num_rows, folded=folds_it)
            given_ = (plain, batch), (folded, Batch(header, states if states.num_rows else None))
            for side, (logic, each) in enumerate(given_):
                output = logic.process(each)
                late[side] += sum(b.header.born for b in output.late)
                if n == len(batches) // 2:
                    output = logic.watermark(streams.START_US + closed_s * SECOND_US)
                    out[side] += output.batches
        for side, logic in enumerate((plain, folded)):
            out[side] += logic.watermark(MICROS_MAX).batches
        found = [pa.Table.from_batches([b.data for b in each if b.data is not None], window.schema) for each in out]
        assert_same_rows(found[1].select(EXACT), found[0].select(EXACT), query.__name__)
        assert late[1] == late[0], "as many rows were late"

    check()


def test_folded_rows_say_how_many_they_were() -> None:
    window = window_of(streams.hopping)
    rows = next(b.data for _, b in streams.feed_of(3) if b.rows > 10)
    folded = Fold(window)(rows)
    assert folded.schema == folded_schema(window)
    assert rows_in(folded) == rows.num_rows - rows.column("ts").null_count


def counted(stream: Any) -> Any:
    """A window that is wanted on the edge, so that devices send rows."""
    timed = stream.where("value >= 0").withWatermark("ts", "5 seconds")
    grouped = timed.groupBy(F.window("ts", "10 seconds"), "sensor")
    return grouped.agg(F.count("*").alias("n"), F.sum("value").alias("total"))


class Network:
    """A device that sends rows, and an edge that counts them in windows; what is between them is up to the test."""

    def __init__(self, memory_bytes: int = 60_000, compress: str = "zstd", folds: bool = True) -> None:
        stream = rove.Session.local().stream("s", schema=COLUMNS)
        self.stages = Stages.of({"out": optimize(counted(stream).plan)})
        window = next(Stage(n) for n, op in enumerate(self.stages.operators) if isinstance(op, Aggregate))
        common = {"query": QueryId("q"), "version": Version(1), "plan": named(codec.encode(self.stages))}
        below = Fragment(
            **common, runs=tuple(Stage(n) for n in range(1, window)), makes={}, waits={Stage(0): (ORIGIN,)}, next=EDGE,
            sinks={}, feeds=(ORIGIN,), folds=folds,
        )  # fmt: skip
        above = Fragment(
            **common, runs=(window, Stage(window + 1)), waits={Stage(0): (ORIGIN,)}, next=None,
            makes={window: Origin("q", stage=1), Stage(window + 1): Origin("q", stage=2)},
            sinks={Stage(window + 1): Sink(kind="discard")},
        )  # fmt: skip
        self.device = Worker(
            WorkerSettings(
                node=NodeId("device"), kind="device", parents=(EDGE,), memory_bytes=memory_bytes, evict="fifo",
                compress=compress,
            ),
            1,
        )  # fmt: skip
        self.device.add_source("s", ORIGIN, COLUMNS)
        self.device.handle(self.orders(below, Peer(node=EDGE, address="there")), 0)
        self.edge = Worker(WorkerSettings(node=EDGE, kind="edge"), 1)
        self.edge.handle(self.orders(above, Peer(node=NodeId("device"))), 0)
        self.evicted = 0
        self.packer, self.orders_to_pack = Packer(), list[Pack]()

    @staticmethod
    def orders(fragment: Fragment, peer: Peer) -> Arrived:
        return Arrived("coordinator", Orders(PROTOCOL, (fragment,), (), (peer,), plans=plans_of(fragment)))

    def make(self, n: int, keys: int = 4, count: int = ROWS) -> None:
        """A second of readings. Some are of no interest to the query."""
        random = Random(n)
        columns = [
            pa.array([random.randrange(keys) for _ in range(count)], pa.int32()),
            pa.array([START_US + n * SECOND_US + m * 5_000 for m in range(count)], pa.timestamp("us", "UTC")),
            pa.array([random.randrange(-100, 1_000) for _ in range(count)], pa.int64()),
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.stages.operators[0].schema)
        for command in self.device.handle(Produced(ORIGIN, rows, n), n):
            self.evicted += command.rows if isinstance(command, Evicted) else 0
            if isinstance(command, Pack):
                self.orders_to_pack.append(command)

    def pack(self) -> None:
        """What is to be packed is packed now, however long that took."""
        while self.orders_to_pack:
            answer = self.packer.answer(self.orders_to_pack.pop(0))
            self.orders_to_pack += [c for c in self.device.handle(answer, 0) if isinstance(c, Pack)]

    def meet(self) -> list[Header]:
        """The device is back; what the edge is sent, and takes."""
        self.edge.handle(Arrived(b"c", Hello(PROTOCOL, NodeId("device"), 1)), 0)
        sent = []
        for command in self.device.handle(Arrived(EDGE, Welcome(PROTOCOL, EDGE, 1, 1, 0, 10**9)), 0):
            message = getattr(command, "message", None)
            if isinstance(message, Data):
                sent.append(message.header)
                self.edge.handle(Tick(), len(sent))  # it gives credit
                self.edge.handle(Arrived(b"c", message, command.payload), len(sent))  # type: ignore[union-attr]
                heard(self.edge, b"c", len(sent))
        return sent

    def windows(self) -> list[dict[str, Any]]:
        """What the windows on the edge hold, whether or not they have closed."""
        (running,) = self.edge.running().values()
        found = [b.batch.data for b in running.pipeline.finish() if b.batch.data is not None]
        return sorted((row for data in found for row in data.to_pylist()), key=repr)

    def running(self) -> RunningFragment:
        (running,) = self.device.running().values()
        return running


@pytest.mark.parametrize("packs_after", [0, 30, 1_000])
@pytest.mark.parametrize("compress", ["off", "zstd"])
def test_a_device_without_room_folds_the_oldest_and_loses_nothing(compress: str, packs_after: int) -> None:
    small, large = Network(compress=compress), Network(memory_bytes=10**9)
    for n in range(60):
        small.make(n)
        large.make(n)
        if n >= packs_after:
            small.pack()
        assert small.device.store.bytes <= 60_000
    sent, whole = small.meet(), large.meet()
    folded = [h.folded for h in sent]
    assert True in folded
    assert False in folded
    assert folded == sorted(folded, reverse=True), "the oldest are folded"
    assert not any(h.folded for h in whole)
    assert small.evicted == 0
    assert sum(h.born for h in sent) == sum(h.born for h in whole) == 60 * ROWS
    assert small.windows() == large.windows()
    assert not small.edge.refused


def test_without_folding_the_same_device_loses_rows() -> None:
    small = Network(folds=False)
    for n in range(60):
        small.make(n)
    assert small.evicted > 0


def test_what_does_not_fit_even_folded_is_evicted_and_counted() -> None:
    small = Network(memory_bytes=8_000)
    for n in range(200):
        small.make(n)
        assert small.device.store.bytes <= 8_000
    sent = small.meet()
    assert small.evicted == sum(h.evicted for h in sent) > 0
    assert sum(h.born + h.evicted for h in sent) == 200 * ROWS
    assert any(h.folded for h in sent)


def test_batches_that_become_no_smaller_do_not_keep_others_from_being_folded() -> None:
    network = Network(compress="off")
    for n in range(90):
        network.make(n, count=ROWS if n % 2 else 3)
    assert network.evicted == 0


def test_rows_that_would_not_become_fewer_are_left_as_they_are() -> None:
    network = Network(compress="off")
    for n in range(60):
        network.make(n, keys=2**31 - 1)
    assert network.evicted > 0
    assert not any(h.folded for h in network.meet())


def test_folded_rows_that_come_too_late_are_counted_as_late_to_the_row() -> None:
    network = Network()
    for n in range(60):
        network.make(n)
    (running,) = network.edge.running().values()
    running.pipeline.leave(Stage(0), [ORIGIN])  # the device was given up, and its windows have closed
    step = next(s for s in running.pipeline._with_memory if s.waits is not None)
    assert step.logic is not None
    step.logic.watermark(MICROS_MAX)
    sent = network.meet()
    assert any(h.folded for h in sent)
    count = running.pipeline.count(ORIGIN)
    kept = sum(made(network, header) for header in sent)
    assert (count.late, count.delivered) == (kept, 60 * ROWS - kept), "those that the filter left, and no others"


def made(network: Network, header: Header) -> int:
    """The rows of a batch that come to the window."""
    random = Random(header.seq)
    for _ in range(ROWS):
        random.randrange(4)
    return sum(random.randrange(-100, 1_000) >= 0 for _ in range(ROWS))


@pytest.mark.parametrize("late", [False, True])
def test_rows_said_to_be_folded_where_no_window_takes_them_are_refused(late: bool) -> None:
    running = Network().running()
    header = Header(origin=ORIGIN, seq=0, through=0, rows=1, born=1, query="q", stage=0, folded=True, late=late)
    with pytest.raises(ProtocolError, match="no window takes folded rows"):
        running.read(header, b"")


def test_folded_rows_are_packed_and_read_again() -> None:
    network = Network()
    for n in range(60):
        network.make(n)
    entry = next(e for e in network.device.store if e.header.folded)
    running = network.running()
    window = folds_into(running.stages, entry.header.stage)
    assert window is not None
    header, payload = entry.header, entry.in_memory
    assert payload is not None
    if header.packed:
        payload = encode_rows(unpack(payload, running.schema_of(header)))
    data = running.read(replace(header, packed=0), payload).data
    assert data.schema == folded_schema(window)
    assert rows_in(data) == made(network, header)

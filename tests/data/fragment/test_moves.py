"""An operator that moves to another node gives the same rows, under the same names, as one that stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rove
from rove import functions as F
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.pipeline import Pipeline
from rove.data.fragment.reconfigure.migration import ArrivalState
from rove.data.operators import pieces
from rove.data.rows import decode_rows
from rove.model.batch import Batch, Header, merge_empties, named
from rove.model.errors import BrokenInvariant
from rove.model.events import Payload
from rove.model.ids import Origin, Stage
from rove.model.schema import parse_schema
from rove.plan import build
from rove.plan.operators import Received, Source, Watermark
from rove.plan.rules.split_aggregates import merge_aggregates
from rove.plan.stages import Stages, ordered, stateful
from tests.data.streams import QUERIES, Feed, feed_of, plan_of, shuffled

QUERY = "busy"
SECONDS = ((4, 5), (8, 9), (6, 10))  # of the rows of three batches


class Node:
    """One pipeline with the whole plan, and what has come out of it."""

    def __init__(self, stages: Stages, feed: Feed) -> None:
        self.stages = stages
        self.sources = {
            op.stream: Stage(n) for n, op in enumerate(stages.operators) if isinstance(op, Source | Received)
        }
        waits: dict[Stage, list[Origin]] = {stage: [] for stage in self.sources.values()}
        for stream, batch in feed:
            if stream in self.sources and batch.header.origin not in waits[self.sources[stream]]:
                waits[self.sources[stream]].append(batch.header.origin)
        makes = {Stage(n): Origin(QUERY, stage=n) for n, op in enumerate(stages.operators) if stateful(op)}
        self.pipeline = Pipeline(stages, waits, makes)
        self.emitted: list[Emitted] = []

    @property
    def moving(self) -> dict[Stage, Origin]:
        """The states of all operators with memory, under the names by which they leave."""
        operators = enumerate(self.stages.operators)
        return {Stage(n): Origin(QUERY, "old", 7, n) for n, op in operators if ordered(op)}

    def feed(self, stream: str, batch: Batch) -> None:
        if stream in self.sources:
            self.emitted += self.pipeline.process(self.sources[stream], batch)
            self.pipeline.validate()


def given_out(*nodes: Node) -> list[Any]:
    """What came out at the end of the plan, by name; empty batches are merged, as on a link."""
    found: dict[bool, list[Batch]] = {False: [], True: []}
    for node in nodes:
        for each in node.emitted:
            found[each.late].append(each.batch)
    on_time = merge_empties(sorted(found[False], key=lambda b: (b.header.origin, b.header.seq)))
    late = sorted(found[True], key=lambda b: (b.header.origin, b.header.seq, str(b.data)))
    return [
        [(b.header.origin, b.header.seq, b.header.through, b.header.watermark, _rows(b)) for b in batches]
        for batches in (on_time, late)
    ]


def _rows(batch: Batch) -> str:
    return "" if batch.data is None else repr(batch.data.to_pydict())  # NaN equals itself as text


def moved(old: Node, new: Node, rest: Feed, random: Random) -> None:
    """Move everything from `old` to `new` while the rest of a feed comes in. Pieces of different operators, and the
    batches, come in any order; pieces of one operator in theirs."""
    early = old.pipeline.moves.send(old.moving)
    assert not early
    for stage, origin in new.moving.items():
        new.pipeline.moves.wait(stage, origin)
    waiting: list[tuple[str, Iterator[Any]]] = [("feed", iter(rest))]
    for stage, leaving in old.pipeline.moves.leaving.items():
        waiting.append((str(stage), iter(leaving.next, None)))
    while waiting:
        kind, items = random.choice(waiting)
        item = next(items, None)
        if item is None:
            waiting.remove((kind, items))
        elif kind == "feed":
            new.feed(*item)
        else:
            for _ in range(random.choice((1, 1, 2))):  # a piece may come twice
                new.emitted += new.pipeline.moves.take(Stage(int(kind)), item)
                new.pipeline.validate()
    assert all(new.pipeline.moves.has_come(stage, origin) for stage, origin in new.moving.items())


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: str(query.__name__))
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_an_operator_that_moves_gives_what_one_gives_that_stays(query: Callable[[Any, Any], Any], seed: int) -> None:
    random, feed = Random(seed), feed_of(seed)
    stages = Stages.of({"out": merge_aggregates(plan_of(query))})
    feed = shuffled(feed, [random.randrange(8) for _ in feed])
    at = random.randint(0, len(feed))
    stays, old, new = (Node(stages, feed) for _ in range(3))
    for stream, batch in feed:
        stays.feed(stream, batch)
    for stream, batch in feed[:at]:
        old.feed(stream, batch)
    before, pieces.PIECE_ROWS = pieces.PIECE_ROWS, random.choice((1, 3, 1000))
    try:
        again = [each for each in feed[:at] if random.random() < 0.3]  # what was not acked comes again
        moved(old, new, [*again, *feed[at:]], random)
    finally:
        pieces.PIECE_ROWS = before
    stays.emitted += stays.pipeline.finish()
    new.emitted += new.pipeline.finish()
    assert given_out(old, new) == given_out(stays)
    counts = {
        origin: sum(getattr(node.pipeline.counts.get(origin), "delivered", 0) for node in (old, new))
        for origin in stays.pipeline.counts
    }
    assert counts == {origin: count.delivered for origin, count in stays.pipeline.counts.items()}
    old.pipeline.validate()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: str(query.__name__))
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_an_operator_that_goes_on_without_the_rest_of_its_state_numbers_its_output_from_0_under_its_new_name(
    query: Callable[[Any, Any], Any], seed: int
) -> None:
    random, feed = Random(seed), feed_of(seed)
    stages = Stages.of({"out": plan_of(query)})  # partial results go to another operator here
    feed = shuffled(feed, [random.randrange(8) for _ in feed])
    at = random.randint(0, len(feed))
    old, new = Node(stages, feed), Node(stages, feed)
    for stream, batch in feed[:at]:
        old.feed(stream, batch)
    old.pipeline.moves.send(old.moving)
    for stage, origin in new.moving.items():
        new.pipeline.moves.wait(stage, origin)
    for stage, leaving in old.pipeline.moves.leaving.items():
        pieces_of = list(iter(leaving.next, None))
        for piece in pieces_of[: random.randint(0, len(pieces_of))]:  # nothing, a part or everything
            new.emitted += new.pipeline.moves.take(stage, piece)
    renamed = {stage: Origin(QUERY, start=9, stage=stage) for stage in new.pipeline.names()}
    for stage, origin in renamed.items():
        new.emitted += new.pipeline.moves.rename(stage, origin)
    since = len(new.emitted)
    for stage, origin in new.moving.items():
        new.emitted += new.pipeline.moves.give_up(stage, origin)
        new.pipeline.validate()
    for stream, batch in feed[at:]:
        new.feed(stream, batch)
    new.emitted += new.pipeline.finish()
    assert not list(new.pipeline.held())
    assert not any(each.passes for each in new.emitted), "operators take the output of those that they read"
    following = dict.fromkeys(renamed.values(), 0)
    for number, each in enumerate(new.emitted):
        header = each.batch.header
        if header.origin in following and not each.late:
            assert header.seq == following[header.origin]
            following[header.origin] = header.through + 1
        assert number < since or header.origin in following or header.origin.name != QUERY


def test_a_window_closes_before_the_state_of_later_windows_has_come() -> None:
    stages = Stages.of({"out": merge_aggregates(plan_of(QUERIES[0]))})
    feed = [each for each in feed_of(11) if each[0] == "a"]
    old, new = Node(stages, feed), Node(stages, feed)
    for stream, batch in feed[:-3]:
        old.feed(stream, batch)
    old.pipeline.moves.send(old.moving)
    for stage, origin in new.moving.items():
        new.pipeline.moves.wait(stage, origin)
    frontiers = {stage: leaving.next() for stage, leaving in old.pipeline.moves.leaving.items()}
    for stage, frontier in frontiers.items():
        assert frontier is not None
        new.pipeline.moves.take(stage, frontier)
    arriving = [step.arriving for step in new.pipeline._with_memory if step.arriving is not None]
    assert [each.machine.state for each in arriving] == [ArrivalState.MERGES]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: str(query.__name__))
def test_batches_that_came_too_early_go_aside_with_the_state(query: Callable[[Any, Any], Any]) -> None:
    """The second batch of an origin has not come when the state leaves, and the third one is there."""
    feed = feed_of(7)
    stages = Stages.of({"out": merge_aggregates(plan_of(query))})
    stays, old, new = (Node(stages, feed) for _ in range(3))
    origin = feed[0][1].header.origin
    late = next(each for each in feed if each[1].header.origin == origin and each[1].header.seq == 1)
    before, rest = [each for each in feed[: len(feed) // 2 + 2] if each is not late], feed[len(feed) // 2 + 2 :]
    for stream, batch in (*before, late, *(each for each in rest if each is not late)):
        stays.feed(stream, batch)
    for stream, batch in before:
        old.feed(stream, batch)
    held = sorted(batch.header.seq for batch in old.pipeline.held())
    assert held
    assert not old.pipeline.moves.send(old.moving, set(old.moving.values())), "nothing goes up"
    assert {batch.header.seq for batch in old.pipeline.held()} == {*held}, "they count as held until they arrive"
    for stage, state in new.moving.items():
        new.pipeline.moves.wait(stage, state)

    def read(header: Header, rows: Payload | None) -> Batch:
        schema = stages.operators[header.stage].schema
        return Batch(header, None if rows is None else decode_rows(rows, schema, header.rows))

    for stage, leaving in old.pipeline.moves.leaving.items():
        for piece in iter(leaving.next, None):
            for _ in range(2):
                new.emitted += new.pipeline.moves.take(stage, piece, read)
                new.pipeline.validate()
    for stream, batch in (late, *(each for each in rest if each is not late)):
        new.feed(stream, batch)
    stays.emitted += stays.pipeline.finish()
    new.emitted += new.pipeline.finish()
    assert given_out(old, new) == given_out(stays)
    tables = ([step.intake.table() for step in node.pipeline._with_memory if step.intake] for node in (stays, new))
    assert next(tables) == next(tables), "no batch is left out"


def test_an_arrival_goes_its_way_once() -> None:
    from rove.data.fragment.reconfigure.migration import ArrivalEvent, Arriving

    arriving = Arriving(Origin(QUERY, "old", 7, 2), {})
    with pytest.raises(BrokenInvariant):
        arriving.machine.step(ArrivalEvent.PIECE)


@pytest.mark.parametrize(("taken", "delivered", "lost"), [(1, 2, 4), (2, 4, 2), (3, 6, 0)])
def test_rows_whose_state_does_not_come_are_lost_and_not_delivered(taken: int, delivered: int, lost: int) -> None:
    """Windows of 4 seconds. The state of two rows in each of two windows moves; two rows come after it."""
    source = Source("s", pa.schema([("ts", pa.timestamp("us", "UTC"))]))
    plan = build.grouped(
        Watermark(source, "ts", 10_000_000), [build.item("window(ts, '4 seconds')")], [build.item("count(*) AS n")]
    )
    stages, origin = Stages.of({"out": merge_aggregates(plan)}), Origin("s", "van-7")
    rows = [pa.record_batch([[second * 1_000_000 for second in each]], schema=source.schema) for each in SECONDS]
    feed = [("s", named(origin, seq, each)) for seq, each in enumerate(rows)]
    old, new = Node(stages, feed), Node(stages, feed)
    for stream, batch in feed[:2]:
        old.feed(stream, batch)
    old.pipeline.moves.send(old.moving)
    for stage, state in new.moving.items():
        new.pipeline.moves.wait(stage, state)
    before, pieces.PIECE_ROWS = pieces.PIECE_ROWS, 1
    try:
        for stage, leaving in old.pipeline.moves.leaving.items():
            for piece in islice(iter(leaving.next, None), taken):
                new.pipeline.moves.take(stage, piece)
    finally:
        pieces.PIECE_ROWS = before
    assert new.pipeline.counts[origin].seen == 2, "the batches whose rows are open here"
    new.feed(*feed[2])
    for stage, state in new.moving.items():
        new.emitted += new.pipeline.moves.give_up(stage, state)
        new.pipeline.validate()
    new.emitted += new.pipeline.finish()
    new.pipeline.validate()
    count = new.pipeline.counts[origin]
    assert (count.delivered, count.lost, count.open) == (delivered, lost, 0)
    assert (
        sum(sum(each.batch.data["n"].to_pylist()) for each in new.emitted if each.batch.data is not None) == delivered
    )


WIDE = "ts timestamp, key string, note string"
BOUND = 4_096  # bytes of rows in a piece, in these tests


def keeps_every_row(stream: Any) -> Any:
    timed = stream.withWatermark("ts", "10 seconds")
    span = F.window("ts", "4 seconds").alias("w")
    left, right = (timed.select(span, "key", F.col("note").alias(name)) for name in ("a", "b"))
    return left.join(right, on=["w", "key"])


def keeps_a_total_for_each_key(stream: Any) -> Any:
    return stream.withWatermark("ts", "0 seconds").scan(F.max("note").alias("last"), F.count("*").alias("n"), by="key")


@pytest.mark.parametrize("plan", [keeps_every_row, keeps_a_total_for_each_key], ids=lambda plan: str(plan.__name__))
def test_a_state_of_any_size_moves_in_pieces_that_a_link_takes(
    plan: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES_MAX", BOUND)
    stream = rove.Session.local().stream("s", schema=WIDE)
    stages, origin = Stages.of({"out": plan(stream).plan}), Origin("s", "van-7")
    rows = [
        pa.record_batch(
            [[second * 1_000_000] * 200, [f"key-{n}" for n in range(200)], ["x" * 100] * 200], schema=parse_schema(WIDE)
        )
        for second in range(12)
    ]
    feed = [("s", named(origin, seq, each)) for seq, each in enumerate(rows)]
    stays, old, new = (Node(stages, feed) for _ in range(3))
    for stream, batch in feed:
        stays.feed(stream, batch)
    for stream, batch in feed[:6]:
        old.feed(stream, batch)
    old.pipeline.moves.send(old.moving)
    rest, sizes = iter(feed[6:]), []
    for stage, state in new.moving.items():
        new.pipeline.moves.wait(stage, state)
        for piece in iter(old.pipeline.moves.leaving[stage].next, None):
            sizes.append(piece.data.nbytes)
            new.emitted += new.pipeline.moves.take(stage, piece)
            for stream, batch in islice(rest, 1):
                new.feed(stream, batch)
    assert len(sizes) > 10
    assert max(sizes) < 2 * BOUND
    assert not list(rest)
    stays.emitted += stays.pipeline.finish()
    new.emitted += new.pipeline.finish()
    assert given_out(old, new) == given_out(stays)

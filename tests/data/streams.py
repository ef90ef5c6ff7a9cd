"""Random streams of several origins, and every stateful query that the edge runs over them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from msgspec.msgpack import decode, encode

import rove
from rove import functions as F
from rove.data.fragment.local import Arrival, LocalPipeline
from rove.data.fragment.saved import SavedPipeline
from rove.model.batch import Batch, merge_empties, named
from rove.model.ids import Origin
from rove.model.schema import parse_schema
from rove.plan.operators import Operator, Received, Source
from rove.plan.operators import walk as operators
from rove.plan.optimizer import optimize
from rove.plan.rules.rewrite import with_inputs

SCHEMA = parse_schema("key string, ts timestamp, value double, amount bigint")
START_US = 1_700_000_000_000_000
DELAY = "2 seconds"

Feed = list[tuple[str, Batch]]


@st.composite
def feeds(draw: st.DrawFn) -> Feed:
    """Batches of two streams `a` and `b` from one seed. A seed is quick to draw, and makes dense streams."""
    return feed_of(draw(st.integers(0, 2**32 - 1)))


def feed_of(seed: int) -> Feed:
    """Up to three origins a stream, some batches empty, some rows without a time, some too late for their origin.

    The values are such that their sum depends on the order in which they are added.
    """
    random = Random(seed)
    feed: Feed = []
    for stream in ("a", "b"):
        for origin in range(random.randint(1, 3)):
            clock = START_US + random.randrange(3_000_000)
            for seq in range(random.randint(0, 6)):
                rows = []
                for _ in range(random.choice([0, 1, 5, 20])):
                    clock += random.randrange(500_000)
                    late = random.choice([0, 0, 0, 500_000, 1_900_000, 6_000_000 if random.random() < 0.2 else 0])
                    value = random.choice([0.1, 0.2, 0.7, 1e17, -1e17, 3.3, None])
                    rows.append(
                        (
                            random.choice(["x", "y", "", None]),
                            clock - late if random.random() < 0.98 else None,
                            value if random.random() < 0.99 else float("nan"),
                            random.choice([1, 5, -3, 2**40, None]),
                        )
                    )
                columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
                arrays = [pa.array(c, f.type, from_pandas=False) for c, f in zip(columns, SCHEMA, strict=True)]
                batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
                feed.append((stream, named(Origin(stream, str(origin)), seq, batch)))
    return feed


def shuffled(feed: Feed, order: list[int]) -> Feed:
    """Another interleaving: origins in another order, each origin's batches in its own."""
    queues: dict[Origin, list[tuple[str, Batch]]] = {}
    for stream, batch in feed:
        queues.setdefault(batch.header.origin, []).append((stream, batch))
    result: Feed = []
    for pick in order:
        waiting = [o for o in queues if queues[o]]
        if waiting:
            result.append(queues[waiting[pick % len(waiting)]].pop(0))
    return result + [item for queue in queues.values() for item in queue]


def _all(stream: Any) -> Any:
    return (
        F.count("*").alias("n"),
        F.sum("value").alias("total"),
        F.sum("amount").alias("amounts"),
        F.min("value").alias("low"),
        F.max("key").alias("last"),
        F.avg("value").alias("mean"),
        F.stddev("amount").alias("spread"),
    )


def _timed(stream: Any) -> Any:
    return stream.withWatermark("ts", DELAY)


def tumbling(a: Any, b: Any) -> Any:
    return _timed(a).groupBy(F.window("ts", "3 seconds"), "key").agg(*_all(a))


def tumbling_without_keys(a: Any, b: Any) -> Any:
    return _timed(a).groupBy(F.window("ts", "3 seconds")).agg(*_all(a)[:4])


def hopping(a: Any, b: Any) -> Any:
    return _timed(a).groupBy(F.window("ts", "4 seconds", "1 second"), "key").agg(*_all(a))


def hopping_with_a_rest(a: Any, b: Any) -> Any:
    return _timed(a).groupBy(F.window("ts", "5 seconds", "2 seconds", "1 second")).agg(*_all(a))


def hopping_sums(a: Any, b: Any) -> Any:
    sums = F.sum("value").alias("total"), F.sum("amount").alias("amounts"), F.count("*").alias("n")
    return _timed(a).groupBy(F.window("ts", "4 seconds", "1 second")).agg(*sums)


def over_a_union(a: Any, b: Any) -> Any:
    return _timed(a.where("amount > 0").union(a).union(b)).groupBy(F.window("ts", "3 seconds")).agg(*_all(a))


def joined(a: Any, b: Any) -> Any:
    window = F.window("ts", "3 seconds").alias("w")
    left = _timed(a).select(window, "key", "value")
    right = _timed(b).select(window, "key", F.col("amount").alias("other"))
    return left.join(right, on=["w", "key"])


def joined_with_itself(a: Any, b: Any) -> Any:
    window = F.window("ts", "3 seconds")
    left = _timed(a).select(window.alias("w"), "key", "value")
    right = left.select(F.col("w").alias("v"), F.col("key").alias("name"), F.col("value").alias("other"))
    return left.join(right, on=F.expr("w = v AND key = name AND value < other"))


def scanned(a: Any, b: Any) -> Any:
    return _timed(a.union(b)).scan(*_all(a), by="key")


def scanned_without_keys(a: Any, b: Any) -> Any:
    return _timed(a).scan(F.max("amount").alias("peak"), F.count("value").alias("seen"), every="2 seconds")


def counted(a: Any, b: Any) -> Any:
    return _timed(a.union(b)).countWindow(3, by="key").agg(*_all(a))


def counted_without_keys(a: Any, b: Any) -> Any:
    return _timed(a).countWindow(4).agg(F.sum("amount").alias("total"), F.variance("value").alias("v"))


QUERIES: tuple[Callable[[Any, Any], Any], ...] = (
    tumbling,
    tumbling_without_keys,
    hopping,
    hopping_with_a_rest,
    hopping_sums,
    over_a_union,
    joined,
    joined_with_itself,
    scanned,
    scanned_without_keys,
    counted,
    counted_without_keys,
)


def plan_of(query: Callable[[Any, Any], Any], mode: str = "whole") -> Operator:
    """The optimized plan; `partial` is the lower half of its aggregate, `final` the upper, which receives partials."""
    session = rove.Session.local()
    plan = optimize(query(session.stream("a", schema=SCHEMA), session.stream("b", schema=SCHEMA)).plan)
    if mode == "whole":
        return plan
    half = next(o for o in operators(plan) if getattr(o, "mode", "") == mode)
    if mode == "partial":
        return half
    (partial,) = half.inputs
    return with_inputs(half, (Received("partials", partial.schema, partial.traits),))


def partials(query: Callable[[Any, Any], Any], feed: Feed) -> Feed:
    """What two nodes send up, each of which computes the partial results of some of the origins."""
    plan = plan_of(query, "partial")
    result: Feed = []
    for node in range(2):
        mine = [(s, b) for s, b in feed if int(b.header.origin.node) % 2 == node]
        run = Run(plan, mine, f"node{node}").feed(mine).finish()
        result += [("partials", e.batch) for e in run.emitted if not e.late]
    return result


class Run:
    """A pipeline, and what has come out of it so far."""

    def __init__(self, plan: Operator, feed: Feed, name: str = "local") -> None:
        origins: dict[str, list[Origin]] = {s.stream: [] for s in operators(plan) if isinstance(s, Source | Received)}
        for stream, batch in feed:
            if stream in origins and batch.header.origin not in origins[stream]:
                origins[stream].append(batch.header.origin)
        self.origins, self.plan, self.name = origins, plan, name
        self.pipeline = LocalPipeline({"out": plan}, origins, name)
        self.emitted: list[Arrival] = []

    def feed(self, feed: Feed) -> Run:
        for stream, batch in feed:
            if stream in self.origins:
                self.emitted += self.pipeline.process(stream, batch)
        return self

    def finish(self) -> Run:
        self.emitted += self.pipeline.finish()
        return self

    def moved(self) -> Run:
        """A new pipeline that goes on from this one's snapshot, carried as bytes."""
        other = Run.__new__(Run)
        other.origins, other.plan, other.emitted = self.origins, self.plan, list(self.emitted)
        other.pipeline, other.name = LocalPipeline({"out": self.plan}, self.origins, self.name), self.name
        other.pipeline.restore(decode(encode(self.pipeline.snapshot()), type=SavedPipeline))
        return other

    def output(self) -> list[tuple[int, int, bytes]]:
        """The batches by number, neighbouring empties merged, rows as bytes: equal to the last bit or not at all."""
        batches = merge_empties(e.batch for e in self.emitted if not e.late)
        return [(b.header.seq, b.header.through, _bytes(b)) for b in batches]

    def rows(self) -> pa.Table:
        batches = [e.batch.data for e in self.emitted if not e.late and e.batch.data is not None]
        return pa.Table.from_batches(batches, self.plan.schema)

    def late(self) -> list[tuple[Origin, int, bytes]]:
        return sorted((e.batch.header.origin, e.batch.header.seq, _bytes(e.batch)) for e in self.emitted if e.late)


def _bytes(batch: Batch) -> bytes:
    return b"" if batch.data is None else repr(batch.data.to_pylist()).encode()

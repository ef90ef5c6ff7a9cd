"""Random queries and rows for a simulated network.

Law: a seed determines a query. Numbers are integers, so that sums are equal in any order of addition.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa

from rove.model.schema import parse_schema
from rove.plan import build
from rove.plan.expressions.parse import parse_expression
from rove.plan.operators import CountWindow, Operator, Scan, Source, Watermark
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages

COLUMNS = "key string, ts timestamp, value bigint, level int"
SCHEMA = parse_schema(COLUMNS)
STREAMS = ("readings", "events")
SECOND_US = 1_000_000
START_US = 1_760_428_800 * SECOND_US
DELAY = "3 seconds"
KEYS = 4


def some_query(random: Random, streams: tuple[str, ...] = STREAMS) -> Stages:
    """A random query that the edge can run, over one stream or two."""
    plan = _steps(_source(random, streams), random)
    match random.choice(("plain", "window", "window", "window", "hop", "scan", "count", "join", "union")):
        case "window":
            plan = _window(_timed(plan), random, f"{random.choice((5, 10, 30))} seconds")
        case "hop":
            plan = _window(_timed(plan), random, "20 seconds", "5 seconds")
        case "scan":
            plan = _scan(plan, random.choice((1, 5)))
        case "count":
            timed = _timed(plan)
            calls = (build.aggregate_call(parse_expression("max(value)"), timed.schema, "max(value)", "most"),)
            plan = CountWindow(timed, ("key",), calls, SECOND_US, random.choice((2, 5)))
        case "join":
            plan = _join(random, streams)
        case "union":
            other = _steps(_source(random, streams), random)
            plan = _window(_timed(build.united(plan, other)), random, "10 seconds")
    if "total" in plan.schema.names and random.random() < 0.5:
        plan = _where(plan, "total > 10")
    return Stages.of({"out": optimize(plan)})


def telling_query(random: Random, stream: str) -> Stages:
    """A random query that gives a result for most rows."""
    plan: Operator = Source(stream, SCHEMA)
    match random.choice(("plain", "window", "window", "scan")):
        case "plain":
            plan = _where(plan, "level <> 3")
        case "window":
            return windows(random, stream, random.choice((2, 5)))
        case "scan":
            plan = _scan(plan, random.choice((1, 5)))
    return Stages.of({"out": optimize(plan)})


def windows(random: Random, stream: str, seconds: int) -> Stages:
    """Windows over the rows of a stream, by key."""
    groups = [build.item(f"window(ts, '{seconds} seconds')"), build.item("key")]
    results = [build.item(text) for text in random.sample(("count(*) AS n", "sum(value) AS total"), 2)]
    return Stages.of({"out": optimize(build.grouped(_timed(Source(stream, SCHEMA)), groups, results))})


def some_rows(random: Random, key: str, clock_us: int, rows: int, spread_us: int) -> pa.RecordBatch:
    """A source's rows at a time, with event times slightly out of order."""
    moments = [clock_us - random.randrange(spread_us + 1) for _ in range(rows)]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(
                [key if random.random() < 0.7 else f"k{random.randrange(KEYS)}" for _ in range(rows)], pa.string()
            ),
            pa.array(moments, SCHEMA.field("ts").type),
            pa.array([None if random.random() < 0.05 else random.randrange(100) for _ in range(rows)], pa.int64()),
            pa.array([random.randrange(5) for _ in range(rows)], pa.int32()),
        ],
        schema=SCHEMA,
    )


def _source(random: Random, streams: tuple[str, ...]) -> Operator:
    return Source(random.choice(streams), SCHEMA)


def _steps(plan: Operator, random: Random) -> Operator:
    """Up to three stateless steps that keep the names of columns."""
    for _ in range(random.randrange(4)):
        if random.random() < 0.5:
            plan = _where(plan, random.choice(("value > 20", "level <> 3", "value % 2 = 0 OR level = 1", "value < 0")))
        else:
            text = random.choice(("value + level", "value * 2", "coalesce(value, 7)"))
            plan = build.with_column(plan, "value", parse_expression(text), text)
    return plan


def _where(plan: Operator, text: str) -> Operator:
    return build.filtered(plan, parse_expression(text), text)


def _scan(plan: Operator, every_s: int) -> Operator:
    timed = _timed(plan)
    calls = (build.aggregate_call(parse_expression("sum(value)"), timed.schema, "sum(value)", "total"),)
    return Scan(timed, ("key",), calls, every_s * SECOND_US)


def _timed(plan: Operator) -> Operator:
    return Watermark(plan, "ts", 3 * SECOND_US)


def _window(plan: Operator, random: Random, *spans: str) -> Operator:
    window = ", ".join(f"'{span}'" for span in spans)
    groups = [build.item(f"window(ts, {window})")] + ([build.item("key")] if random.random() < 0.7 else [])
    outputs = ["count(*) AS n", "sum(value) AS total", "max(level) AS top", "avg(value) AS mean"]
    chosen = random.sample(outputs, random.randint(1, 3))
    return build.grouped(plan, groups, [build.item(text) for text in chosen])


def _join(random: Random, streams: tuple[str, ...]) -> Operator:
    """Two streams, or the same stream twice, joined within a window."""
    sides = []
    for prefix in ("l", "r"):
        plan = _steps(_source(random, streams), random)
        plan = _timed(plan)
        items = ["window(ts, '10 seconds') AS w", "key", f"value AS {prefix}v"]
        sides.append(build.selected(plan, [build.item(text) for text in items]))
    return build.joined(sides[0], sides[1], ["w", "key"], "inner", "w, key")

"""Portable queries from devices over an edge and the gateway's log into streaming Spark, wherever Spark begins.

`pytest tests/e2e/test_portable_streaming.py --all-queries` runs all of them, cut at every step (over half an hour);
without it a few run, with as little and as much in Spark as can be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rove.cloud.compile import compile_plan
from rove.cloud.source import register
from rove.cloud.stream import LogAt, streams_of
from rove.control.asks.requests import AccountLine, CloudQuery, CloudSink, Named, Submit, Submitted
from rove.data.settings import WorkerSettings
from rove.model.errors import RoveError
from rove.model.ids import NodeId, Stage
from rove.model.messages import Sink
from rove.model.schema import schema_text
from rove.plan import codec
from rove.plan.operators import Source, Table
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.runtime.adapters.sources import SourceSpec
from rove.runtime.local import LocalNet
from tests.cloud.patient import patiently
from tests.depth import some_slow
from tests.portable.queries import QUERIES, STATIC, frames_of, inputs, plan_of, tables
from tests.portable.rows import assert_same_rows
from tests.portable.test_portable import origins

SAMPLE = (
    "q8_monitor_new_users",
    "q13_join_a_side_input",
    "sums_of_each_type",
    "window_of_windows",
    "seen_once",
    "steps_without_state",
)
NUMBERS = count()
PATIENCE_S = 600  # a machine may be busy with other things
GATEWAY, EDGE = NodeId("gateway"), NodeId("edge")


def wanted(config: pytest.Config) -> list[Callable[..., Any]]:
    return [q for q in QUERIES if config.getoption("--all-queries") or q.__name__ in SAMPLE]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("query", some_slow(wanted(metafunc.config), 2), ids=lambda q: q.__name__)


def cuts(stages: Stages, every: bool) -> Iterator[tuple[str, str, Stages]]:
    """A plan with as little in Spark as can be, with as much, and with Spark beginning at each of its steps."""
    yield "little-in-spark", "bottom_up", stages
    yield "much-in-spark", "cloud_only", stages
    for n, operator in enumerate(stages.operators if every else ()):
        if not isinstance(operator, Source | Table):
            hinted = Stages(stages.operators, stages.outputs, ((Stage(n), "cloud"),))
            yield f"from-{type(operator).__name__}-{n}", "bottom_up", hinted


def write_files(folder: Path, names: tuple[str, ...]) -> Iterator[SourceSpec]:
    """The rows of each origin as a file that a device replays, and when it may begin."""
    for name in names:
        if name in STATIC:
            continue
        for number, (_, batches) in enumerate(sorted(origins(name).items())):
            file = folder / f"{name}-{number}.parquet"
            pq.write_table(pa.Table.from_batches(batches), file)
            yield SourceSpec(
                stream=name,
                columns=schema_text(tables()[name].schema),
                node=f"device{number}",
                file=str(file),
                rows=batches[0].num_rows,
                rate=0.0,
                when=str(folder / "begin"),
            )


def test_what_streams_into_spark_is_what_batch_spark_gives(
    spark: Any,
    tmp_path: Path,
    query: Callable[..., Any],
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    names = inputs(query)
    expected = query(*frames_of(spark, query).values()).toArrow()
    net = LocalNet(tmp_path)
    net.add_node(WorkerSettings(node=GATEWAY, kind="gateway"), durable=True)
    net.add_node(WorkerSettings(node=EDGE, kind="edge", parents=(GATEWAY,), slots=64))
    specs = list(write_files(tmp_path, names))
    for device in sorted({spec.node for spec in specs}):
        settings = WorkerSettings(node=NodeId(device), kind="device", parents=(EDGE,), slots=64)
        net.add_node(settings, tuple(s for s in specs if s.node == device))
    net.run_for(0.3)
    try:
        every = bool(pytestconfig.getoption("--all-queries"))
        parts = list(submitted(net, Stages.of({"out": optimize(plan_of(query))}), every))
        assert net.run_until(lambda: all(running(net, name) for name, _ in parts), PATIENCE_S)
        (tmp_path / "begin").touch()
        assert net.run_until(lambda: all(arrived(net, name) for name, _ in parts), PATIENCE_S)
    finally:
        net.close()
    register(spark)
    record_property("cuts", len(parts))
    for name, part in parts:
        actual = patiently(partial(answer, spark, tmp_path, part))
        assert_same_rows(actual, expected, f"{query.__name__} {name}")


def submitted(net: LocalNet, stages: Stages, every: bool) -> Iterator[tuple[str, CloudQuery]]:
    """Every cut as a query of its own, with what Spark has to do for it. A cut that cannot be placed is refused."""
    for what, strategy, cut in cuts(stages, every):
        body = Submit(
            name=what,
            plan=codec.encode(cut),
            sink=Sink(kind="log"),
            strategy=strategy,
            cloud=CloudSink(kind="memory", name="answer"),
        )
        try:
            net.ask("submit", body, Submitted)
        except RoveError as refused:
            if not re.search("runs in Spark|cannot run there", str(refused)):
                raise
            continue
        yield what, next(q for q in net.ask("cloud", None, list[CloudQuery]) if q.query == what)


def running(net: LocalNet, query: str) -> bool:
    lines = [w.worker.running() for w in map(net.worker, (GATEWAY, EDGE))]
    return all(query in found for found in lines)


def arrived(net: LocalNet, query: str) -> bool:
    lines = net.ask("status", Named(name=query), list[AccountLine])
    made = sum(line.produced for line in lines)
    ended = all(producer.ended for producer in net.producers())
    return ended and made > 0 and not any(line.in_flight > line.open or line.buffered for line in lines)


def answer(spark: Any, folder: Path, part: CloudQuery) -> pa.Table:
    """The answer of streaming Spark over what is in the log."""
    stages = codec.decode(part.plan)
    plan = stages.operators[stages.outputs[0][1]]
    frames = streams_of(spark, plan, LogAt(path=str(folder / GATEWAY), query=part.query))
    name = f"answer_{next(NUMBERS)}"
    writer = compile_plan(plan, frames).writeStream.format("memory").queryName(name).outputMode("append")
    running = writer.option("checkpointLocation", str(folder / "state" / name)).trigger(availableNow=True).start()
    running.awaitTermination()
    dropped = [int(op["numRowsDroppedByWatermark"]) for p in running.recentProgress for op in p["stateOperators"]]
    assert not any(dropped)
    return spark.table(name).toArrow()

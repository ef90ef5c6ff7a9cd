"""A query gets another text while real devices send: every row is computed once, with one of the texts, and open
windows keep their rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from rove.control.asks.requests import AccountLine, QueryLine
from rove.runtime.adapters.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually
from tests.runtime.queries import COLUMNS, in_log

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

DEVICES, BATCHES, RATE, ROWS = ("dev0", "dev1"), 100, 10, 20
RARE, OFTEN = 60, 30
BUSY = "SELECT train, ts, boarding FROM trains WHERE boarding > {}"
COUNTED = """
import rove
from rove import functions as F

trains = rove.Session.local().stream("trains", schema="{columns}").where("boarding > {more_than}")
counted = trains.withWatermark("ts", "1 hour").groupBy(F.window("ts", "5 seconds"), "train").count()
"""


def test_a_query_is_updated_while_rows_flow(cluster: Cluster, tmp_path: Path) -> None:
    go, updated_go = tmp_path / "go", tmp_path / "updated"  # one device begins before the update, one after it
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    cluster.add("edge", "edge", listen="tcp://127.0.0.1:0", parents=["gateway"], folder=str(tmp_path / "edge"))
    made_up = f"trains=generate:start_us=1000000,rows={ROWS},rate={RATE},batches={BATCHES},seed=7,step_us=10000"
    texts = {device: f"{made_up},when={gate}" for device, gate in zip(DEVICES, (go, updated_go), strict=True)}
    for device, text in texts.items():
        cluster.add(device, "device", parents=["edge"], slots=64, sources=[text], columns={"trains": COLUMNS})
    cluster.start("gateway", "edge", *DEVICES)
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 30)
    for more_than in (RARE, OFTEN):
        (tmp_path / f"busy{more_than}.sql").write_text(BUSY.format(more_than))
        (tmp_path / f"counted{more_than}.py").write_text(COUNTED.format(columns=COLUMNS, more_than=more_than))
    cluster.submit(tmp_path / f"busy{RARE}.sql", "--name", "busy")
    cluster.submit(tmp_path / f"counted{RARE}.py", "--name", "counted")
    assert eventually(lambda: running(cluster), 30)
    go.touch()
    assert eventually(lambda: produced(cluster) > 10 * ROWS, 30)

    for query in ("busy.sql", "counted.py"):
        name, kind = query.split(".")
        done = cluster.rove("update", name, str(tmp_path / f"{name}{OFTEN}.{kind}"))
        assert done.returncode == 0, done.stderr
        assert f"query `{name}`, version 2" in done.stdout
    refused = cluster.rove("update", "counted", str(tmp_path / f"busy{OFTEN}.sql"))
    assert refused.returncode != 0
    assert "cannot keep its state" in refused.stderr
    assert eventually(lambda: running(cluster), 30)
    updated = produced(cluster)  # rows that are made later are computed with the new text
    updated_go.touch()
    assert eventually(lambda: produced(cluster) > updated, 30)
    cluster.kill("edge")
    cluster.start("edge")

    assert eventually(lambda: settled(cluster), 90), cluster.client.ask("status", None, list[AccountLine])
    assert set(cluster.stop().values()) == {0}
    specs = [read_spec(text, COLUMNS, device) for device, text in texts.items()]
    made = [row for spec in specs for batch in generated(spec) for row in batch.to_pylist()]
    check_rows(made, in_log(tmp_path / "gateway/log/busy/out")[0], updated)
    check_windows(made, in_log(tmp_path / "gateway/log/counted/out")[0])


def check_rows(made: list[dict[str, object]], found: list[pa.RecordBatch], updated: int) -> None:
    """Rows above both bounds are there, once; of rows between them those that were made after the update."""
    names = ("train", "ts", "boarding")
    rows = Counter(tuple(row[name] for name in names) for batch in found for row in batch.to_pylist())
    may = Counter(tuple(row[name] for name in names) for row in made if row["boarding"] > OFTEN)  # type: ignore[operator]
    must = Counter(tuple(row[name] for name in names) for row in made if row["boarding"] > RARE)  # type: ignore[operator]
    assert must <= rows <= may
    between = (may - must).total()
    later = between * (1 - updated / len(made))
    assert 0.7 * later < (rows - must).total() < between, "the new text computes what is made after the update"


def check_windows(made: list[dict[str, object]], found: list[pa.RecordBatch]) -> None:
    """No window has lost rows that it had when its query was updated."""
    counts = {
        more_than: Counter(
            (row["train"], int(row["ts"].timestamp()) // 5)  # type: ignore[attr-defined]
            for row in made
            if row["boarding"] > more_than  # type: ignore[operator]
        )
        for more_than in (RARE, OFTEN)
    }
    windows: Counter[tuple[object, int]] = Counter()
    for batch in found:
        for row in batch.to_pylist():
            key = (row["train"], int(row["window"]["start"].timestamp()) // 5)
            assert key not in windows, "a window is given once"
            windows[key] = row["count"]
    assert windows.keys() == counts[OFTEN].keys()
    assert counts[RARE] < windows < counts[OFTEN]


def running(cluster: Cluster) -> bool:
    return all(line.state == "running" for line in cluster.client.ask("queries", None, list[QueryLine]))


def produced(cluster: Cluster) -> int:
    lines = cluster.client.ask("status", None, list[AccountLine])
    return sum(line.produced for line in lines if line.query == "busy")


def settled(cluster: Cluster) -> bool:
    lines = [line for line in cluster.client.ask("status", None, list[AccountLine]) if "#" not in line.origin]
    wanted = len(DEVICES) * 2
    return len(lines) == wanted and all(
        line.produced == line.delivered == BATCHES * ROWS and not line.in_flight for line in lines
    )

"""A whole network of processes: keys, disks, kill -9 of gateway and coordinator, a wire that is cut."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from rove.control.requests import AccountLine, QueryLine
from rove.model.messages import Sink
from rove.runtime.sources import generated, read_spec
from tests.e2e.cluster import Cluster, eventually, free_port
from tests.e2e.proxy import CuttingProxy
from tests.runtime.queries import COLUMNS, as_rows, busy, computed, in_log, windows

TREE = {"edge1": "gateway", "edge2": "edge1", "edge3": "edge1", "edge4": "edge2"}
DEVICES = {f"dev{n}": f"edge{n % 4 + 1}" for n in range(8)}
BATCHES, RATE = 240, 10


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    yield found
    found.destroy()


def test_every_row_arrives_once_whatever_dies_or_is_cut(cluster: Cluster, tmp_path: Path) -> None:
    port = free_port()
    proxy = CuttingProxy(port)
    go = tmp_path / "go"
    listen, disk = f"tcp://127.0.0.1:{port}", str(tmp_path / "gateway")
    cluster.add("gateway", "gateway", listen=listen, advertise=proxy.address, folder=disk)
    for edge, parent in TREE.items():
        disk = str(tmp_path / "edge1") if edge == "edge1" else ""
        cluster.add(edge, "edge", listen="tcp://127.0.0.1:0", parents=[parent], slots=64, folder=disk)
    specs = []
    for device, edge in DEVICES.items():
        text = f"trains=generate:rows=20,rate={RATE},batches={BATCHES},seed=7,step_us=10000,when={go}"
        specs.append(read_spec(text, COLUMNS, device))
        cluster.add(device, "device", parents=[edge], slots=64, sources=[text], columns={"trains": COLUMNS})
    rows = {spec.name: list(generated(spec)) for spec in specs}

    cluster.start("gateway", *TREE)
    cluster.submit("busy", busy(), Sink(kind="log"))
    cluster.submit("cloud", windows("cloud"), Sink(kind="log"))
    cluster.submit("edge", windows("edge1"), Sink(kind="log", node="edge1"))
    cluster.start(*DEVICES)
    assert eventually(lambda: all_run(cluster), 30), cluster.client.ask("queries", None, list[QueryLine])
    go.touch()

    time.sleep(3)
    cluster.kill("gateway")
    time.sleep(1)
    cluster.start("gateway")
    time.sleep(3)
    cluster.kill("coordinator")
    time.sleep(1)
    cluster.start("coordinator")
    time.sleep(2)
    proxy.cut = True
    time.sleep(10)
    proxy.cut = False

    want = as_rows([computed(busy(), rows)])
    assert eventually(lambda: len(as_rows(in_log(tmp_path / "gateway/log/busy/out")[0])) >= len(want), 40)
    assert eventually(lambda: settled(cluster), 40), cluster.client.ask("status", None, list[AccountLine])
    assert set(cluster.stop().values()) == {0}
    proxy.close()

    batches = once(tmp_path / "gateway/log/busy/out")
    assert Counter(as_rows(batches)) - Counter(want) == Counter(want) - Counter(as_rows(batches)) == Counter()
    final = computed(windows("edge1"), rows)
    assert as_rows(once(tmp_path / "edge1/log/edge/out")) == as_rows([final])
    (partials,) = (tmp_path / "gateway/log/cloud").iterdir()
    assert merged(once(partials)) == whole(final)


def all_run(cluster: Cluster) -> bool:
    """Whether every node that is needed runs its part, of all eight sources."""
    lines = cluster.client.ask("queries", None, list[QueryLine])
    return all(q.state == "running" and not q.missing and not q.trouble and q.nodes >= 9 for q in lines)


def settled(cluster: Cluster) -> bool:
    """Whether every row that sources produced is accounted for, by the coordinator's own books."""
    lines = cluster.client.ask("status", None, list[AccountLine])
    produced = [line for line in lines if line.origin.startswith("trains/")]
    return len(produced) == 3 * len(DEVICES) and all(
        line.produced == BATCHES * 20 == line.delivered for line in produced
    )


def once(folder: Path) -> list[pa.RecordBatch]:
    """The batches of a log, in which every name stands once."""
    batches, names = in_log(folder)
    names.sort()
    again = [b for a, b in pairwise(names) if a[0] == b[0] and b[1] <= a[2]]  # seqs of windows are too many to count
    assert again == []
    return batches


def merged(partials: list[pa.RecordBatch]) -> Counter[tuple[object, ...]]:
    """Partial sums and counts, added up by pane and train: a window has one pane here."""
    found: Counter[tuple[object, ...]] = Counter()
    for row in (row for batch in partials for row in batch.to_pylist()):
        pane, train, on, rows = row.values()
        found[(pane, train, "on")] += on
        found[(pane, train, "rows")] += rows
    return found


def whole(table: pa.Table) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for row in table.to_pylist():
        found[(row["window"]["start"], row["train"], "on")] += row["on"]
        found[(row["window"]["start"], row["train"], "rows")] += row["rows"]
    return found

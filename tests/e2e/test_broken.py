"""A real process whose machine breaks: its exit code, its last word, and what the next start makes of it."""

from __future__ import annotations

from pathlib import Path

from rove.control.asks.requests import QueryLine
from rove.runtime.adapters.sources import generated, read_spec
from rove.runtime.broken import EXIT_CODE
from tests.e2e.cluster import Cluster, eventually
from tests.runtime.queries import COLUMNS, as_rows, busy, computed, in_log

BREAKS = """
import sys
from rove.data.events import DiskDone
from rove.data.worker import Worker
from rove.runtime.process import main

handle, done = Worker.handle, []

def breaks(self, event, now):
    commands = handle(self, event, now)
    if isinstance(event, DiskDone):
        done.append(event)
    if len(done) == 20:
        raise KeyError("broken on purpose")
    return commands

Worker.handle = breaks
sys.exit(main(sys.argv[1]))
"""


def runs(cluster: Cluster) -> bool:
    return all(q.state == "running" and q.nodes == 2 for q in cluster.client.ask("queries", None, list[QueryLine]))


def test_a_process_that_breaks_says_why_and_its_next_start_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    text = f"trains=generate:start_us=1000000,rows=20,rate=40,batches=150,seed=7,step_us=10000,when={go}"
    cluster.add("dev", "device", parents=["gateway"], slots=64, sources=[text], columns={"trains": COLUMNS})
    cluster.start("gateway", program=("-c", BREAKS))
    cluster.start("dev")
    assert eventually(lambda: "trains" in cluster.client.ask("streams", None, dict[str, str]), 10)
    (tmp_path / "busy.sql").write_text("SELECT train, ts, boarding FROM trains WHERE boarding > 40")
    cluster.submit(tmp_path / "busy.sql")
    assert eventually(lambda: runs(cluster), 20)
    go.touch()

    assert cluster.ended("gateway", 20) == EXIT_CODE
    said = (tmp_path / "gateway.log").read_text().splitlines()
    assert said[-1].startswith("gateway ends: KeyError: 'broken on purpose', at DiskDone")
    assert said[-1].endswith("A restart is safe: nothing that was acknowledged is lost.")
    assert any("Traceback" in line for line in said)

    cluster.start("gateway")
    spec = read_spec(text, COLUMNS, "dev")
    want = as_rows([computed(busy(), {spec.origin: list(generated(spec))})])
    log = tmp_path / "gateway/log/busy/out"
    assert eventually(lambda: len(as_rows(in_log(log)[0])) >= len(want), 30)
    batches, names = in_log(log)
    assert as_rows(batches) == want
    assert len(set(names)) == len(names)

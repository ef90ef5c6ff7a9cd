"""A whole network in which every process has a key of its own, made by the commands that a user types: coordinator,
gateway, device and `rove cloud`, which writes into PostgreSQL with a password that nobody else knows. A session in
Python reads one of its tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rove
from rove.control.asks.requests import QueryLine
from rove.model.errors import PlanError, RoveError
from tests.cloud.postgres_server import PASSWORD, Server
from tests.e2e.cluster import Cluster, eventually
from tests.runtime.queries import COLUMNS

pytestmark = pytest.mark.slow  # it takes long; `.ci/run` runs it

WAIT_S = 300.0  # at the most, for Spark to come up on a busy machine
QUERY = f"""
import rove

busy = rove.Session.local().stream("trains", schema={COLUMNS!r}).where("boarding >= 0").select("train", "boarding")
"""
ROWS = 5 * 20


def lines(cluster: Cluster) -> list[QueryLine]:
    return cluster.client.ask("queries", None, list[QueryLine])


def rows_in(postgres: Server) -> int:
    if postgres.ask("SELECT to_regclass('joined')") == [(None,)]:
        return 0
    ((found,),) = postgres.ask("SELECT count(*) FROM joined")
    return int(found)


def test_rove_cloud_joins_with_a_token_and_its_password_is_nowhere_else(
    cluster: Cluster, tmp_path: Path, postgres: Server
) -> None:
    cluster.add("gateway", "gateway", listen="tcp://127.0.0.1:0", folder=str(tmp_path / "gateway"))
    go = tmp_path / "go"
    source = f"trains=generate:start_us=1000000,rows=20,rate=10,batches=5,seed=7,step_us=10000,when={go}"
    cluster.add("dev0", "device", parents=["gateway"], slots=8, sources=[source], columns={"trains": COLUMNS})
    invited = cluster.rove("keys", "invite", "spark", "--kind", "cloud", "--json")
    assert invited.returncode == 0, invited.stderr
    mine = tmp_path / "spark.joined"
    typed_rove = (sys.executable, "-c", "from rove.cli import main; main()")
    token = json.loads(invited.stdout)["token"]
    joined = subprocess.run(
        [*typed_rove, "join", "--token", token, "--keys", str(mine)], capture_output=True, text=True, check=False
    )
    assert joined.stdout == (
        f"this machine may run Spark as `spark`; start it with: rove cloud --keys {mine} --logs DIR\n"
    ), joined.stderr

    file = tmp_path / "busy.py"
    file.write_text(QUERY)
    url = f"postgresql://rove@127.0.0.1:{postgres.port}/postgres"
    cluster.submit(file, "--sink", "postgres:joined", "--option", f"url={url}")
    session = rove.Session(cluster.url, keys=cluster.folder)
    seen = session.stream("trains", schema=COLUMNS).select("train", "boarding").writeStream.toTable("seen")
    secret = tmp_path.parent / f"{tmp_path.name}.pgpass"  # outside of the folder in which the password is looked for
    secret.touch(0o600)
    secret.write_text(f"127.0.0.1:{postgres.port}:postgres:rove:{PASSWORD}\n")
    cluster.start("gateway", "dev0")
    assert eventually(lambda: [q.state for q in lines(cluster)] == ["running"] * 2, 60)
    with pytest.raises(RoveError, match="no `rove cloud` has asked for work lately; start: rove cloud"):
        session.table("seen")
    go.touch()
    with open(tmp_path / "cloud.log", "w") as log:
        cloud = subprocess.Popen(
            [
                *typed_rove, "cloud", "--keys", str(mine), "--logs", str(tmp_path / "gateway"), "--master", "local[1]",
                "--tables", str(tmp_path / "tables"), "--state", str(tmp_path / "state"),
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "PGPASSFILE": str(secret)},
        )  # fmt: skip
    try:
        assert eventually(lambda: rows_in(postgres) == ROWS, WAIT_S), (tmp_path / "cloud.log").read_text()[-3_000:]
        assert eventually(lambda: [q.spark.state for q in lines(cluster) if q.spark] == ["running"] * 2, 30)
        seen.processAllAvailable(timeout=60)
        assert session.table("seen").num_rows == ROWS
        assert session.table("seen", limit=3).num_rows == 3
        seen.processAllAvailable(timeout=30)  # behind the last rows the log only says that the source has ended
        assert [q.spark.lag_entries for q in lines(cluster) if q.query == "seen"] == [0]
        with pytest.raises(PlanError, match="table `scene` cannot be read: there is no table `scene` yet"):
            session.table("scene")
        shown = [cluster.rove("queries", "--json"), cluster.rove("queries"), cluster.rove("topology", "--json")]
        assert '"state": "running"' in shown[0].stdout
        typed = (*typed_rove, "stop", "busy", "--keys", str(mine / "node.keys"))
        refused = subprocess.run(typed, capture_output=True, text=True, check=False)
        assert "this key may not give commands" in refused.stderr
        assert cluster.rove("keys", "revoke", "spark").returncode == 0
        away = "queries go on without the coordinator"
        assert eventually(lambda: away in (tmp_path / "cloud.log").read_text(), 60)
    finally:
        session.close()
        cloud.send_signal(signal.SIGTERM)
        assert cloud.wait(60) == 0
    found = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"joined" in data for path, data in found.items() if "catalog" in path)
    assert [path for path, data in found.items() if PASSWORD.encode() in data] == []
    assert PASSWORD not in "".join(done.stdout + done.stderr for done in shown)

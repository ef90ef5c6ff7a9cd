"""A machine with the core packages only: the wheel is installed beside them, and its commands run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rove.cli.device import device
from rove.cli.flags import run_plain
from rove.model.errors import SetupError
from rove.runtime import process
from rove.runtime.settings import WorkerSection
from tests.e2e.cluster import Cluster
from tests.installed import environment

Bare = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """The `rove` command of an environment with nothing but the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("bare")
    program = str(environment(folder, wheel) / "rove")

    def rove(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *args], capture_output=True, text=True, timeout=120, check=False, cwd=folder)

    return rove


def test_help_and_version_need_no_more_packages(bare: Bare) -> None:
    for command in ("device", "worker", "gateway", "join", "doctor"):
        said = bare(command, "--help")
        assert (said.returncode, said.stderr) == (0, "")
        assert f"usage: rove {command}" in said.stdout
    assert "device" in bare().stdout
    assert bare("--version").stdout == bare("version").stdout == "0.1.0\n"


def test_a_command_that_needs_more_packages_says_what_to_type(bare: Bare) -> None:
    said = bare("queries")
    assert said.returncode == 1
    assert "`queries` is not a command of a device" in said.stderr
    assert said.stderr.endswith("pip install 'rove[coordinator]'\n")
    said = bare("nonsense")
    assert (said.returncode, said.stderr.startswith("rove: no command `nonsense`; ")) == (1, True)


def test_a_node_joins_and_the_doctor_sees_its_coordinator(bare: Bare, cluster: Cluster, tmp_path: Path) -> None:
    token = cluster.invitation("tram-7", "device")
    said = bare("join", "--token", token, "--keys", str(tmp_path / "mine"))
    assert said.stdout.startswith("this machine is now node `tram-7`"), said.stderr
    healthy = bare("doctor", "--keys", str(tmp_path / "mine"), "--data", str(tmp_path / "data"))
    assert healthy.returncode == 0, healthy.stdout
    assert f"ok     keys: of `tram-7`, for the coordinator at {cluster.url}" in healthy.stdout
    assert f"ok     coordinator: {cluster.url} answered in" in healthy.stdout
    assert "absent packages of rove[cloud]: not installed: pyspark" in healthy.stdout
    cluster.end("coordinator")
    alone = bare("doctor", "--keys", str(tmp_path / "mine"))
    assert alone.returncode == 1
    assert "WRONG  coordinator: nobody answered" in alone.stdout


def test_flags_mean_the_same_with_and_without_typer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[WorkerSection] = []
    monkeypatch.setattr(process, "run_worker", started.append)
    args = [
        "--name",
        "t",
        "--parent",
        "a",
        "--parent",
        "b",
        "--slots",
        "3",
        "--trust-functions",
        "--data",
        str(tmp_path),
    ]
    run_plain({"device": device}, ["device", *args], "")
    monkeypatch.setattr(sys, "argv", ["rove", "device", *args])
    from rove.cli import main

    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    plain, typed = started
    assert plain == typed
    assert (plain.parents, plain.slots, plain.trust_functions, plain.folder) == (("a", "b"), 3, True, str(tmp_path))


def test_a_flag_below_its_least_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_plain({"device": device}, ["device", "--slots", "-1"], "")
    assert "-1 is less than 0" in capsys.readouterr().err
    with pytest.raises(SetupError, match="needs a name"):
        run_plain({"device": device}, ["device"], "")

"""How a process of Rove uses memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from rove.runtime.memory import NEW_OBJECTS, ROUNDS, look_for_cycles_seldom


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    "start",
    [
        "from rove.runtime.settings import WorkerSection; process.run_worker(WorkerSection(node='n', kind='edge'))",
        "from rove.runtime.settings import CoordinatorSection; "
        "process.run_coordinator(CoordinatorSection(listen='tcp://0.0.0.0:0', keys='/none', folder='/none'))",
    ],
    ids=["worker", "coordinator"],
)
def test_a_process_of_rove_looks_for_cycles_seldom(start: str) -> None:
    refused = f"""
import gc
from rove.model.errors import SetupError
from rove.runtime import process
try:
    {start}
except SetupError:
    print(gc.get_threshold())
"""
    assert run(refused) == str((NEW_OBJECTS, ROUNDS, ROUNDS))


def test_a_users_process_keeps_its_own_settings() -> None:
    session = "import gc; before = gc.get_threshold(); import rove; s = rove.Session.local(); s.close()"
    assert run(f"{session}; print(gc.get_threshold() == before, gc.get_freeze_count())") == "True 0"


def test_cycles_are_found_all_the_same() -> None:
    class Node:
        pass

    look_for_cycles_seldom()
    one = Node()
    one.itself = one  # type: ignore[attr-defined]
    found = weakref.ref(one)
    del one
    kept = [[] for _ in range(2 * NEW_OBJECTS)]
    assert found() is None
    assert len(kept) == 2 * NEW_OBJECTS
    assert gc.isenabled()

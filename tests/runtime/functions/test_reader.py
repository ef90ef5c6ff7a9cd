"""Functions are read in their own processes, which end when nobody needs them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import cloudpickle
import psutil
import pyarrow as pa
import pytest

import rove
from rove.data.fragment.running_fragment import RunningFragment
from rove.model.errors import PlanError
from rove.model.ids import QueryId, Stage, Version
from rove.model.messages import Fragment
from rove.plan import codec, wire
from rove.plan.stages import Stages
from rove.plan.user_functions import by_name, write_function
from rove.runtime.functions import process, reader
from rove.runtime.functions.frames import Call, Load, Pipe, to_bytes
from rove.runtime.functions.process import Bounds
from rove.runtime.functions.reader import ProcessReader
from tests.e2e.cluster import eventually
from tests.runtime.functions import user_code

pytestmark = pytest.mark.usefixtures("processes")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
SAME = wire.Reference(user_code.__name__, "same")


def runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_the_same_function_has_one_process_until_nobody_has_it_any_more() -> None:
    read = ProcessReader(False, Bounds())
    first, again = read(SAME), read(SAME)
    assert first is again
    (found,) = read.processes()
    pid = found.pid
    assert pid is not None
    assert runs(pid)
    del first, again, found
    gc.collect()
    assert not runs(pid)
    assert read.processes() == []


def test_processes_of_functions_that_no_query_has_any_more_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    read = ProcessReader(False, Bounds())
    mapped = rove.Session.local().stream("s", schema="n bigint").mapInArrow(user_code.same, "n bigint")
    plan = codec.encode(Stages.of({"out": mapped.plan}))
    fragment = Fragment(
        query=QueryId("q"), version=Version(1), plan="", runs=(Stage(1),), makes={}, waits={}, next=None, sinks={},
        loads=(Stage(1),),
    )  # fmt: skip
    running = RunningFragment(fragment, plan, read=read)
    (used,) = read.processes()
    other = read(wire.Reference(user_code.__name__, "chosen"))
    first, second = used.pid or 0, other.pid or 0  # type: ignore[attr-defined]
    read.keep([])
    assert (runs(first), runs(second)) == (True, True)  # their queries may be about to run
    monkeypatch.setattr(reader, "UNNEEDED_S_MAX", 0.0)
    read.keep([running])
    assert (runs(first), runs(second)) == (True, False)
    read.keep([])
    assert not runs(first)
    data = pa.record_batch({"n": [1]})
    assert list(used(iter([data]))) == [data]  # in another process


def test_close_ends_all_processes() -> None:
    read = ProcessReader(False, Bounds())
    kept = [read(SAME), read(wire.Reference(user_code.__name__, "chosen"))]
    pids = [each.pid or 0 for each in read.processes()]
    assert all(map(runs, pids))
    read.close()
    assert not any(map(runs, pids))
    assert len(kept) == 2


def test_a_function_by_value_is_read_if_it_is_trusted_and_refused_in_the_same_words_if_not() -> None:
    least = 2

    def kept(batches: user_code.Batches) -> user_code.Batches:
        for batch in batches:
            yield batch.slice(least)

    word = write_function(kept, cloudpickle.dumps)
    with pytest.raises(PlanError) as refused:
        by_name(word)
    with pytest.raises(PlanError) as here:
        ProcessReader(False, Bounds())(word)
    assert str(here.value) == str(refused.value)
    read = ProcessReader(True, Bounds())(word)
    assert read.__name__ == "kept"
    (found,) = read(iter([pa.record_batch({"n": [1, 2, 3]})]))
    assert found["n"].to_pylist() == [3]


def test_none_of_the_functions_code_runs_in_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "tests.runtime.functions.user_module_that_ends"
    with pytest.raises(PlanError, match=r"its module ended its process with exit code 5"):
        ProcessReader(False, Bounds())(wire.Reference(module, "f"))
    monkeypatch.setattr(process, "START_S_MAX", 2.0)
    with pytest.raises(PlanError, match=r"`f` could not be read within 2 s: let its module do less"):
        ProcessReader(False, Bounds())(wire.Reference(module.replace("ends", "loops"), "f"))
    assert not [name for name in sys.modules if "user_module_that" in name]


@pytest.mark.parametrize("name", ["no.such.module:f", f"{user_code.__name__}:no_such", f"{user_code.__name__}:SCHEMA"])
def test_a_function_that_is_not_there_is_refused_in_the_same_words_as_inside_the_node(name: str) -> None:
    word = wire.Reference(*name.split(":"))
    with pytest.raises(PlanError) as inside:
        by_name(word)
    with pytest.raises(PlanError) as apart:
        ProcessReader(False, Bounds())(word)
    assert str(apart.value) == str(inside.value)


NODE = """
import sys
import pyarrow as pa
from rove.plan import wire
from rove.runtime.functions.process import Bounds, FunctionProcess

found = FunctionProcess(wire.Reference("tests.runtime.functions.user_code", "bad"), Bounds(call_s=300))
print(found.pid, flush=True)
how = sys.argv[1]
if how == "idle":
    sys.stdin.read()
list(found(iter([pa.record_batch({"text": [how]})])))
"""


@pytest.mark.parametrize("how", ["idle", "loop"])
def test_a_process_ends_with_its_node_even_by_kill_9(how: str) -> None:
    node = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(NODE), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert node.stdout is not None
    pid = int(node.stdout.readline())
    assert runs(pid)
    if how == "loop":
        assert eventually(lambda: psutil.Process(pid).cpu_times().user > 2, 60)
    node.kill()
    node.wait()
    assert eventually(lambda: not runs(pid), 5, 0.05)


def started(reads: int, writes: int) -> subprocess.Popen[bytes]:
    """A process that reads and writes these, as a node would start it."""
    command = [sys.executable, "-m", "rove.runtime.functions.child", *map(str, (reads, writes, os.getpid()))]
    return subprocess.Popen(command, pass_fds=(reads, writes), env=ENVIRONMENT)


def beside() -> tuple[subprocess.Popen[bytes], Pipe]:
    """A process beside this one, and the pipe to it."""
    reads, its_writes = os.pipe()
    its_reads, writes = os.pipe()
    child = started(its_reads, its_writes)
    os.close(its_reads)
    os.close(its_writes)
    return child, Pipe(reads, writes)


def test_a_process_without_a_node_ends_itself_a_while_after_the_bound_of_its_call() -> None:
    child, pipe = beside()
    pipe.send(Load(wire.Reference(user_code.__name__, "bad"), 0))
    pipe.receive()
    pipe.send(Call(1), [to_bytes(pa.record_batch({"text": ["loop"]}))])
    assert child.wait(60) == -signal.SIGALRM
    pipe.close()


def test_a_process_whose_pipe_ends_has_ended_by_itself() -> None:
    child, pipe = beside()
    pipe.send(Load(SAME, 0))
    pipe.receive()
    pipe.close()
    assert child.wait(10) == 0

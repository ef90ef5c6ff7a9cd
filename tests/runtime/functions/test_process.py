"""A function in a process of its own: whatever it does, the call ends, and the next batch is computed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from rove.data.operators.map import MapConfig
from rove.model.errors import UdfError
from rove.plan import wire
from rove.runtime.functions import process
from rove.runtime.functions.process import Bounds, FunctionProcess
from tests.e2e.cluster import eventually
from tests.runtime.functions import user_code

pytestmark = pytest.mark.usefixtures("processes")

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])
MIB = 1024 * 1024


def function(of: str, bounds: Bounds | None = None) -> FunctionProcess:
    return FunctionProcess(wire.Reference(user_code.__name__, of), bounds or Bounds())


def rows(text: str = "fine", count: int = 3) -> pa.RecordBatch:
    return pa.record_batch({"n": list(range(count)), "text": [text] * count}, SCHEMA)


def said(step: Callable[[pa.RecordBatch], object], data: pa.RecordBatch) -> str:
    with pytest.raises(UdfError) as error:
        step(data)
    return str(error.value)


def applied(found: FunctionProcess) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    return MapConfig(found, SCHEMA).build().apply


def test_rows_are_those_of_the_function_inside_the_node() -> None:
    inside, apart = MapConfig(user_code.chosen, SCHEMA).build().apply, applied(function("chosen"))
    for how in ("all", "some", "twice", "none"):
        nulls = pa.record_batch({"n": [None, 5, 1], "text": [how, "ä", None]}, SCHEMA)
        for data in (rows(how), rows(how, 10_000).slice(17, 1_000), nulls):
            assert apart(data).schema == inside(data).schema
            assert apart(data).equals(inside(data)), how


def test_a_fault_has_the_same_text_as_inside_the_node_and_costs_no_process() -> None:
    inside, found = MapConfig(user_code.faulty, SCHEMA).build().apply, function("faulty")
    pid = found.pid
    for how in (
        *("raises", "raises late", "exits", "interrupts"),
        *("numbers", "nothing", "a table", "other columns", "a dictionary"),
    ):
        assert said(applied(found), rows(how)) == said(inside, rows(how))
    assert said(applied(found), rows("unusual")) == "mapInArrow function `faulty` raised Unusual('what')"
    assert found.pid == pid


ENDS = {
    "exit": "ended its process with exit code 3; let it raise an error instead",
    "crash": "crashed its process (SIGSEGV); look for a fault in a library that it uses",
    "killed": "was killed (SIGKILL), as the system does when no memory is left; let it hold less at a time",
    "leave a child": "ended its process with exit code 4; let it raise an error instead",
    "close": "closed the pipe to its node; let it close only what it has opened",
    "write": "wrote into the pipe to its node",
}


def test_a_function_that_ends_its_process_loses_one_batch() -> None:
    found = function("bad")
    for how, what in ENDS.items():
        first, began_s = found.pid, time.monotonic()
        assert said(applied(found), rows(how)).startswith(f"mapInArrow function `bad` {what}")
        assert time.monotonic() - began_s < Bounds().call_s - 1  # nobody waited until the time was up
        assert applied(found)(rows()) == rows()
        assert found.pid != first


def test_a_function_that_loops_is_ended_when_its_time_is_up() -> None:
    found = function("bad", Bounds(call_s=0.5))
    first, began_s = found.pid, time.monotonic()
    text = said(applied(found), rows("loop"))
    assert text == (
        "mapInArrow function `bad` took longer than 0.5 s and was ended; let it do less for a batch, or raise the "
        "setting function_ms"
    )
    assert 0.5 <= time.monotonic() - began_s < 5
    assert first is not None
    assert not psutil.pid_exists(first)
    found._bounds = Bounds()
    assert applied(found)(rows()) == rows()


def test_a_program_that_the_function_has_started_ends_with_it() -> None:
    found = function("bad", Bounds(call_s=2))
    group = found.pid
    assert group is not None
    assert "took longer than 2 s" in said(applied(found), rows("start a program"))
    assert not look_for("sleep", group)


def look_for(name: str, group: int) -> list[psutil.Process]:
    """Processes of this name in a group that still run."""
    found = []
    for each in psutil.process_iter(["name"]):
        try:
            if each.info["name"] == name and os.getpgid(each.pid) == group and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


@pytest.mark.parametrize("how", ["eat", "eat with Arrow"])
def test_a_function_that_eats_memory_is_stopped_at_its_bound(how: str) -> None:
    found = function("bad", Bounds(memory_bytes=200 * MIB))
    first = found.pid
    text = said(applied(found), rows(how))
    assert text == (
        "mapInArrow function `bad` took more than 200 MiB of memory; let it hold less at a time, or raise the setting "
        "function_memory_bytes"
    )
    assert applied(found)(rows()) == rows()
    assert found.pid != first


def test_memory_that_is_kept_from_call_to_call_is_bounded_as_well() -> None:
    found = function("bad", Bounds(memory_bytes=200 * MIB))
    step = applied(found)
    for _ in range(5):
        step(rows("leak"))

    def leaks_on(data: pa.RecordBatch) -> None:
        for _ in range(5):
            step(data)

    assert "took more than 200 MiB" in said(leaks_on, rows("leak"))
    step(rows("leak"))


def test_a_batch_that_does_not_fit_into_the_memory_is_a_fault() -> None:
    found = function("same", Bounds(memory_bytes=20 * MIB))
    big = pa.record_batch({"n": range(1_000_000), "text": ["a text of some length"] * 1_000_000}, SCHEMA)
    assert "took more than 20 MiB" in said(applied(found), big)
    assert applied(found)(rows()) == rows()


def test_what_a_function_prints_goes_to_the_log_and_not_into_the_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    data = rows("print")
    found = applied(function("bad"))
    assert found(data) == data
    assert found(data) == data
    out, log = capfd.readouterr()
    assert out == ""
    assert log.count("49999 says a lot") == 2


def test_a_function_that_reads_its_input_finds_nothing() -> None:
    before, (end, other) = os.dup(0), os.pipe()
    os.write(other, b"for the node\n")
    os.dup2(end, 0)
    try:
        found = function("bad")
    finally:
        os.dup2(before, 0)
        for descriptor in (before, end, other):
            os.close(descriptor)
    assert said(applied(found), rows("read")) == "mapInArrow function `bad` raised EOFError: EOF when reading a line"


def test_what_arrow_imports_late_is_not_in_the_time_of_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pandas.py").write_text("import time\ntime.sleep(4)\nraise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert applied(function("chosen", Bounds(call_s=3)))(rows("some")).num_rows == 1


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="only Linux chooses whom to end")
def test_the_process_is_ended_before_its_node_when_no_memory_is_left() -> None:
    found = function("same")
    assert Path(f"/proc/{found.pid}/oom_score_adj").read_text().strip() == "500"


def test_a_function_that_forks_answers_once() -> None:
    found = applied(function("bad"))
    for _ in range(3):
        assert found(rows("fork")) == rows("fork")
    assert found(rows()) == rows()


def test_large_batches_pass_both_ways() -> None:
    data = pa.record_batch({"n": range(2_000_000), "text": ["a text of some length"] * 2_000_000}, SCHEMA)
    assert data.nbytes > 50_000_000
    assert applied(function("same"))(data) == data


def test_a_result_beyond_the_bound_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "FRAME_BYTES_MAX", 1_000)
    assert "got a batch of" in said(applied(function("same")), rows(count=1_000))


def test_a_function_that_fails_again_and_again_rests_longer_each_time() -> None:
    found = function("bad", Bounds(call_s=0.3))
    step = applied(found)
    for _ in range(2):
        assert "took longer than 0.3 s" in said(step, rows("loop"))
    began_s = time.monotonic()
    text = said(step, rows())
    assert time.monotonic() - began_s < 0.1
    assert "is not called for another" in text
    assert "because it failed 2 times in a row; the last time it took longer than 0.3 s" in text
    first = found._rests_until_s - began_s
    assert eventually(lambda: time.monotonic() >= found._rests_until_s, 60, 0.05)
    assert "took longer than 0.3 s" in said(step, rows("loop"))
    assert found._rests_until_s - time.monotonic() > first
    found._rests_until_s, found._bounds = 0, Bounds()
    assert step(rows()) == rows()
    found._bounds = Bounds(call_s=0.3)
    assert "bad` took longer" in said(step, rows("loop"))
    assert "bad` took longer" in said(step, rows("loop"))  # one failure after a result is not followed by a rest

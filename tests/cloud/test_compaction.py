"""Small files of a table become few: whatever is killed between two steps, each row is in the table once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rove.cloud.compaction import METADATA, WORK, Compacted, compact, listed, small_files
from rove.model.errors import SetupError
from tests.depth import examples

STEPS = ("rewritten", "recorded", "moved", "listed", "unchecked", "swapped")
INTERVAL = 10  # Spark compacts its list of files every tenth batch


def rewrite(files: Sequence[Path], folder: Path, count: int) -> None:
    """What Spark does with files, without Spark."""
    folder.mkdir()
    pq.write_table(pa.concat_tables(map(pq.read_table, files)), folder / "part-0.parquet")


class SinkTwin:
    """Writes a table as Spark's sink does: a file, then a line in the list; every tenth list holds all before it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.next = folder, 0
        (folder / METADATA).mkdir(parents=True, exist_ok=True)

    def write(self, batches: int) -> None:
        for _ in range(batches):
            self.publish(*self.prepared())

    def prepared(self) -> tuple[Path, str]:
        """The next list of files, which is not there yet."""
        number, self.next = self.next, self.next + 1
        file = self.folder / f"part-{number}.parquet"
        pq.write_table(pa.table({"n": [number]}), file)
        line = {"path": f"file://{file}", "size": file.stat().st_size, "isDir": False, "modificationTime": 1}
        line |= {"blockReplication": 1, "blockSize": 33_554_432, "action": "add"}
        if (number + 1) % INTERVAL:
            return self.folder / METADATA / str(number), "\n".join(("v1", json.dumps(line)))
        first = self.folder / METADATA / f"{number - INTERVAL}.compact"
        before = [first] if first.exists() else []
        before += [self.folder / METADATA / str(n) for n in range(number - INTERVAL + 1, number)]
        lines = [text for part in before for text in part.read_text().splitlines()[1:]]
        return self.folder / METADATA / f"{number}.compact", "\n".join(("v1", *lines, json.dumps(line)))

    def publish(self, file: Path, text: str) -> None:
        file.write_text(text)
        file.with_name(f".{file.name}.crc").write_bytes(b"crc")

    def rows(self) -> list[int]:
        return sorted(n for name in listed(self.folder) for n in pq.read_table(self.folder / name)["n"].to_pylist())


def test_small_files_become_one_and_the_query_goes_on(tmp_path: Path) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(23)
    assert small_files(sink.folder) == 20
    assert compact(sink.folder, rewrite) == Compacted(before=20, after=1)
    assert sink.rows() == list(range(23))
    assert len(listed(sink.folder)) == 4
    assert not (sink.folder / METADATA / ".19.compact.crc").exists(), "Hadoop would refuse the new list"
    sink.write(20)
    assert sink.rows() == list(range(43))
    assert compact(sink.folder, rewrite) == Compacted(before=21, after=1)
    assert sink.rows() == list(range(43))


def test_old_files_stay_for_open_readers_and_until_the_sink_has_taken_over_the_new_list(tmp_path: Path) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(20)
    reader = [sink.folder / name for name in listed(sink.folder)]
    compact(sink.folder, rewrite)
    assert compact(sink.folder, rewrite, grace_s=0).deleted == 0
    assert all(file.exists() for file in reader), "the sink may be about to write them into its next list"
    sink.write(10)
    assert compact(sink.folder, rewrite, files_min=99).deleted == 0
    assert all(file.exists() for file in reader), "a reader may be at them"
    assert compact(sink.folder, rewrite, files_min=99, grace_s=0).deleted == 20
    assert not any(file.exists() for file in reader)
    assert sink.rows() == list(range(30))


def test_when_no_query_writes_the_table_any_more_old_files_go_at_once(tmp_path: Path) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(20)
    compact(sink.folder, rewrite)
    assert compact(sink.folder, rewrite, grace_s=0, ended=True).deleted == 20
    assert sink.rows() == list(range(20))


def test_a_sink_that_read_the_list_before_the_swap_undoes_it_and_nothing_is_lost(tmp_path: Path) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(29)
    prepared = sink.prepared()
    assert compact(sink.folder, rewrite).after == 1
    sink.publish(*prepared)
    assert sink.rows() == list(range(30))
    compact(sink.folder, rewrite, files_min=99, grace_s=0)
    assert sink.rows() == list(range(30)), "the old files are in the list again"
    assert not list(sink.folder.glob("compacted-*")), "and the new ones are gone"


@pytest.mark.parametrize("when", ["rewritten", "recorded", "moved", "listed"])
def test_files_are_put_together_although_the_sink_goes_on_while_they_are_rewritten(tmp_path: Path, when: str) -> None:
    sink, once = SinkTwin(tmp_path / "t"), [when]
    sink.write(25)
    step = lambda name: sink.write(10) if name in once and once.pop() else None  # noqa: E731
    assert compact(sink.folder, rewrite, step=step) == Compacted(before=20, after=1)
    assert sink.rows() == list(range(35))
    assert len(listed(sink.folder)) == 1 + 15
    assert compact(sink.folder, rewrite, grace_s=0, files_min=99).deleted == 0, "no later list has come yet"
    sink.write(10)
    assert compact(sink.folder, rewrite, grace_s=0, files_min=99).deleted == 20
    assert sink.rows() == list(range(45))


def test_a_sink_that_writes_its_list_again_and_again_is_left_alone(tmp_path: Path) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(25)
    done = compact(sink.folder, rewrite, step=lambda name: sink.write(10 * (name == "listed")))
    assert done == Compacted(hindered="overtaken")
    assert sink.rows() == list(range(75))
    assert not list(sink.folder.glob("compacted-*")), "the new files are gone"
    assert not list((sink.folder / WORK).glob("*.json"))
    assert not list((sink.folder / METADATA).glob(".*.new"))


def test_a_compaction_says_that_another_one_is_at_work(tmp_path: Path) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(20)
    found: list[Compacted] = []
    compact(sink.folder, rewrite, step=lambda name: name == "moved" and found.append(compact(sink.folder, rewrite)))
    assert found == [Compacted(hindered="at work")]


def test_rows_that_get_lost_on_the_way_stop_the_compaction(tmp_path: Path) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(20)
    with pytest.raises(Exception, match="20 rows became 19"):
        compact(sink.folder, lambda files, folder, count: rewrite(files[1:], folder, count))
    assert sink.rows() == list(range(20))


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is not a table that a query in Spark writes"):
        compact(tmp_path, rewrite)


KILLED = """
import os, signal, sys
from pathlib import Path
from rove.cloud.compaction import compact
from tests.cloud.test_compaction import rewrite
compact(Path(sys.argv[1]), rewrite, step=lambda name: name == sys.argv[2] and os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_compaction_that_is_killed_after_any_step_loses_and_doubles_nothing(tmp_path: Path, step: str) -> None:
    sink = SinkTwin(tmp_path / "t")
    sink.write(22)
    done = subprocess.run([sys.executable, "-c", KILLED, str(sink.folder), step], cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    assert sink.rows() == list(range(22))
    sink.write(10)
    assert sink.rows() == list(range(32))
    compact(sink.folder, rewrite, grace_s=0)
    assert sink.rows() == list(range(32))
    sink.write(10)
    compact(sink.folder, rewrite, grace_s=0, files_min=99)
    compact(sink.folder, rewrite, grace_s=0, files_min=99)
    assert sink.rows() == list(range(42))
    left = {file.name for file in sink.folder.glob("*.parquet")} - set(listed(sink.folder))
    assert not left, "nothing is left that no list names"
    assert not list((sink.folder / WORK).glob("*.json"))


class Crash(Exception):
    pass


@pytest.mark.deep
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_however_sink_and_compactions_take_turns_each_row_is_there_once(data: st.DataObject, tmp_path: Path) -> None:
    """A sink and compactions that crash at any step; the sink may have read its list before a swap."""
    sink = SinkTwin(tmp_path / f"{time.time_ns()}-{os.urandom(4).hex()}")
    waits: tuple[Path, str] | None = None

    def at(step: str) -> None:
        match data.draw(st.sampled_from(("go", "go", "go", "write", "crash")), step):
            case "write" if waits is None:
                sink.write(data.draw(st.integers(1, 12)))
            case "crash":
                raise Crash

    for _ in range(data.draw(st.integers(1, 6))):
        if waits is None:
            sink.write(data.draw(st.integers(0, 15)))
            waits = sink.prepared() if data.draw(st.booleans()) else None
        try:
            grace_s = data.draw(st.sampled_from((0.0, 600.0)))
            compact(sink.folder, rewrite, files_min=2, grace_s=grace_s, step=at)
        except Crash:
            pass
        if waits is not None:
            assert sink.rows() == list(range(sink.next - 1))
            if data.draw(st.booleans()):
                sink.publish(*waits)
                waits = None
        else:
            assert sink.rows() == list(range(sink.next))

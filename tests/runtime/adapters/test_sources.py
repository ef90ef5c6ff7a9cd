"""Sources: the same rows every time, at their rate, and a clear error for bad source texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from rove.data.sources.positions import Fed, SourceAt
from rove.model.errors import SetupError
from rove.model.ids import Origin
from rove.model.schema import parse_schema
from rove.runtime.adapters.sources import Producers, generated, read_spec
from rove.runtime.clock import wall_us

COLUMNS = "train string, coach int, ts timestamp, load double, full boolean, fare decimal(10,2), small tinyint, d date"


def test_rows_follow_from_the_text_alone() -> None:
    spec = read_spec("trains=generate:start_us=1000000,rows=100,batches=5,seed=7", COLUMNS, "dev1")
    first, second = list(generated(spec)), list(generated(spec))
    assert len(first) == 5
    assert all(a.equals(b) for a, b in zip(first, second, strict=True))
    assert all(batch.schema.equals(parse_schema(COLUMNS)) for batch in first)
    other = read_spec("trains=generate:start_us=1000000,rows=100,batches=5,seed=7", COLUMNS, "dev2")
    assert not first[0].equals(next(generated(other)))
    assert not first[0].equals(first[1])


def test_event_time_goes_on_from_row_to_row() -> None:
    spec = read_spec("s=generate:rows=3,batches=2,start_us=1000000,step_us=500", "ts timestamp", "dev1")
    moments = [value for batch in generated(spec) for value in batch["ts"].cast(pa.int64()).to_pylist()]
    assert moments == [1_000_000 + n * 500 for n in range(6)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("trains", "is not a source"),
        ("=generate:rows=1", "is not a source"),
        ("trains=read:x", "is not a source"),
        ("trains=generate:row=1", "did you mean `rows`"),
        ("trains=generate:rows", "has no option"),
        ("trains=generate:rows=many", "rows is a number, not `many`"),
        ("trains=generate:rows=0", "rows is at least 1"),
        ("trains=file:", "names no file"),
        ("trains=file:rows=3", "names no file"),
        ("trains=file:f.parquet:rows=3", "options follow after a comma; write trains=file:f.parquet,rows=3"),
    ],
)
def test_a_text_that_is_no_source_says_why(text: str, match: str) -> None:
    with pytest.raises(SetupError, match=match):
        read_spec(text, COLUMNS, "dev1")


def test_columns_that_cannot_be_made_up_are_named() -> None:
    with pytest.raises(SetupError, match="`tags` is array<string>, which cannot be generated"):
        read_spec("s=generate:", "tags array<string>", "dev1")


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "jsonl"])
def test_a_file_is_replayed_in_batches(tmp_path: Path, kind: str) -> None:
    table = pa.table({"extra": pa.array([True] * 25), "n": pa.array(range(25), pa.int32()), "s": ["a"] * 25})
    path = tmp_path / f"rows.{kind}"
    match kind:
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        case "jsonl":
            path.write_text("".join(f'{{"n": {n}, "s": "a", "extra": true}}\n' for n in range(25)))
    batches = list(generated(read_spec(f"rows=file:{path},rows=10", "s string, n int", "dev1")))
    assert [batch.num_rows for batch in batches] == [10, 10, 5]
    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(25))
    assert len(list(generated(read_spec(f"rows=file:{path},rows=10,batches=2", "s string, n int", "dev1")))) == 2


def test_a_file_that_does_not_fit_its_stream_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table({"n": ["x"]}), path)
    with pytest.raises(SetupError, match=f"{path} cannot be replayed"):
        list(generated(read_spec(f"rows=file:{path}", "n int", "dev1")))
    with pytest.raises(SetupError, match="cannot be read as `txt`"):
        list(generated(read_spec("rows=file:/x.txt", "n int", "dev1")))


def test_a_source_keeps_its_pace_and_waits_when_told() -> None:
    producers = Producers((read_spec("s=generate:rows=1,rate=10,batches=4", "n int", "dev1"),), 3, 0)
    (origin,) = producers.all
    assert origin == Origin("s", "dev1", 3)

    def made(now: int) -> list[Any]:
        return [event.data is not None for event in producers.make(now)]

    assert (made(0), made(99_999), made(100_000)) == ([True], [], [True])
    producers.hold(origin, True, 150_000)
    assert (made(900_000), producers.due()) == ([], None)
    producers.hold(origin, False, 900_000)
    assert (made(900_000), producers.due()) == ([True], 1_000_000)
    assert made(1_200_000) == [True, False, False][:2]
    assert made(9_000_000) == []
    assert producers.due() is None


def test_a_source_begins_when_its_file_is_there(tmp_path: Path) -> None:
    text = f"s=generate:rows=1,batches=1,when={tmp_path / 'go'}"
    producers = Producers((read_spec(text, "n int", "dev1"),), 1, 0)
    assert list(producers.make(0)) == []
    (tmp_path / "go").touch()
    due = producers.due()
    assert due is not None
    assert len(list(producers.make(due))) == 1


def test_no_two_batches_of_a_long_run_are_the_same() -> None:
    spec = read_spec("s=generate:rows=20,batches=5000,seed=3", "n int, name string", "dev1")
    seen = {batch.serialize().to_pybytes() for batch in generated(spec)}
    assert len(seen) == 5_000


def test_generated_time_begins_now_unless_the_text_says_when() -> None:
    before = wall_us()
    (batch,) = generated(read_spec("s=generate:rows=2,batches=1,step_us=500", "ts timestamp", "dev1"))
    first, second = batch["ts"].cast(pa.int64()).to_pylist()
    assert before <= first <= wall_us()
    assert second == first + 500


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "jsonl"])
@pytest.mark.parametrize("first", [0, 1, 2, 3, 4])
def test_a_file_gives_the_same_batches_from_any_number_on(tmp_path: Path, kind: str, first: int) -> None:
    table = pa.table({"n": pa.array(range(25), pa.int32())})
    path = tmp_path / f"rows.{kind}"
    match kind:
        case "parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=7)
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        case "jsonl":
            path.write_text("".join(f'{{"n": {n}}}\n' for n in range(25)))
    spec = read_spec(f"rows=file:{path},rows=10", "n int", "dev1")
    every = [batch["n"].to_pylist() for batch in generated(spec)]
    assert every == [list(range(10)), list(range(10, 20)), list(range(20, 25))]
    assert [batch["n"].to_pylist() for batch in generated(spec, first)] == every[first:]
    two = read_spec(f"rows=file:{path},rows=10,batches=2", "n int", "dev1")
    assert [batch["n"].to_pylist() for batch in generated(two, first)] == every[first:2]


def test_a_source_that_goes_on_waits_first_and_makes_again_at_full_speed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("n\n" + "".join(f"{n}\n" for n in range(9)))
    spec = read_spec(f"s=file:{path},rows=1,rate=10", "n int", "dev1")
    at = SourceAt(Origin("s", "dev1", 3), 6, {"q": Fed(0, 4, 4)})
    producers = Producers((spec,), 8, 0, {"s": at})
    assert list(producers.make(0)) == []
    producers.hold(at.origin, False, 0)
    made = [event.data["n"].to_pylist() for event in producers.make(0) if event.data is not None]
    assert (list(producers.all), made) == ([at.origin], [[4], [5]])
    assert producers.due() == 100_000

"""Damaged and truncated logs and wrong options: an error that names them, or a note about what was skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from rove.cloud.source import RoveDataSource, scan
from rove.model.errors import BadName, DiskError, PlanError, SchemaMismatch
from rove.runtime.disk.disk import open_reader
from tests.cloud.gateway_log import ALL, SCHEMA, Gateway, Query, batch, values


def test_damaged_rows_stop_a_query_with_their_name_or_are_passed_over_with_a_note(
    gateway: Gateway, tmp_path: Path
) -> None:
    for second in range(3):
        gateway.write("a", [second], second)
    second_entry = open_reader(gateway.folder).entries()[1]
    gateway.spoil(0, second_entry.offset + second_entry.length - 10)
    complaint = r"0000000000.arrows at byte \d+: the rows cannot be read.* `s/a` seqs 1 to 1.*onDamage=skip"
    with pytest.raises(DiskError, match=complaint):
        Query(tmp_path).run()
    for _ in range(2):
        assert values(Query(tmp_path, onDamage="skip").run()) == [0, 2]
        assert values(batch(tmp_path, onDamage="skip")) == [0, 2]
    (note,) = (gateway.folder / "quarantine").iterdir()
    assert note.name == "0000000000-1.json"
    said = json.loads(note.read_text())
    assert (said["file"], said["origin"], said["seq"], said["through"], said["rows"]) == (
        "0000000000.arrows", "s/a", 1, 1, 1,
    )  # fmt: skip


def test_damaged_rows_whose_times_nobody_knows_are_met_when_they_are_planned(gateway: Gateway, tmp_path: Path) -> None:
    gateway.write("a", [1], 1, told=False)
    size = (gateway.folder / "0000000000.arrows").stat().st_size
    gateway.spoil(0, size - 10)
    gateway.write("a", [2], 2, told=False)
    with pytest.raises(DiskError, match="onDamage=skip"):
        Query(tmp_path, time="ts").run()
    assert values(Query(tmp_path, time="ts", onDamage="skip").run()) == [1]


def test_a_damaged_index_is_treated_as_damaged_rows_are(gateway: Gateway, tmp_path: Path) -> None:
    for second in range(3):
        gateway.write("a", [second], second)
    size = (gateway.folder / "0000000000.index").stat().st_size
    gateway.spoil(0, size - 150, "index")
    with pytest.raises(DiskError, match=r"0000000000.index at byte \d+: a record is unreadable.*onDamage=skip"):
        Query(tmp_path).run()
    assert values(Query(tmp_path, onDamage="skip").run()) == [0, 2]
    (note,) = (gateway.folder / "quarantine").iterdir()
    assert json.loads(note.read_text())["file"] == "0000000000.index"


def test_a_consumer_says_what_it_needs_no_more_and_the_log_waits_for_it(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, segment_entries=1)
    gateway.write("a", [1, 50], 1)
    gateway.write("a", [2], 2)
    file = gateway.folder / "reader-night"

    def told() -> Any:
        gateway.writer.partition.consumed("night", json.loads(file.read_text())["position"])
        return json.loads(file.read_text())

    query = Query(tmp_path, time="ts", consumer="night")
    assert told() == {"position": 0}
    query.run()
    assert told() == {"position": 0}
    assert gateway.writer.retire() == 0
    gateway.write("a", [60], 50)
    query.run()
    assert told() == {"position": 2}
    assert gateway.writer.retire() == 2
    gateway.promise("a", 70)
    assert len(query.run()) == 1
    assert [p.name for p in gateway.folder.glob("*reader*")] == ["reader-night"]


def test_entries_that_were_deleted_too_early_are_named(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, segment_entries=1, keep_bytes=1)
    query = Query(tmp_path)
    for second in range(4):
        gateway.write("a", [second])
    planned = query.stream.latestOffset(query.at, ALL)
    assert gateway.writer.retire() == 3
    share = query.stream.partitions(query.at, planned)[0]
    with pytest.raises(DiskError, match=r"entries 0 to 0 were deleted before .* new checkpoint"):
        list(query.stream.read(share))
    with pytest.raises(DiskError, match=r"entries 0 to 2 were deleted before .* new checkpoint"):
        Query(tmp_path).stream.latestOffset(query.at, ALL)
    assert values(Query(tmp_path).run()) == [3]


def test_a_log_that_is_shorter_than_the_checkpoint_is_not_taken_for_the_same(gateway: Gateway, tmp_path: Path) -> None:
    query = Query(tmp_path)
    gateway.write("a", [1])
    query.run()
    further = json.loads(json.dumps(query.at))
    further["at"][str(gateway.folder)].update({"from": 7, "to": 7})
    assert query.stream.latestOffset(further, ALL) == further
    with pytest.raises(DiskError, match="ends at 1, but the checkpoint has read up to 7"):
        query.stream.partitions(query.at, further)


def test_a_long_time_without_rows_moves_the_checkpoint_on(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "ENTRIES_UNSAID_MAX", 3)
    query = Query(tmp_path, time="ts")
    gateway.write("a", [50], 1)
    assert query.run() == []
    assert query.at == query.stream.initialOffset()
    for second in range(3):
        gateway.promise("a", second)
    assert query.run() == []
    assert query.at["at"][str(gateway.folder)]["to"] == 4
    gateway.promise("a", 50)
    assert values(query.run()) == [0]


def test_an_output_is_found_by_itself_if_it_is_the_only_one(tmp_path: Path) -> None:
    Gateway(tmp_path, "q/one").write("a", [1])
    Gateway(tmp_path, "q/late-one").write("b", [2])
    assert [row["key"] for row in batch(tmp_path)] == ["a"]
    assert [row["key"] for row in batch(tmp_path, output="late-one")] == ["b"]
    Gateway(tmp_path, "q/two").write("c", [3])
    with pytest.raises(PlanError, match=r"2 outputs \(one, two\); name one in option `output`"):
        batch(tmp_path)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"path": " "}, "`path` is missing"),
        ({"query": ""}, "`` cannot name a folder .option `query`."),
        ({"query": "../q"}, "cannot name a folder"),
        ({"stream": "r"}, "`query` and `stream` differ"),
        ({"maxRows": "3"}, "no option `maxrows`.*did you mean `maxRowsPerTrigger`"),
        ({"maxRowsPerTrigger": "none"}, "whole number above 0"),
        ({"heartbeat": "yes", "time": "ts"}, "`heartbeat` is `yes`; it is one of: false, true"),
        ({"onDamage": "ignore"}, "one of: stop, skip"),
        ({"delay": "5 seconds"}, "`delay` is about event time"),
        ({"time": "ts", "delay": "soon"}, "`delay` `soon` is not a fixed length of time"),
        ({"time": "key"}, "`key` is string in .*; event time is a timestamp"),
        ({"time": "when"}, "no column `when`"),
        ({"columns": "key,valeu"}, "no column `valeu`.*did you mean `value`"),
        ({"columns": "key,key"}, "names a column twice"),
        ({"columns": "key", "time": "ts", "heartbeat": "true"}, "column `ts` must be read too"),
        ({"output": "nowhere"}, "nowhere is not there; there are: out"),
        ({"query": "r"}, "log/r is not there; there are: q"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    gateway: Gateway, tmp_path: Path, options: dict[str, str], complaint: str
) -> None:
    gateway.write("a", [1])
    given = {"path": str(tmp_path), "query": "q", "someone.else": "x", **options}
    made = RoveDataSource(CaseInsensitiveDict(given))
    with pytest.raises((BadName, PlanError, DiskError, SchemaMismatch), match=complaint):
        made.streamReader(made.schema())


def test_a_schema_that_is_given_wins_and_is_checked(gateway: Gateway, tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=r"has no segment yet|not there"):
        batch(tmp_path / "..")
    gateway.write("a", [1, None])
    assert batch(tmp_path, pa.schema([("value", pa.int64())])) == [{"value": 0}, {"value": 1}]
    with pytest.raises(SchemaMismatch, match=r"`value` is bigint in .*0000000000.arrows, not int;"):
        batch(tmp_path, pa.schema([("value", pa.int32())]))
    with pytest.raises(PlanError, match=r"no column `_origin` .* set option metadata to true"):
        batch(tmp_path, pa.schema([("_origin", pa.string())]))
    with pytest.raises(PlanError, match="the last column of the schema must be `_heartbeat boolean`"):
        Query(tmp_path, SCHEMA, time="ts", heartbeat="true")
    with pytest.raises(SchemaMismatch, match="`ts` has nulls"):
        batch(tmp_path, pa.schema([pa.field("ts", SCHEMA.field("ts").type, nullable=False)]))

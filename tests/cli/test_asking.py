"""Commands that ask the coordinator: what they print, for people and for programs, and how they fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rove import cli
from rove.api import session
from rove.control.asks.requests import CloudSink, Named, Progress
from rove.model.ids import NodeId, Origin, QueryId
from rove.model.messages import Held, Tally, TroubleHere
from rove.plan.user_functions import encode_name
from tests.api.desk import COLUMNS, START_US, Desk
from tests.cli.conftest import Rove
from tests.control.test_sink_options import WITH_PASSWORD

PYTHON = f"""
import rove
trains = rove.Session.local().stream("trains", schema="{COLUMNS}")
busy = trains.where("boarding > 30")
empty = trains.where("boarding = 0")
"""
TOWN = """
[[nodes]]
id = "roof"
kind = "edge"

[[nodes]]
id = "bus"
kind = "device"
slots = 2

[[links]]
a = "bus"
b = "roof"
"""


@pytest.fixture
def busy(tmp_path: Path) -> str:
    file = tmp_path / "busy.py"
    file.write_text(PYTHON)
    return str(file)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--name", "my query"), "`my query` cannot name a query"),
        (("--sink", "table:../t"), "`../t` cannot name a table"),
        (("--on", "a/b"), "`a/b` cannot name a node"),
    ],
)
def test_a_query_whose_names_cannot_be_is_not_submitted(
    rove: Rove, desk: Desk, busy: str, flags: tuple[str, ...], complaint: str
) -> None:
    said = rove("submit", busy, *flags)
    assert (said.code, desk.machine.queries) == (1, {})
    assert complaint in said.error


def test_a_python_file_is_submitted_and_its_places_are_printed(rove: Rove, desk: Desk, busy: str) -> None:
    said = rove("submit", busy, "--variable", "busy")
    assert said.code == 0, said.error
    assert said.out.startswith("query `busy`, version 1, at the coordinator at tcp://127.0.0.1:4700\n")
    assert "Filter boarding > 30" in said.out
    assert "tram ─► mast" in said.out
    assert QueryId("busy") in desk.machine.queries


def test_a_statement_reads_the_coordinators_streams(rove: Rove, desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "by_train.sql"
    file.write_text("SELECT train, boarding\nFROM trains WHERE coach = 1;\n")
    said = rove("submit", str(file), "--sink", "file:rows", "--on", "mast", "--strategy", "ilp", "--json")
    assert json.loads(said.out)["query"] == "by_train"
    record = desk.machine.queries[QueryId("by_train")].record
    assert (record.sink.kind, record.sink.node, record.sink.path, record.strategy) == ("file", "mast", "rows", "ilp")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("table",), CloudSink(kind="table", name="busy")),
        (
            ("postgres:trains.busy", "--mode", "update", "--option", "keys=train", "--option", "url=host=db"),
            CloudSink(kind="postgres", name="trains.busy", mode="update", options={"keys": "train", "url": "host=db"}),
        ),
        (
            ("foreachBatch:fleet.sinks:store",),
            CloudSink(
                kind="foreachBatch", name="fleet.sinks:store", function=encode_name(module="fleet.sinks", name="store")
            ),
        ),
    ],
    ids=["table", "postgres", "foreachBatch"],
)
def test_what_spark_does_with_the_rows_is_said_by_flags(
    rove: Rove, desk: Desk, busy: str, flags: tuple[str, ...], expected: CloudSink
) -> None:
    said = rove("submit", busy, "--option", "returnTimeout=30 seconds", "--sink", *flags)
    assert said.code == 0, said.error
    record = desk.machine.queries[QueryId("busy")].record
    assert (record.cloud, record.patience_us) == (expected, 30_000_000)


@pytest.mark.parametrize(
    "flags",
    [
        *(("--sink", "postgres:busy", "--option", f"url={url}") for url in WITH_PASSWORD),
        ("--sink", "postgres:busy", "--option", "url=host=db", "--option", "password=hunter2"),
        ("--sink", "postgres:busy", "--option", "postgresql://rove:hunter2@db/x"),
        ("--sink", "postgres:busy", "--option", "postgresql://rove:hunter2@db/x?sslmode=require"),
        ("--sink", "postgres:postgresql://rove:hunter2@db/x"),
        ("--sink", "postgresql://rove:hunter2@db/x"),
        ("--sink", "table", "--option", "fs.s3a.secret.key=hunter2"),
        ("--sink", "log", "--option", "postgresql://rove:hunter2@db/x?a=b"),
    ],
)
def test_a_password_in_a_sink_is_refused_and_shown_nowhere(
    rove: Rove, desk: Desk, busy: str, flags: tuple[str, ...]
) -> None:
    said = rove("submit", busy, *flags)
    assert (said.code, said.out, desk.machine.queries) == (1, "", {})
    assert said.error.startswith("rove: ")
    assert "hunter" not in said.error


def test_explain_shows_the_places_and_starts_nothing(rove: Rove, desk: Desk, busy: str) -> None:
    said = rove("explain", busy, "--coordinator", "tcp://127.0.0.1:4700")
    assert "out ─► the cloud" in said.out
    assert "links carry, by estimate" in said.out
    assert not desk.machine.queries
    assert rove("explain", busy).out.startswith("edge or Spark   Filter boarding = 0")


def test_explain_of_sql_asks_the_coordinator_or_takes_the_columns(rove: Rove, desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "full.sql"
    file.write_text("SELECT train FROM trains WHERE boarding > 40")
    assert "links carry, by estimate" in rove("explain", str(file)).out
    file.write_text("SELECT tram FROM trams WHERE riders > 40")
    assert rove("explain", str(file)).error.startswith("rove: no stream `trams`")
    said = rove("explain", str(file), "--columns", "trams: tram string, riders int")
    assert said.out.startswith("edge or Spark   Project tram")
    assert not desk.machine.queries


def test_queries_and_streams_are_listed(rove: Rove, desk: Desk, busy: str) -> None:
    assert rove("queries").out == "No queries yet. Type: rove submit query.py\n"
    assert json.loads(rove("queries", "--json").out) == []
    rove("submit", busy, "--name", "a")
    (line,) = json.loads(rove("queries", "--json").out)
    assert (line["query"], line["state"], set(line["missing"])) == ("a", "deploying", {"tram", "mast", "gateway"})
    assert "deploying" in rove("queries").out
    assert json.loads(rove("streams", "--json").out) == {"trains": COLUMNS}
    assert COLUMNS in rove("streams").out


def test_changes_are_listed_with_their_causes(rove: Rove, desk: Desk, busy: str) -> None:
    assert rove("history").out == "No changes yet. Type: rove submit query.py\n"
    rove("submit", busy, "--name", "a")
    (line,) = json.loads(rove("history", "--json").out)
    assert (line["query"], line["causes"], line["nodes"]) == ("a", ["it was submitted"], 3)
    said = rove("history", "a").out
    assert "it was submitted" in said
    assert "+gateway" in said
    assert "no query `b`" in rove("history", "b").error


def test_a_stopped_query_says_so(rove: Rove, desk: Desk, busy: str) -> None:
    rove("submit", busy)
    assert rove("stop", "busy").out.startswith("the coordinator at tcp://127.0.0.1:4700 has stopped query `busy`\n")
    assert json.loads(rove("queries", "--json").out)[0]["state"] == "stopped"


def test_stopping_says_what_had_not_arrived(rove: Rove, desk: Desk, busy: str) -> None:
    rove("submit", busy)
    made = Tally(query=QueryId("busy"), origin=Origin("trains", "tram"), produced=1_200, buffered=1_200)
    desk.report("tram", "device", ("mast",), ("trains",), tallies=(made,))
    assert "1,200 rows were in flight" in rove("stop", "busy").out


def test_the_same_query_may_be_submitted_again_and_no_other_under_its_name(rove: Rove, desk: Desk, busy: str) -> None:
    rove("submit", busy)
    assert rove("submit", busy).out.startswith("query `busy`, version 1, at the coordinator at tcp://127.0.0.1:4700\n")
    for flags, words in (
        (("--variable", "busy"), "another plan"),
        (("--option", "replication=2", "--strategy", "ilp"), "another strategy and replication"),
        (("--sink", "table"), "another sink in Spark"),
        (("--option", "returnTimeout=1 minute"), "another returnTimeout"),
    ):
        assert words in rove("submit", busy, *flags).error
    (query,) = desk.machine.queries.values()
    assert query.version == 1


def test_status_accounts_for_every_row(rove: Rove, desk: Desk, busy: str) -> None:
    assert rove("status").out == "Nothing has been produced yet.\n"
    rove("submit", busy)
    query, origin = QueryId("busy"), Origin("trains", "tram")
    made = Tally(query=query, origin=origin, produced=1_200, buffered=30, resent=5, late=7, watermark=1)
    taken = Tally(query=query, origin=origin, delivered=1_100, duplicates=3)
    desk.report("tram", "device", ("mast",), ("trains",), tallies=(made,))
    desk.report("gateway", "gateway", tallies=(taken,))
    said = rove("status", "busy")
    assert "trains/tram" in said.out
    assert said.out.endswith(
        "The sums add up: 1,200 produced = 1,100 delivered + 0 evicted + 7 late + 0 lost + 0 faulted + 93 in flight.\n"
    )
    told = json.loads(rove("status", "--json").out)
    assert told["adds_up"] is True
    assert told["total"]["produced"] == told["accounts"][0]["produced"] == 1_200
    assert (told["total"]["in_flight"], told["total"]["duplicates"], told["total"]["resent"]) == (93, 3, 5)


def test_status_lists_nodes_that_are_away_or_keep_rows(rove: Rove, desk: Desk, busy: str) -> None:
    rove("submit", busy, "--variable", "busy", "--name", "busy")
    desk.report("tram", "device", ("mast",), ("trains",), held=(Held(QueryId("busy"), 2_500_000, 9_000_000),))
    desk.report("gateway", "gateway")
    desk.now += 1_000_000
    assert [n["node"] for n in json.loads(rove("status", "--json").out)["waiting"]] == ["tram"]
    desk.now += 59_000_000
    desk.report("gateway", "gateway")
    said = rove("status").out
    assert all(word in said for word in ("tram", "mast", "away", "2.5 MB", "67 MB", "69"))
    assert [n["node"] for n in json.loads(rove("status", "--json").out)["waiting"]] == ["mast", "tram"]


def test_advice_on_buffers_is_of_measured_rates_and_packing(rove: Rove, desk: Desk) -> None:
    assert rove("advise", "buffer").out.startswith("No node takes rows in now")
    for second in range(60):
        desk.now += 1_000_000
        taken = second * 1_000_000
        desk.report("tram", "device", ("mast",), ("trains",), taken_bytes=taken)
        desk.report("bus", "device", ("mast",), ("trains",), taken_bytes=taken, shrunk=(80_000, 20_000))
    told = {line["node"]: line for line in json.loads(rove("advise", "buffer", "--away", "1 minute", "--json").out)}
    assert {node: line["packs_to"] for node, line in told.items()} == {"tram": None, "bus": 0.25}
    assert told["tram"]["needed_bytes"]["60"] == pytest.approx(72_000_000, rel=0.01)
    assert told["bus"]["needed_bytes"]["60"] == pytest.approx(18_000_000, rel=0.01)
    assert told["bus"]["lasts_ms"] == pytest.approx(4 * told["tram"]["lasts_ms"], rel=0.01)
    said = rove("advise", "buffer", "--node", "tram").out
    assert all(words in said for words in ("30 seconds", "10 minutes", "36.0 MB", "not known"))
    assert "bus" not in said
    assert "no node `tran`" in rove("advise", "buffer", "--node", "tran").error
    assert "--away `soon` is not a fixed length of time" in rove("advise", "buffer", "--away", "soon").error


def test_topology_lists_nodes_and_takes_ours_from_a_file(rove: Rove, desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text(TOWN)
    asked = rove("topology", "import", str(file))
    assert asked.error.startswith("rove: the coordinator at tcp://127.0.0.1:4700 has 3 nodes already, `gateway` first;")
    assert "give the flag --yes" in asked.error
    said = rove("topology", "import", str(file), "--yes")
    assert said.out == f"tcp://127.0.0.1:4700 has taken {file}: 2 nodes, 1 links, 0 of 0 batches of changes\n"
    nodes = {n["node"]: n for n in json.loads(rove("topology", "--json").out)}
    assert {n: nodes[n]["state"] for n in nodes} == {
        "gateway": "up", "mast": "up", "tram": "up", "roof": "expected", "bus": "expected"
    }  # fmt: skip
    assert (nodes["bus"]["links"], nodes["bus"]["slots"]) == (["roof"], 2)
    assert "expected" in rove("topology").out


def test_a_node_that_is_gone_for_good_is_removed(rove: Rove, desk: Desk) -> None:
    desk.now += 3_600_000_000
    said = rove("topology", "remove", "tram")
    assert said.out == "the coordinator at tcp://127.0.0.1:4700 has forgotten node `tram`\n"
    assert [n["node"] for n in json.loads(rove("topology", "--json").out)] == ["gateway", "mast"]


def test_topology_takes_a_pair_of_nebulastreams(rove: Rove, desk: Desk, tmp_path: Path) -> None:
    fixed, updates = tmp_path / "fixed_topology.json", tmp_path / "topology_updates.json"
    fixed.write_text(json.dumps({"nodes": {"2": [0, 0], "3": [1, 1]}, "slots": {"2": 4}, "children": {}}))
    move, back = (
        [{"parentId": a, "childId": 9, "action": "remove"}, {"parentId": b, "childId": 9, "action": "add"}]
        for a, b in ((2, 3), (3, 2))
    )
    updates.write_text(
        json.dumps(
            {
                "initial_parents": [[2, 9]],
                "topology_updates": [{"timestamp": 100, "events": move}, {"timestamp": 900, "events": back}],
            }
        )
    )
    said = rove("topology", "import", str(fixed), "--updates", str(updates), "--through-ms", "500", "--yes")
    assert said.out.endswith(": 4 nodes, 3 links, 1 of 2 batches of changes\n")
    assert desk.machine.membership.topology.neighbours(NodeId("9")) == ("3",)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("stop", "bussy"), "no query `bussy`; there are: none"),
        (("status", "bussy"), "no query `bussy`"),
        (("submit", "{tmp}/none.py"), "none.py cannot be read: "),
        (("submit", "{tmp}/query.txt"), "neither Python (.py) nor a SQL statement (.sql)"),
        (("submit", "{tmp}/bad.py"), "bad.py, line 2, raised ZeroDivisionError: division by zero"),
        (("submit", "{tmp}/good.sql", "--sink", "kafka"), "`kafka` is not a sink"),
        (("submit", "{tmp}/good.sql", "--sink", "foreachBatch:store"), "write `table`, `table:NAME`"),
        (("submit", "{tmp}/good.sql", "--sink", "table", "--option", "keys"), "--option needs a name and a value"),
        (("submit", "{tmp}/good.sql", "--option", "replicaton=2"), "not an option of a query that ends on a node"),
        (("submit", "{tmp}/good.sql", "--mode", "update"), "a query that ends on a node emits rows as they come"),
        (("submit", "{tmp}/good.sql", "--strategy", "topdown"), "no placement strategy `topdown`"),
        (("submit", "{tmp}/good.sql", "--coordinator", "here"), "`here` is not an address of a coordinator"),
        (("submit", "{tmp}/unknown.sql"), "no stream `trams`; there are: trains; did you mean `trains`?"),
        (("topology", "import", "{tmp}/none.toml"), "none.toml cannot be read"),
        (("topology", "remove", "trom"), "no node `trom`; there are: gateway, mast, tram; did you mean `tram`?"),
        (("topology", "import", "{tmp}/bad.py", "--yes"), "a topology that is not TOML"),
        (("keys", "invite", "tram", "--keys", "{tmp}"), "make some with: rove keys new"),
        (("join", "--token", "abc"), "this is not a token, or only a part of one"),
    ],
)
def test_a_mistake_is_one_line_and_its_place_in_sql_and_a_non_zero_exit(
    rove: Rove, desk: Desk, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "bad.py").write_text("a = 1\nb = 1 / 0\n")
    (tmp_path / "good.sql").write_text("SELECT train FROM trains")
    (tmp_path / "unknown.sql").write_text("SELECT train FROM trams")
    said = rove(*(a.format(tmp=tmp_path) for a in arguments))
    assert said.code == 1
    assert complaint in said.error
    first, *place = said.error.splitlines()
    assert complaint in first
    assert place == (["  in: SELECT train FROM trams", " " * 24 + "^^^^^"] if "{tmp}/unknown.sql" in arguments else [])
    assert not desk.machine.queries


def test_a_file_whose_session_has_a_coordinator_is_submitted_there(
    rove: Rove, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(session, "_dialled", lambda url, keys: asked.append(url) or desk)
    file = tmp_path / "busy.py"
    file.write_text("import rove\nbusy = rove.Session('tcp://127.0.0.1:9').stream('trains').where('coach = 1')\n")
    assert rove("submit", str(file)).code == 0
    assert asked == ["tcp://127.0.0.1:9"]
    assert rove("submit", str(file), "--coordinator", "tcp://127.0.0.1:8").code == 0
    assert asked[1:] == ["tcp://127.0.0.1:9", "tcp://127.0.0.1:8"]


def test_what_holds_a_query_up_is_listed_with_since_when(rove: Rove, desk: Desk, busy: str) -> None:
    rove("submit", busy, "--name", "a")
    desk.now += 90_000_000
    full = TroubleHere("log/a: No space left on device", holds=True)
    for node, kind, parents, streams, troubles in (
        ("gateway", "gateway", (), (), {"a": (full,)}),
        ("mast", "edge", ("gateway",), (), {}),
        ("tram", "device", ("mast",), ("trains",), {}),
    ):
        desk.report(node, kind, parents, streams, running={"a": 1}, troubles=troubles)  # type: ignore[arg-type]
    desk.now += 125_000_000
    for command in ("queries", "status"):
        said = rove(command).out
        assert "held up" in said if command == "queries" else "holds it up" in said
        (row,) = [line for line in said.splitlines() if "No space left on device" in line]
        assert "gateway" in row
        assert ", 2 min" in row
    (line,) = json.loads(rove("queries", "--json").out)
    assert (line["state"], [t["who"] for t in line["troubles"]]) == ("held up", ["gateway"])
    assert line["troubles"][0]["since_us"] == START_US + 90_000_000
    assert json.loads(rove("status", "a", "--json").out)["queries"][0]["troubles"] == line["troubles"]


def test_a_name_that_is_no_tables_name_is_not_compacted(rove: Rove, tmp_path: Path) -> None:
    (tmp_path / "tab" / "_spark_metadata").mkdir(parents=True)
    (tmp_path / "w").mkdir()
    said = rove("compact", "../tab", "--tables", str(tmp_path / "w"))
    assert (said.code, "cannot name a table" in said.error) == (1, True)


@pytest.mark.parametrize(
    ("command", "what"), [(("topology", "remove"), "it will join again"), (("keys", "revoke"), "it is cut off")]
)
def test_what_happens_to_a_node_that_runs_is_asked_first(
    rove: Rove, desk: Desk, tmp_path: Path, command: tuple[str, str], what: str
) -> None:
    keys = ("--keys", str(tmp_path / "keys"))
    rove("keys", "new", *keys)
    said = rove(*command, "tram", *keys)
    start = "rove: `tram` runs at the coordinator at tcp://127.0.0.1:4700 (up): "
    assert (said.code, said.error.startswith(f"{start}{what}")) == (1, True), said.error
    assert said.error.endswith("to do it anyway, give the flag --yes\n")
    assert NodeId("tram") in desk.machine.membership.members
    said = rove(*command, "tram", "--yes", *keys)
    assert (said.code, "the coordinator at tcp://127.0.0.1:4700 has" in said.out) == (0, True), said.error


def test_commands_that_change_a_network_name_its_coordinator(rove: Rove, desk: Desk, busy: str) -> None:
    at = "at the coordinator at tcp://127.0.0.1:4700"
    for command in (("submit", busy), ("update", "busy", busy), ("drain", "mast", "--wait", "0"), ("stop", "busy")):
        assert at[3:] in rove(*command).out, command
    assert at in rove("drain", "mast", "--back").out


def test_what_spark_said_of_a_query_is_not_shown_when_it_was_stopped(rove: Rove, desk: Desk, busy: str) -> None:
    rove("submit", busy, "--sink", "table")
    desk.ask("progress", Progress(query="busy", state="starting"), Named)
    assert "starting, no batch yet, 0 behind" in rove("queries").out
    desk.ask("progress", Progress(query="busy", state="running", batch=12, lag_entries=9), Named)
    assert "running, batch 12, 9 behind" in rove("queries").out
    rove("stop", "busy")
    assert "batch 12" not in rove("queries").out


def test_the_version_is_among_the_flags_of_help(rove: Rove) -> None:
    assert "--version" in rove("--help").out
    assert rove("--version").out == rove("version").out != ""


def test_a_flag_is_named_as_it_is_typed(rove: Rove) -> None:
    said = rove("device", "--name", "d", "--from", "nonsense")
    assert said.error.startswith("rove: --from cannot be `nonsense`; there are: ")


def test_the_doctor_makes_no_folder(rove: Rove, tmp_path: Path) -> None:
    said = rove("doctor", "--data", str(tmp_path / "not" / "there"))
    assert f"GB free in {tmp_path} ({tmp_path / 'not' / 'there'} is not there yet; the node will make it)" in said.out
    assert not list(tmp_path.iterdir())


def test_a_command_that_nobody_has_is_named_on_a_device_too(rove: Rove, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert rove("devise").error.startswith("rove: no command `devise`; ")
    assert "`queries` is not a command of a device" in rove("queries").error
    assert "--version" in rove("--help").out
    assert rove("--version").out != ""


def test_a_device_knows_all_commands_by_name(rove: Rove) -> None:
    shown = rove("--help").out
    own = ("device", "worker", "gateway", "join", "doctor", "version")
    listed = {word for line in shown.splitlines() if (word := line.strip("│ ").split(" ")[0]).isalpha()}
    assert {*cli.OTHERS, *own} <= listed
    assert len(cli.OTHERS) + len(own) == len(re.findall(r"(?m)^│ [a-z]+ ", shown))

"""Settings: a file, the environment above it, flags above both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rove.model.errors import BadName, SetupError
from rove.runtime.settings import load


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "rove.toml"
    found.write_text('[worker]\nnode = "edge1"\nkind = "edge"\nslots = 4\nparents = ["gateway"]\n')
    return found


def test_flags_stand_above_the_environment_and_that_above_the_file(path: Path) -> None:
    environ = {"ROVE__WORKER__SLOTS": "8", "ROVE__WORKER__LEAVE": "true", "HOME": "/"}
    worker = load(path, environ, {"worker": {"slots": 16, "node": None}}).worker
    assert worker is not None
    assert (worker.node, worker.slots, worker.leave, worker.parents) == ("edge1", 16, True, ("gateway",))
    worker = load(path, environ).worker
    assert worker is not None
    assert worker.slots == 8


def test_lists_and_tables_in_the_environment_are_json_or_one_word(path: Path) -> None:
    environ = {
        "ROVE__WORKER__PARENTS": '["a", "b"]',
        "ROVE__WORKER__SOURCES": "s=generate:rows=1,rate=2",
        "ROVE__WORKER__COLUMNS": '{"s": "n int"}',
    }
    worker = load(path, environ).worker
    assert worker is not None
    assert worker.parents == ("a", "b")
    assert worker.sources == ("s=generate:rows=1,rate=2",)
    assert worker.columns == {"s": "n int"}


def test_functions_run_apart_unless_a_node_is_told_otherwise(path: Path) -> None:
    worker = load(path).worker
    assert worker is not None
    assert (worker.functions, worker.function_ms, worker.function_memory_bytes) == ("process", 10_000, 2**30)
    worker = load(path, {"ROVE__WORKER__FUNCTIONS": "inline", "ROVE__WORKER__FUNCTION_MS": "500"}).worker
    assert worker is not None
    assert (worker.functions, worker.function_ms) == ("inline", 500)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[worker]\nslot = 1", r"no setting `slot` in \[worker\]; .*did you mean `slots`"),
        ("[workers]\nslots = 1", "did you mean `worker`"),
        ("slots = 1", "outside of a section"),
        ("[worker", "are not TOML"),
        ('[worker]\nnode = "a"\nkind = "moon"', "kind cannot be `moon`; there are: device, edge, gateway"),
        ('[worker]\nnode = "a"\nkind = "device"\ncompress = "lz"', "compress cannot be .*did you mean `lz4`"),
        ('[worker]\nnode = "a"\nkind = "edge"\nfunctions = "apart"', "functions cannot be .*: process, inline"),
        ('[worker]\nnode = "a"\nkind = "edge"\nfunction_ms = 0', "function_ms"),
        ('[worker]\nnode = "a"', "missing required field `kind`"),
        ('[worker]\nnode = "a"\nkind = "edge"\nslots = "many"', "slots"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "rove.toml"
    path.write_text(text)
    with pytest.raises(SetupError, match=match):
        load(path)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('node = "tram 7"', "`tram 7` cannot name a node"),
        ('node = "d"\nparents = ["a", "../b"]', "`../b` cannot name a node"),
        ('node = "d"\ncolumns = {"a|b" = "n int"}', "`a|b` cannot name a stream"),
        ('node = "d"\nweights = {"a~b" = 2}', "`a~b` cannot name a query"),
    ],
)
def test_names_that_nothing_can_have_are_refused(tmp_path: Path, more: str, said: str) -> None:
    path = tmp_path / "rove.toml"
    path.write_text(f'[worker]\nkind = "device"\n{more}\n')
    with pytest.raises(BadName, match=re.escape(said)):
        load(path)
    with pytest.raises(BadName, match="`tram 7` cannot name a node"):
        load(None, {"ROVE__WORKER__NODE": "tram 7", "ROVE__WORKER__KIND": "device"})


def test_an_unknown_variable_is_named() -> None:
    with pytest.raises(SetupError, match="environment variable ROVE__WORKER__SLOT: no setting `slot`"):
        load(None, {"ROVE__WORKER__SLOT": "1"})


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SetupError, match=r"/no/such.toml cannot be read"):
        load("/no/such.toml")

"""A node's folders have one way to be written and one to be read, and no name of a user leads out of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rove.model.disk_folders import (
    AsideFolder,
    InputFolder,
    NodeFolder,
    OutputFolder,
    WaitingFolder,
    check_parts,
    checked_output,
    checked_sink,
    read_folder,
)
from rove.model.errors import BadName
from rove.model.ids import QueryId
from rove.runtime.disk import disk, shelf

NAMES = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,7}", fullmatch=True)
QUERIES = NAMES.map(QueryId)
OUTPUTS = NAMES.filter(lambda name: name[0].isalpha() and not name.startswith(("late-", "fault-")))
NUMBERS = st.integers(1, 2**62)
FOLDERS: st.SearchStrategy[NodeFolder] = st.one_of(
    st.builds(OutputFolder, QUERIES, OUTPUTS.filter(lambda name: not name.endswith("-folded"))),
    st.builds(AsideFolder, QUERIES, st.integers(0, 500).map(str), st.booleans(), st.booleans()),
    st.builds(AsideFolder, QUERIES, OUTPUTS.filter(lambda name: not name.endswith("-folded"))),
    st.builds(InputFolder, QUERIES, st.one_of(st.just(0), NUMBERS)),
    st.builds(WaitingFolder, QUERIES, NUMBERS, st.booleans()),
)
BAD = ["", "..", ".", "../x", "a/b", ".hid", "a b", "a\x00b", "a\nb", "a" * 300, "ä", "/"]


@given(FOLDERS, FOLDERS)
def test_a_folder_is_read_as_it_was_written_and_no_two_have_one_path(one: NodeFolder, other: NodeFolder) -> None:
    assert read_folder(str(one)) == one
    assert (str(one) == str(other)) == (one == other)
    check_parts(str(one))


@pytest.mark.parametrize(
    "path",
    [
        "alerts",
        "log/q",
        "log/q/out/x",
        "memories/q",
        "memory-x/q",
        "memory-0/q",
        "retention/x/q",
        "retention/01/q",
        "retention/1",
        "",
    ],
)
def test_another_path_is_no_folder_of_the_node_itself(path: str) -> None:
    assert read_folder(path) is None


@pytest.mark.parametrize("name", [*BAD, "late-0", "late-out", "fault-2", "2", "0out", "out-folded"])
def test_a_name_that_is_a_folder_of_another_thing_cannot_name_an_output(name: str) -> None:
    with pytest.raises(BadName, match="cannot name an output"):
        checked_output(name)


@pytest.mark.parametrize("name", ["out", "edge0", "a.b", "late", "late_0", "x-late-0", "folded"])
def test_other_names_can_name_an_output(name: str) -> None:
    assert checked_output(name) == name


@pytest.mark.parametrize(
    "path",
    [
        *(bad for bad in BAD if bad != "a/b"),
        *(f"x/{bad}" for bad in BAD if bad != "a/b"),
        *("/etc", "x/../log/p/out", "x//y", "x/", "log", "log/p/out", "memory/p", "memory-1/p", "retention/1/p"),
        *("remembered", "places", "starts", "lock", "places.damaged", "starts.new", "x/0000000000.index"),
        *("x/0000000000.arrows", "x/commit", "x/consumers", "x/reader-spark", "/".join("abcdefghi")),
    ],
)
def test_a_path_that_leads_elsewhere_or_is_a_nodes_own_is_no_sink(path: str) -> None:
    with pytest.raises(BadName):
        checked_sink(path)


@pytest.mark.parametrize("path", ["alerts", "alerts/today", "v1.2/a-b_c", "logs", "retentions/log"])
def test_other_paths_are_sinks(path: str) -> None:
    assert checked_sink(path) == path


def test_no_sink_has_the_name_of_a_file_that_a_node_keeps() -> None:
    for file in (shelf.REMEMBERED_FILE, shelf.PLACES_FILE, shelf.STARTS_FILE, disk.LOCK_FILE):
        for name in (file, f"{file}{shelf.DAMAGED}", f"{file}.new"):
            with pytest.raises(BadName):
                checked_sink(name)

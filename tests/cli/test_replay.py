"""`rove topology replay`: changes of links over time, against nodes that run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rove.control.asks.requests import LinkChange, Relink, Relinked
from rove.model.errors import RoveError
from rove.model.ids import NodeId, QueryId
from tests.api.desk import Desk
from tests.cli.conftest import Rove

FIXED = {"nodes": {"2": [0, 0], "3": [1, 1]}, "slots": {}, "children": {"2": [], "3": []}}


def move(child: int, old: int, new: int) -> list[dict[str, object]]:
    return [
        {"parentId": old, "childId": child, "action": "remove"},
        {"parentId": new, "childId": child, "action": "add"},
    ]


UPDATES = {
    "initial_parents": [[2, 9]],
    "topology_updates": [{"timestamp": 0, "events": move(9, 2, 3)}, {"timestamp": 40, "events": move(9, 3, 2)}],
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "fixed.json").write_text(json.dumps(FIXED))
    (tmp_path / "updates.json").write_text(json.dumps(UPDATES))
    return ("topology", "replay", str(tmp_path / "fixed.json"), "--updates", str(tmp_path / "updates.json"))


def running(desk: Desk, parents: tuple[str, ...] = ("2", "3")) -> None:
    """The nodes of the file, and all parents that it will have, run already."""
    desk.report("1", "gateway")
    for edge in ("2", "3"):
        desk.report(edge, "edge", ("1",))
    desk.report("9", "device", parents, ("trains",))


def links(desk: Desk, node: str = "9") -> tuple[str, ...]:
    return desk.machine.membership.topology.neighbours(NodeId(node))


def test_each_batch_is_made_and_the_end_is_summed_up(rove: Rove, desk: Desk, files: tuple[str, ...]) -> None:
    running(desk)
    assert links(desk) == ("2", "3")
    said = rove(*files, "--yes")
    assert said.code == 0, said.error
    at = "at the coordinator at tcp://127.0.0.1:4700: "
    assert said.out.startswith(f"{at}2 batches with 4 changes of links were played in 0.0 s.\n4 of 4 nodes run.")
    assert "All nodes run their parts" in said.out
    assert links(desk) == ("2",), "it is back, and the other link is away"
    summary = json.loads(rove(*files, "--yes", "--json", "--speed", "100").out)
    assert (summary["batches"], summary["changes"], summary["deploying"]) == (2, 4, [])
    desk.machine.validate()


def test_a_link_that_was_removed_stays_away_whatever_its_node_reports(
    rove: Rove, desk: Desk, files: tuple[str, ...]
) -> None:
    running(desk)
    assert rove(*files, "--yes").code == 0
    running(desk)
    assert links(desk) == ("2",)
    assert rove("topology", "remove", "9", "--yes").code == 0
    running(desk)
    assert links(desk) == ("2", "3"), "a node that was forgotten joins with all its parents"


def test_nodes_of_the_file_that_do_not_run_are_expected(rove: Rove, desk: Desk, files: tuple[str, ...]) -> None:
    refused = rove(*files)
    assert "has 3 nodes, `gateway` first; to change them, give the flag --yes" in refused.error
    assert "0 of 4 nodes run" in rove(*files, "--yes").out
    states = {line["node"]: line["state"] for line in json.loads(rove("topology", "--json").out)}
    assert states == dict.fromkeys(("gateway", "mast", "tram"), "up") | dict.fromkeys(("1", "2", "3", "9"), "expected")


@pytest.mark.parametrize(
    ("fixed", "updates", "said"),
    [
        (FIXED, {"initial_parents": [[2, 9]]}, "nothing to play"),
        (FIXED, {**UPDATES, "initial_parents": [[7, 9]]}, "name node 7 as a parent"),
        (
            FIXED,
            {**UPDATES, "topology_updates": [*UPDATES["topology_updates"], {"timestamp": 50, "events": move(9, 3, 2)}]},
            r"topology_updates[2], at 50 ms: no link between `9` and `3`",
        ),
        (FIXED, {**UPDATES, "topology_updates": [{"timestamp": -40, "events": []}]}, "`-40`"),
        ({**FIXED, "children": {"2": [8]}}, UPDATES, "no node `8`"),
        ({"nodes": {"2": [], "3": [], "4": []}, "children": {"2": [3], "3": [4], "4": [2]}}, UPDATES, "in a circle"),
        ("{ nodes", UPDATES, "not JSON"),
        (FIXED, '[{"timestamp": 1', "not JSON"),
    ],
)
def test_a_bad_file_is_one_clear_line_and_changes_nothing(
    rove: Rove, desk: Desk, files: tuple[str, ...], fixed: Any, updates: Any, said: str
) -> None:
    running(desk)
    before = links(desk), desk.machine.membership.topology.version
    for path, what in ((files[2], fixed), (files[4], updates)):
        Path(path).write_text(what if isinstance(what, str) else json.dumps(what))
    refused = rove(*files, "--yes")
    assert refused.code == 1
    assert said in refused.error
    assert len(refused.error.strip().splitlines()) == 1
    assert (links(desk), desk.machine.membership.topology.version) == before


def test_a_file_that_the_running_nodes_could_not_follow_is_refused(
    rove: Rove, desk: Desk, files: tuple[str, ...]
) -> None:
    running(desk, parents=("2",))
    assert "`9` runs and does not name `3` as a parent; start it with --parent 3" in rove(*files, "--yes").error
    assert links(desk) == ("2",)
    desk.report("2", "gateway")
    assert "`2` runs as gateway, and the file says edge" in rove(*files, "--yes").error


def test_a_batch_of_links_is_made_whole_or_not_at_all(desk: Desk) -> None:
    running(desk)
    away, gone = LinkChange(a="9", b="3", add=False), LinkChange(a="9", b="2", add=False)
    for bad, said in (
        (LinkChange(a="9", b="4", add=True), "no node `4`"),
        (LinkChange(a="9", b="2", add=True), "have a link already"),
        (LinkChange(a="2", b="3", add=False), "no link between `2` and `3`"),
        (LinkChange(a="9", b="1", add=True), "does not name `1` as a parent"),
        (LinkChange(a="9", b="9", add=True), "a link from `9` to itself"),
    ):
        with pytest.raises(RoveError, match=said):
            desk.ask("relink", Relink(changes=(away, bad)), Relinked)
        assert links(desk) == ("2", "3")
    desk.ask("relink", Relink(changes=(away, gone)), Relinked)
    assert links(desk) == ()
    desk.ask("relink", Relink(changes=(LinkChange(a="3", b="9", add=True),)), Relinked)
    assert links(desk) == ("3",), "the node that names the other is below it, in whatever order they are named"
    running(desk)
    assert links(desk) == ("3",)


def test_the_routes_of_queries_follow_a_batch_at_once(rove: Rove, desk: Desk, tmp_path: Path) -> None:
    running(desk)
    (tmp_path / "all.sql").write_text("SELECT train, boarding FROM trains")
    assert rove("submit", str(tmp_path / "all.sql")).code == 0
    deployment = desk.machine.queries[QueryId("all")].deployment
    assert deployment is not None
    parts = deployment.tree.parts
    assert parts[NodeId("9")].next == "2"
    assert desk.ask("relink", Relink(changes=(LinkChange(a="9", b="2", add=False),)), Relinked).queries == 1
    assert (parts[NodeId("9")].next, NodeId("2") in parts) == ("3", False)

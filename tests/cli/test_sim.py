"""`rove sim`: seeds run in other processes, and failures are printed with the command that replays them."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext

import pytest

from rove.cli import mutants, sim
from rove.cli.mutants import Line, Mutant
from rove.sim.scenario import Outcome
from tests.cli.conftest import Rove


def test_three_seeds_hold_and_replay_to_the_same_transcripts() -> None:
    code = "from rove.cli import main; main()"
    command = [sys.executable, "-c", code, "sim", "--seeds", "3", "--nodes", "4", "--json"]
    first, again = (subprocess.run(command, capture_output=True, text=True, timeout=120, check=False) for _ in range(2))
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["seeds"], told["failures"]) == (3, [])
    assert told == json.loads(again.stdout)


def test_failures_stop_it_and_each_says_how_to_see_it_again(rove: Rove, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(sizes: dict[int, int], processes: int) -> object:
        for seed, nodes in sizes.items():
            trouble = "at 3.000 s: the gateway let go of a batch" if seed % 2 else ""
            yield Outcome(seed, nodes, 1, 10, 5, f"hash{seed}", trouble)

    monkeypatch.setattr(sim, "outcomes", failing)
    said = rove("sim", "--seeds", "100", "--nodes", "40")
    assert said.code == 1
    lines = said.out.splitlines()
    assert lines[0] == "seed 1 broke a law at 3.000 s: the gateway let go of a batch"
    assert lines[1:10:2] == [
        f"  replay it: rove sim --seed {seed} --nodes {nodes}"
        for seed, nodes in ((1, 12), (3, 6), (5, 6), (7, 20), (9, 6))
    ]
    assert lines[-2] == "stopped after 5 failures, with 90 seeds left to run"
    assert lines[-1].startswith("10 seeds, 134 nodes, 10 queries, 100 steps, 50 rows compared, transcript ")


def test_one_seed_prints_its_transcript(rove: Rove, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim, "outcomes", lambda sizes, _: [Outcome(*sizes, 3, 1, 10, 5, "hash7")])
    said = rove("sim", "--seed", "7")
    assert (said.code, said.out) == (0, "1 seeds, 3 nodes, 1 queries, 10 steps, 5 rows compared, transcript hash7\n")


def test_one_seed_has_as_many_nodes_as_are_asked_for(rove: Rove, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[int, int]] = []
    monkeypatch.setattr(sim, "outcomes", lambda sizes, _: asked.append(dict(sizes)) or [])
    rove("sim", "--seed", "1")
    rove("sim", "--seed", "1", "--nodes", "33")
    assert asked == [{1: 60}, {1: 33}]


def test_what_was_found_before_ctrl_c_is_printed(rove: Rove, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(sizes: dict[int, int], processes: int) -> object:
        yield Outcome(0, 3, 1, 10, 5, "hash0")
        raise KeyboardInterrupt

    monkeypatch.setattr(sim, "outcomes", interrupted)
    said = rove("sim", "--seeds", "30")
    assert (said.code, said.out.splitlines()) == (
        130,
        [
            "stopped by Ctrl-C, with 29 seeds left to run",
            "1 seeds, 3 nodes, 1 queries, 10 steps, 5 rows compared, transcript hash0",
        ],
    )


def test_seeds_that_compared_no_row_are_named(rove: Rove, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Outcome(seed, 3, 1, 10, seed % 2, f"hash{seed}") for seed in range(30)]
    monkeypatch.setattr(sim, "outcomes", lambda *_: found)
    said = rove("sim", "--seeds", "30")
    assert said.out.splitlines()[0] == "15 seeds compared no row: 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 …"


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Two mutants, of which one survives; which were run, with how many seeds and nodes."""
    made = (
        Mutant("an ack is lost", "data/link/link.py", "a", "b", seed=3),
        Mutant("a count is forgotten", "data/accounts.py", "a", "b", test="tests/x.py::test_x"),
    )
    ran: list[tuple[str, int, int]] = []

    def run(nursery: object, mutant: Mutant, seeds: int, nodes: int) -> Line:
        ran.append((mutant.name, seeds, nodes))
        caught = mutant.seed is not None
        return Line(
            mutant=mutant.name,
            file=mutant.file,
            caught_by=mutant.caught_by,
            verdict="caught" if caught else "survived",
            seed=mutant.seed,
            seconds=1.5,
            why="a law" if caught else "tests/x.py::test_x passes",
        )

    monkeypatch.setattr(mutants, "catalogue", lambda root: made)
    monkeypatch.setattr(mutants, "Nursery", nullcontext)
    monkeypatch.setattr(mutants, "run_mutant", run)
    return ran


def test_mutants_are_listed_and_one_that_survives_is_a_failure(rove: Rove, planted: list[tuple[str, int, int]]) -> None:
    said = rove("sim", "--mutants", "--seeds", "7")
    assert (said.code, sorted(planted)) == (1, [("a count is forgotten", 7, 12), ("an ack is lost", 7, 12)])
    assert said.out.splitlines()[-2:] == [
        "`a count is forgotten` in data/accounts.py survived: tests/x.py::test_x passes",
        "1 of 2 mutants caught, 1 by simulation, 0 by tests",
    ]


def test_one_mutant_is_run_by_a_text_of_its_name_or_file(rove: Rove, planted: list[tuple[str, int, int]]) -> None:
    said = rove("sim", "--mutant", "Ack is", "--nodes", "20", "--json")
    assert (said.code, planted) == (0, [("an ack is lost", 100, 20)])
    told = json.loads(said.out)
    assert (told["mutants"], told["caught"], told["lines"][0]["seed"]) == (1, 1, 3)
    assert rove("sim", "--mutant", "accounts.py").code == 1
    nobody = rove("sim", "--mutant", "nothing of this kind")
    assert (nobody.code, "no mutant has `nothing of this kind` in its name or file" in nobody.error) == (1, True)

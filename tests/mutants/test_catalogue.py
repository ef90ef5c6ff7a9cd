"""The catalogue of mutants fits the source and the tests, and a mutant is caught, survives or is refused."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from rove.cli.mutants import BROKEN, CAUGHT, SURVIVED, Line, Mutant, Nursery, checkout, run_mutant
from rove.model.errors import SetupError
from tests.mutants import MUTANTS

ROOT = checkout()
SOUND = "tests/data/link/test_lifecycle.py::test_every_state_has_a_way_to_up"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_of_a_mutant_is_in_its_file_once_and_what_it_becomes_is_python(mutant: Mutant) -> None:
    ast.parse(mutant.applied((ROOT / "src" / "rove" / mutant.file).read_text()))


def test_every_mutant_has_a_name_of_its_own_and_there_are_many_of_them() -> None:
    names = Counter(mutant.name for mutant in MUTANTS)
    assert not [name for name, times in names.items() if times > 1]
    assert len(names) >= 65


def test_tests_that_catch_mutants_are_there() -> None:
    missing = [test for test in {m.test for m in MUTANTS if m.test} if not _is_there(test)]
    assert not missing


def _is_there(test: str) -> bool:
    """Whether a file has a function, or a state machine, with the name of a test."""
    file, _, names = test.partition("::")
    name = names.split("::")[0].split("[")[0]
    found: set[str] = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return name in found


def test_a_text_that_is_not_there_once_is_refused() -> None:
    twice = Mutant("a text that is there twice", "any.py", "x", "y", test=SOUND)
    with pytest.raises(SetupError, match=r"its text is 2 times in any\.py; write the mutant anew"):
        twice.applied("x = x")
    with pytest.raises(SetupError, match="name a seed or a test that catches it, and not both"):
        Mutant("a bug that nobody looks for", "any.py", "x", "y")


def _run(mutant: Mutant) -> Line:
    with Nursery(ROOT) as nursery:
        return run_mutant(nursery, mutant, seeds=1)


def _planted(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


@pytest.mark.usefixtures("processes")
def test_the_simulation_catches_a_bug_and_says_at_which_seed() -> None:
    line = _run(_planted("a batch that is dropped leaves its bytes in the account"))
    assert (line.verdict, line.caught_by, line.seed) == (CAUGHT, "simulation", 0)
    assert "the bytes of a store are those of its batches" in line.why


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_test_catches_a_bug_and_the_tree_stays_as_it_is() -> None:
    mutant = _planted("a token works after it has expired")
    file = ROOT / "src" / "rove" / mutant.file
    before = file.read_text()
    line = _run(mutant)
    assert (line.verdict, line.caught_by, line.seed) == (CAUGHT, mutant.test, None)
    assert file.read_text() == before


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_a_bug_that_nobody_notices_survives_and_one_that_cannot_run_is_not_caught() -> None:
    credit = "PEERS_MIN = 8"
    same = Mutant("a number that is written otherwise", "data/link/credit.py", credit, "PEERS_MIN = 4 + 4", test=SOUND)
    assert _run(same).verdict == SURVIVED
    unknown = Mutant("a name that nobody knows", "data/link/credit.py", credit, "PEERS_MIN = NOBODY", test=SOUND)
    line = _run(unknown)
    assert (line.verdict, line.why) == (BROKEN, "NameError: name 'NOBODY' is not defined")
    late = Mutant("a function that nobody knows", "data/link/link.py", "self._beat_if", "x", test=SOUND)
    with pytest.raises(SetupError, match="its text is 0 times"):
        _run(late)


def test_without_a_checkout_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rove.cli.mutants.__file__", str(tmp_path / "a" / "b" / "c" / "mutants.py"))
    with pytest.raises(SetupError, match=r"mutants need the tests, and .* has none; run"):
        checkout()

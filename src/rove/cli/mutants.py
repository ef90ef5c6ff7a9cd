"""`rove sim --mutants`: plants one bug at a time, and checks that the simulation or a named test notices it.

Law: the tree is never changed. A mutant is one replaced text in a temporary copy of `src`, which one child process
imports. The text must occur exactly once, so a mutant whose line was rewritten is an error and is not skipped. A mutant
that cannot be imported, or names something that does not exist, is not caught: nobody would commit it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import msgspec

from rove.cli.listing import console, print_json, print_table
from rove.model.errors import SetupError

CATALOGUE = "tests.mutants"  # the module with all mutants, in `MUTANTS`
NODES = 12  # the most nodes in a history; small worlds are fast and find nearly everything
TIMEOUT_S = 900
CAUGHT, SURVIVED, BROKEN = "caught", "survived", "broken"
NONSENSE = (NameError, ImportError, SyntaxError)  # a mutant that raises one of these is no plausible bug
CHILD = "from rove.cli.mutants import child; child()"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: in a file of `src/rove`, the text `before` becomes `after`. It is caught by the simulation, first at
    `seed`, or by a `test`, a node id of pytest. A seed may have to name the `law` that is broken."""

    name: str
    file: str
    before: str
    after: str
    seed: int | None = None
    test: str = ""
    law: str = ""

    def __post_init__(self) -> None:
        if (self.seed is None) == (not self.test):
            raise SetupError(f"mutant `{self.name}`: name a seed or a test that catches it, and not both")

    @property
    def module(self) -> str:
        return "rove." + self.file.removesuffix(".py").replace("/", ".")

    @property
    def caught_by(self) -> str:
        return self.test or "simulation"

    def applied(self, source: str) -> str:
        """The source with the bug in it."""
        if (times := source.count(self.before)) != 1 or self.before == self.after:
            raise SetupError(f"mutant `{self.name}`: its text is {times} times in {self.file}; write the mutant anew")
        return source.replace(self.before, self.after)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a child process does: import a module, then run seeds until one fails, or run a test."""

    source: str
    module: str
    seeds: tuple[int, ...] = ()
    nodes: int = NODES
    test: str = ""
    answer: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a mutant, and why. `seed` is the first that failed."""

    verdict: str
    seed: int | None = None
    why: str = ""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One mutant in the listing."""

    mutant: str
    file: str
    caught_by: str
    verdict: str
    seed: int | None
    seconds: float
    why: str


def checkout() -> Path:
    """The repository that this code runs from."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "tests" / "mutants" / "__init__.py").is_file():
        raise SetupError(f"mutants need the tests, and {root} has none; run `uv run rove sim --mutants` in a checkout")
    return root


def catalogue(root: Path) -> Sequence[Mutant]:
    """All mutants."""
    sys.path.insert(0, str(root))
    found: Sequence[Mutant] = import_module(CATALOGUE).MUTANTS
    return found


def run_mutants(chosen: str, seeds: int, nodes: int, processes: int, as_json: bool) -> bool:
    """Run the mutants whose name or file contains a text, and print what became of them. Returns whether all were
    caught."""
    root = checkout()
    mutants = [m for m in catalogue(root) if chosen.lower() in m.name.lower() or chosen in m.file]
    if not mutants:
        raise SetupError(f"no mutant has `{chosen}` in its name or file; they are listed in {root}/tests/mutants")
    lines = list(_lines(root, mutants, seeds, nodes, processes, quiet=as_json))
    order = {mutant.name: n for n, mutant in enumerate(mutants)}
    lines.sort(key=lambda line: order[line.mutant])
    left = [line for line in lines if line.verdict != CAUGHT]
    if as_json:
        print_json({"mutants": len(lines), "caught": len(lines) - len(left), "lines": lines})
        return not left
    heads = ("mutant", "caught by", "seed", "seconds", "verdict")
    print_table(heads, [(x.mutant, x.caught_by, x.seed, f"{x.seconds:.1f}", x.verdict) for x in lines])
    for line in left:
        print(f"`{line.mutant}` in {line.file} {line.verdict}: {line.why}")
    by_simulation = sum(line.caught_by == "simulation" for line in lines if line.verdict == CAUGHT)
    caught = len(lines) - len(left)
    print(f"{caught} of {len(lines)} mutants caught, {by_simulation} by simulation, {caught - by_simulation} by tests")
    return not left


def _lines(
    root: Path, mutants: Sequence[Mutant], seeds: int, nodes: int, processes: int, quiet: bool
) -> Iterator[Line]:
    """The mutants as they are done, several at a time."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    screen, left = console(), 0
    hidden = quiet or not screen.is_terminal
    with (
        Progress(*columns, console=screen, disable=hidden, transient=True) as progress,
        ThreadPoolExecutor(processes) as pool,
    ):
        task = progress.add_task("mutants", total=len(mutants))
        futures = [pool.submit(run_mutant, root, mutant, seeds, nodes) for mutant in mutants]
        try:
            for future in as_completed(futures):
                yield future.result()
                left += future.result().verdict != CAUGHT
                progress.update(task, advance=1, description=f"mutants ({left} not caught)" if left else "mutants")
        finally:
            pool.shutdown(cancel_futures=True)


def run_mutant(root: Path, mutant: Mutant, seeds: int, nodes: int = NODES) -> Line:
    """Plant a bug in a copy of the source, and look whether a child process notices."""
    began = monotonic()
    with TemporaryDirectory(prefix="rove-mutant-") as folder:
        source = Path(folder) / "src"
        copytree(root / "src", source)
        file = source / "rove" / mutant.file
        file.write_text(mutant.applied(file.read_text()))
        for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            stale.unlink()
        first = () if mutant.seed is None else (mutant.seed, *(s for s in range(seeds) if s != mutant.seed))
        answer = Path(folder) / "answer"
        task = Task(
            source=str(source), module=mutant.module, seeds=first, nodes=nodes, test=mutant.test, answer=str(answer)
        )
        verdict = _ask(root, folder, task)
    if verdict.verdict == CAUGHT and mutant.law not in verdict.why:
        verdict = Verdict(verdict=SURVIVED, seed=verdict.seed, why=f"`{mutant.law}` is not named: {verdict.why}")
    return Line(
        mutant=mutant.name,
        file=mutant.file,
        caught_by=mutant.caught_by,
        verdict=verdict.verdict,
        seed=verdict.seed,
        seconds=round(monotonic() - began, 1),
        why=verdict.why,
    )


def _ask(root: Path, folder: str, task: Task) -> Verdict:
    """Run a child process that imports the source of its task."""
    paths = os.pathsep.join((task.source, str(root)))
    environment = {**os.environ, "PYTHONPATH": paths, "HYPOTHESIS_STORAGE_DIRECTORY": f"{folder}/hypothesis"}
    command = [sys.executable, "-c", CHILD, msgspec.json.encode(task).decode()]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict(verdict=BROKEN, why=f"it was not done after {TIMEOUT_S} s")
    with suppress(FileNotFoundError):
        return msgspec.json.decode(Path(task.answer).read_bytes(), type=Verdict)
    said = (done.stderr or done.stdout).strip().splitlines()
    return Verdict(verdict=BROKEN, why=said[-1] if said else f"the child process ended with {done.returncode}")


# In the child process


def child() -> None:
    """Do the task of this process, and write its verdict to a file."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    module = import_module(task.module)
    if not str(module.__file__).startswith(task.source):
        raise SetupError(f"{module.__file__} was imported, which is not in {task.source}")
    verdict = _tested(task.test) if task.test else hunted(task.seeds, task.nodes)
    Path(task.answer).write_bytes(msgspec.json.encode(verdict))


def hunted(seeds: Iterable[int], nodes: int) -> Verdict:
    """Run histories until one fails."""
    from rove.sim.scenario import run_seed

    ran = 0
    for seed in seeds:
        try:
            trouble = run_seed(seed, nodes).trouble
        except NONSENSE as error:
            return Verdict(verdict=BROKEN, seed=seed, why=f"{type(error).__name__}: {error}")
        except Exception as error:  # a machine that raises has failed, as in `rove sim`
            trouble = f"raised {type(error).__name__}: {error}"
        if trouble:
            return Verdict(verdict=CAUGHT, seed=seed, why=trouble)
        ran += 1
    return Verdict(verdict=SURVIVED, why=f"{ran} histories kept every law")


class _Failure:
    """Remembers the first failure, as a plugin of pytest."""

    def __init__(self) -> None:
        self.why, self.nonsense = "", False

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        if not self.why:
            self.why, self.nonsense = call.excinfo.exconly(), isinstance(call.excinfo.value, NONSENSE)


def _tested(test: str) -> Verdict:
    """Run one test. It must be there, and fail."""
    import pytest

    seen = _Failure()
    flags = ["-n0", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    code = pytest.main([*flags, test], plugins=[seen])
    if code == pytest.ExitCode.OK:
        return Verdict(verdict=SURVIVED, why=f"{test} passes")
    if code != pytest.ExitCode.TESTS_FAILED or seen.nonsense:
        return Verdict(verdict=BROKEN, why=f"{test} could not be run: {seen.why or code!r}")
    return Verdict(verdict=CAUGHT, why=seen.why)

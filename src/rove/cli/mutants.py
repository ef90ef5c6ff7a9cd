"""`rove sim --mutants`: plants one bug at a time, and checks that the simulation or a named test notices it.

Law: the tree is never changed. A mutant is one replaced text in a temporary copy of `src`, which one child process
imports. The text must occur exactly once, so a mutant whose line was rewritten is an error and is not skipped. A mutant
that cannot be imported, or names something that does not exist, is not caught: nobody would commit it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from shutil import copytree
from signal import SIGALRM
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
ANSWER, SAID = "answer", "said"  # files of a task: its verdict, and what was printed
PACKAGES = ("json", "signal", "traceback", "pyarrow.compute", "pyarrow.parquet", "pandas", "sqlglot", "rich", "pytest")
NURSERY = f"""
import json, os, signal, sys, traceback
for name in sys.argv[1:]:
    __import__(name)
for line in sys.stdin:
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    folder = json.loads(line)["folder"]
    said = os.open(folder + "/{SAID}", os.O_CREAT | os.O_WRONLY)
    os.dup2(said, 1), os.dup2(said, 2)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder + "/hypothesis"
    sys.path.insert(0, folder + "/src")
    signal.alarm({TIMEOUT_S})
    try:
        from rove.cli.mutants import child
        child(line)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(0)
"""


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
        """The file's text after the replacement."""
        if (times := source.count(self.before)) != 1 or self.before == self.after:
            raise SetupError(f"mutant `{self.name}`: its text is {times} times in {self.file}; write the mutant anew")
        return source.replace(self.before, self.after)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a child process does: import a module of the source in a folder, then run seeds until one fails, or a
    test."""

    folder: str
    module: str
    seeds: tuple[int, ...] = ()
    nodes: int = NODES
    test: str = ""


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
    processes = min(processes, len(mutants))
    free: SimpleQueue[Nursery] = SimpleQueue()

    def run(mutant: Mutant) -> Line:
        nursery = free.get()
        try:
            return run_mutant(nursery, mutant, seeds, nodes)
        finally:
            free.put(nursery)

    with (
        ExitStack() as nurseries,
        Progress(*columns, console=screen, disable=hidden, transient=True) as progress,
        ThreadPoolExecutor(processes) as pool,
    ):
        for _ in range(processes):
            free.put(nurseries.enter_context(Nursery(root)))
        task = progress.add_task("mutants", total=len(mutants))
        futures = [pool.submit(run, mutant) for mutant in mutants]
        try:
            for future in as_completed(futures):
                yield future.result()
                left += future.result().verdict != CAUGHT
                progress.update(task, advance=1, description=f"mutants ({left} not caught)" if left else "mutants")
        finally:
            pool.shutdown(cancel_futures=True)


class Nursery:
    """A process that has imported the packages that we use, and none of our own modules. It forks a child for each
    task, which saves most of the time that a test takes to start."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, *PACKAGES],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, task: Task) -> Verdict:
        """Let a child do a task, and wait for it."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SetupError("a process without pipes runs no mutants")
        try:
            print(msgspec.json.encode(task).decode(), file=self._process.stdin, flush=True)
            ended = self._process.stdout.readline().strip()
        except BrokenPipeError:
            ended = ""
        if not ended:
            raise SetupError("a process that runs mutants was killed; is there enough memory?")
        with suppress(FileNotFoundError):
            return msgspec.json.decode(Path(task.folder, ANSWER).read_bytes(), type=Verdict)
        said = Path(task.folder, SAID).read_text().strip().splitlines()
        late = f"it was not done after {TIMEOUT_S} s" if ended == str(-SIGALRM) else ""
        return Verdict(verdict=BROKEN, why=late or (said[-1] if said else f"the child process ended with {ended}"))


def run_mutant(nursery: Nursery, mutant: Mutant, seeds: int, nodes: int = NODES) -> Line:
    """Plant a bug in a copy of the source, and look whether a child process notices."""
    began = monotonic()
    with TemporaryDirectory(prefix="rove-mutant-") as folder:
        source = Path(folder) / "src"
        copytree(nursery.root / "src", source)
        file = source / "rove" / mutant.file
        file.write_text(mutant.applied(file.read_text()))
        for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            stale.unlink()
        first = () if mutant.seed is None else (mutant.seed, *(s for s in range(seeds) if s != mutant.seed))
        task = Task(folder=folder, module=mutant.module, seeds=first, nodes=nodes, test=mutant.test)
        verdict = nursery.run(task)
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


# In the child process


def child(told: str) -> None:
    """Do the task of this process, and write its verdict to a file."""
    from rove.runtime.memory import look_for_cycles_seldom

    look_for_cycles_seldom()
    task = msgspec.json.decode(told, type=Task)
    module = import_module(task.module)
    if not str(module.__file__).startswith(task.folder):
        raise SetupError(f"{module.__file__} was imported, which is not in {task.folder}")
    verdict = _tested(task.test) if task.test else hunted(task.seeds, task.nodes)
    Path(task.folder, ANSWER).write_bytes(msgspec.json.encode(verdict))


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

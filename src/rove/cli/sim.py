"""`rove sim`: simulates networks that move and fail, one history for each seed, and checks them from outside.

Law: a seed and the most nodes determine a history. The same two give the same transcript in any process. Among many
seeds each has its own most nodes (`rove.sim.sizes`). A failure is printed with the command that replays it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import islice
from multiprocessing import get_context
from signal import SIG_DFL, SIGINT, signal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rove.cli.listing import console, print_json
from rove.cli.mutants import NODES as MUTANT_NODES
from rove.cli.mutants import run_mutants
from rove.model.errors import SetupError
from rove.sim.sizes import NODES, size_of

if TYPE_CHECKING:
    from rove.sim.scenario import Outcome

FAILURES_MAX = 5  # enough to see whether failures have one cause
AHEAD = 2  # queued seeds for each process, so that no process is idle
SHOWN_MAX = 10  # seeds that are listed
INTERRUPTED = 130  # what shells expect of a command that Ctrl-C has stopped
Sizes = Mapping[int, int]  # by seed, the most nodes in its history


@dataclass(slots=True)
class Tally:
    """The outcomes of all seeds."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
    interrupted: bool = False  # by Ctrl-C

    @property
    def failures(self) -> list[Outcome]:
        return [o for _, o in sorted(self.outcomes.items()) if o.trouble]

    @property
    def transcript(self) -> str:
        """One hash over all histories, in the order of seeds. For a single history, its own hash."""
        if len(self.outcomes) == 1:
            return next(iter(self.outcomes.values())).transcript
        whole = blake2b(digest_size=16)
        for _, outcome in sorted(self.outcomes.items()):
            whole.update(outcome.transcript.encode())
        return whole.hexdigest()

    def sums(self) -> dict[str, Any]:
        counts = {what: sum(getattr(o, what) for o in self.outcomes.values()) for what in _COUNTED}
        return {"seeds": len(self.outcomes), **counts, "transcript": self.transcript}


_COUNTED = ("nodes", "queries", "steps", "rows")


def sim(
    seeds: Annotated[int, typer.Option(help="How many histories to run: seeds 0 to N-1.", min=1)] = 100,
    seed: Annotated[int | None, typer.Option(help="Run only this seed, to replay it.", min=0)] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            help="The most nodes in a history. Of many seeds, most have fewer.",
            min=3,
            max=10_000,
            show_default=f"{NODES}, and {MUTANT_NODES} for mutants",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(help="How many processes to use.", min=1, max=256, show_default="one for each core"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
    mutants: Annotated[
        bool,
        typer.Option("--mutants", help="Plant bugs, one at a time: the seeds, or a test, must catch each of them."),
    ] = False,
    mutant: Annotated[
        str, typer.Option(help="Plant only the bugs with this text in their name or file.", metavar="TEXT")
    ] = "",
) -> None:
    """Simulate networks with cuts, crashes, moves and slow disks, and check that no row is lost or duplicated."""
    processes = processes or os.cpu_count() or 1
    if mutants or mutant:
        raise typer.Exit(0 if run_mutants(mutant, seeds, nodes or MUTANT_NODES, processes, as_json) else 1)
    nodes = nodes or NODES
    sizes = {each: size_of(each, nodes) for each in range(seeds)} if seed is None else {seed: nodes}
    tally = run(sizes, min(processes, len(sizes)), quiet=as_json)
    failures = tally.failures
    code = 1 if failures else INTERRUPTED if tally.interrupted else 0
    if as_json:
        said = [{**asdict(o), "replay": replay(o.seed, sizes[o.seed])} for o in failures]
        print_json({**tally.sums(), "failures": said})
        raise typer.Exit(code)
    if left := len(sizes) - len(tally.outcomes):
        why = "by Ctrl-C" if tally.interrupted else f"after {len(failures)} failures"
        print(f"stopped {why}, with {left:,} seeds left to run")
    sums = tally.sums()
    whole = sums.pop("transcript")
    sums["rows compared"] = sums.pop("rows")
    if nothing := [o.seed for _, o in sorted(tally.outcomes.items()) if not o.rows and not o.trouble]:
        print(f"{len(nothing):,} seeds compared no row: {', '.join(map(str, nothing[:SHOWN_MAX]))}{_more(nothing)}")
    print(f"{', '.join(f'{number:,} {what}' for what, number in sums.items())}, transcript {whole}")
    raise typer.Exit(code)


def _more(seeds: list[int]) -> str:
    return " …" if len(seeds) > SHOWN_MAX else ""


def _print_failure(outcome: Outcome, nodes: int) -> None:
    """Print a failure when it is found: thousands of seeds take an hour."""
    print(f"seed {outcome.seed} broke a law {outcome.trouble}")
    print(f"  replay it: {replay(outcome.seed, nodes)}", flush=True)


def replay(seed: int, nodes: int) -> str:
    """The command that replays a history."""
    return f"rove sim --seed {seed} --nodes {nodes}"


def run(sizes: Sizes, processes: int, quiet: bool) -> Tally:
    """Run all seeds, several at a time, until too many have failed or Ctrl-C is pressed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tally = Tally()
    screen = console()
    with Progress(*columns, console=screen, disable=quiet or not screen.is_terminal, transient=True) as progress:
        task = progress.add_task("seeds", total=len(sizes))
        try:
            for outcome in outcomes(sizes, processes):
                tally.outcomes[outcome.seed] = outcome
                progress.advance(task)
                if outcome.trouble:
                    progress.update(task, description=f"seeds ({len(tally.failures)} failed)")
                    if not quiet:
                        _print_failure(outcome, sizes[outcome.seed])
                if len(tally.failures) >= FAILURES_MAX:
                    break
        except KeyboardInterrupt:
            tally.interrupted = True
    return tally


def outcomes(sizes: Sizes, processes: int) -> Iterator[Outcome]:
    """Outcomes as they are ready. Processes are spawned, so they share no state with this one."""
    from rove.sim.scenario import run_seed

    left = iter(sizes.items())
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin) as pool:
        waiting: dict[Future[Outcome], int] = {}
        try:
            while True:
                for each, nodes in islice(left, processes * AHEAD - len(waiting)):
                    waiting[pool.submit(run_seed, each, nodes)] = each
                if not waiting:
                    return
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield _outcome(future, waiting.pop(future))
        finally:
            pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """A child process ends at Ctrl-C, in the middle of its history. The parent prints what the others have found."""
    from rove.runtime.memory import look_for_cycles_seldom

    signal(SIGINT, SIG_DFL)
    look_for_cycles_seldom()


def _outcome(future: Future[Outcome], seed: int) -> Outcome:
    """The outcome of a history, or the error if the code raised one."""
    from rove.sim.scenario import Outcome

    try:
        return future.result()
    except BrokenExecutor as error:
        raise SetupError(
            f"a simulation process was killed at seed {seed} or near it; is there enough memory?"
        ) from error
    except Exception as error:
        trouble = f"by raising {type(error).__name__}: {error}"
        return Outcome(seed, nodes=0, queries=0, steps=0, rows=0, transcript="", trouble=trouble)

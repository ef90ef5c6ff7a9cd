"""`rove sim`: simulates networks that move and fail, one history for each seed, and checks them from outside.

Law: a seed determines a history. The same seed gives the same transcript in any process. A failure is printed with the
command that replays it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import islice
from multiprocessing import get_context
from signal import SIG_IGN, SIGINT, signal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rove.cli.listing import console, print_json
from rove.cli.mutants import NODES as MUTANT_NODES
from rove.cli.mutants import run_mutants
from rove.model.errors import SetupError

if TYPE_CHECKING:
    from rove.sim.scenario import Outcome

FAILURES_MAX = 5  # enough to see whether failures have one cause
AHEAD = 2  # queued seeds for each process, so that no process is idle
SHOWN_MAX = 10  # seeds that are listed
NODES = 60  # the same as in `rove.sim.scenario`, which takes long to import


@dataclass(slots=True)
class Tally:
    """The outcomes of all seeds."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)

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
            help="The most nodes in a history.",
            min=3,
            max=10_000,
            show_default=f"{NODES}, and {MUTANT_NODES} for mutants",
        ),
    ] = None,
    processes: Annotated[int, typer.Option(help="How many processes to use.", min=1, max=256)] = 2,
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
    if mutants or mutant:
        raise typer.Exit(0 if run_mutants(mutant, seeds, nodes or MUTANT_NODES, processes, as_json) else 1)
    nodes = nodes or NODES
    chosen = range(seeds) if seed is None else range(seed, seed + 1)
    tally = run(chosen, nodes, min(processes, len(chosen)), quiet=as_json)
    failures = tally.failures
    if as_json:
        said = [{**asdict(o), "replay": replay(o.seed, nodes)} for o in failures]
        print_json({**tally.sums(), "failures": said})
        raise typer.Exit(1 if failures else 0)
    for outcome in failures:
        print(f"seed {outcome.seed} broke a law {outcome.trouble}\n  replay it: {replay(outcome.seed, nodes)}")
    if len(tally.outcomes) < len(chosen):
        print(f"stopped after {len(failures)} failures, with {len(chosen) - len(tally.outcomes):,} seeds left to run")
    sums = tally.sums()
    whole = sums.pop("transcript")
    sums["rows compared"] = sums.pop("rows")
    if nothing := [o.seed for _, o in sorted(tally.outcomes.items()) if not o.rows and not o.trouble]:
        print(f"{len(nothing):,} seeds compared no row: {', '.join(map(str, nothing[:SHOWN_MAX]))}{_more(nothing)}")
    print(f"{', '.join(f'{number:,} {what}' for what, number in sums.items())}, transcript {whole}")
    raise typer.Exit(1 if failures else 0)


def _more(seeds: list[int]) -> str:
    return " …" if len(seeds) > SHOWN_MAX else ""


def replay(seed: int, nodes: int) -> str:
    """The command that replays a history."""
    return f"rove sim --seed {seed} --nodes {nodes}"


def run(seeds: range, nodes: int, processes: int, quiet: bool) -> Tally:
    """Run all seeds, several at a time, until too many have failed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tally = Tally()
    screen = console()
    with Progress(*columns, console=screen, disable=quiet or not screen.is_terminal, transient=True) as progress:
        task = progress.add_task("seeds", total=len(seeds))
        for outcome in outcomes(seeds, nodes, processes):
            tally.outcomes[outcome.seed] = outcome
            progress.advance(task)
            if outcome.trouble:
                progress.update(task, description=f"seeds ({len(tally.failures)} failed)")
            if len(tally.failures) >= FAILURES_MAX:
                break
    return tally


def outcomes(seeds: range, nodes: int, processes: int) -> Iterator[Outcome]:
    """Outcomes as they are ready. Processes are spawned, so they share no state with this one."""
    from rove.sim.scenario import run_seed

    left = iter(seeds)
    with ProcessPoolExecutor(processes, get_context("spawn"), _leave_signals) as pool:
        waiting: dict[Future[Outcome], int] = {}
        try:
            while True:
                for each in islice(left, processes * AHEAD - len(waiting)):
                    waiting[pool.submit(run_seed, each, nodes)] = each
                if not waiting:
                    return
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield _outcome(future, waiting.pop(future))
        finally:
            pool.shutdown(cancel_futures=True)


def _leave_signals() -> None:
    """Ignore Ctrl-C in child processes. The parent process handles it."""
    signal(SIGINT, SIG_IGN)


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

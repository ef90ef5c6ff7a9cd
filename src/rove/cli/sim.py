"""`rove sim`: whole histories of moving, failing networks, one a seed, judged by checkers that stand outside.

Law: a seed is a history; the same seed gives the same transcript in any process. What fails is printed with the command
that replays it.
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
from rove.model.errors import SetupError

if TYPE_CHECKING:
    from rove.sim.scenario import Outcome

FAILURES_MAX = 5  # enough to see whether they are of one kind
AHEAD = 2  # seeds waiting for each process, so that none is idle
NODES = 60  # as `rove.sim.scenario` has it, which takes long to import


@dataclass(slots=True)
class Tally:
    """What all seeds came to."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)

    @property
    def failures(self) -> list[Outcome]:
        return [o for _, o in sorted(self.outcomes.items()) if o.trouble]

    @property
    def transcript(self) -> str:
        """One hash over all histories, in the order of seeds; of a single one its own."""
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
    seeds: Annotated[int, typer.Option(help="How many histories: seeds 0 to N-1.", min=1)] = 100,
    seed: Annotated[int | None, typer.Option(help="Only this one, to replay it.", min=0)] = None,
    nodes: Annotated[int, typer.Option(help="The most nodes a history has.", min=3, max=10_000)] = NODES,
    processes: Annotated[int, typer.Option(help="How many run at a time.", min=1, max=256)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
) -> None:
    """Simulate networks with cuts, crashes, moves and slow disks, and check that no row is lost or there twice."""
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
        print(f"stopped after {len(failures)} failures, {len(chosen) - len(tally.outcomes):,} seeds before the end")
    sums = tally.sums()
    whole = sums.pop("transcript")
    print(f"{', '.join(f'{number:,} {what}' for what, number in sums.items())}, transcript {whole}")
    raise typer.Exit(1 if failures else 0)


def replay(seed: int, nodes: int) -> str:
    """What to type to see a history again."""
    return f"rove sim --seed {seed} --nodes {nodes}"


def run(seeds: range, nodes: int, processes: int, quiet: bool) -> Tally:
    """All seeds, several at a time, until too many have failed."""
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
    """Outcomes as they come. New processes are started afresh, so nothing of this one is in them."""
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
    """Ctrl-C is for the process that was typed."""
    signal(SIGINT, SIG_IGN)


def _outcome(future: Future[Outcome], seed: int) -> Outcome:
    """A history, or, where the code itself broke down, what it said."""
    from rove.sim.scenario import Outcome

    try:
        return future.result()
    except BrokenExecutor as error:
        raise SetupError(
            f"a process that simulated was killed, at seed {seed} or near it; is there memory enough?"
        ) from error
    except Exception as error:
        trouble = f"by raising {type(error).__name__}: {error}"
        return Outcome(seed, nodes=0, queries=0, steps=0, rows=0, transcript="", trouble=trouble)

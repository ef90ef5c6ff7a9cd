"""Plays batches of topology changes against a network, each at its time.

Law: a batch that is late is sent at once, and the delay is reported. If a batch is refused, the batches after it are
not sent.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

from rove.control.asks.requests import QueryLine, Relink, Relinked, Replayed

if TYPE_CHECKING:
    from rove.api.session import Session

SETTLE_S = 30.0  # how long queries may take to run again after the last batch
LOOK_S = 0.1


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What was played. `late_ms` is the longest delay of a batch, `answer_ms` how long the coordinator took on
    average. `deploying` are the queries that did not run again in time after the last batch."""

    nodes: int
    running: int
    batches: int
    changes: int
    queries: int  # the most that one batch touched
    seconds: float
    late_ms: float
    answer_ms: float
    settled_ms: float
    deploying: tuple[str, ...]

    def text(self) -> str:
        """The summary for people."""
        lines = [
            f"{self.batches} batches with {self.changes} changes of links were played in {self.seconds:.1f} s.",
            f"{self.running} of {self.nodes} nodes run. A batch touched up to {self.queries} queries.",
            f"A batch was up to {self.late_ms:.0f} ms late. The coordinator answered within {self.answer_ms:.1f} ms on "
            "average.",
        ]
        if self.deploying:
            lines.append(f"After {SETTLE_S:g} s some nodes do not run their part of: {', '.join(self.deploying)}.")
        else:
            lines.append(f"All nodes run their parts, {self.settled_ms:.0f} ms after the last batch.")
        return "\n".join(lines)


def play(session: Session, file: Replayed, speed: float, quiet: bool = False) -> Summary:
    """Send every batch at its time, and wait until all queries run again."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("batches of changes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    screen = Console(file=sys.stderr)
    begun, late, answers, queries = time.monotonic(), 0.0, 0.0, 0
    with Progress(*columns, console=screen, disable=quiet or not screen.is_terminal, transient=True) as progress:
        task = progress.add_task("replay", total=len(file.batches))
        for batch in file.batches:
            due = begun + batch.at_ms / 1000 / speed
            time.sleep(max(0.0, due - time.monotonic()))
            sent = time.monotonic()
            late = max(late, sent - due)
            touched = session.ask("relink", Relink(changes=batch.changes), Relinked).queries
            answers, queries = answers + time.monotonic() - sent, max(queries, touched)
            progress.advance(task)
    played = time.monotonic()
    deploying = _settled(session, played + SETTLE_S)
    return Summary(
        nodes=file.nodes,
        running=file.running,
        batches=len(file.batches),
        changes=sum(len(batch.changes) for batch in file.batches),
        queries=queries,
        seconds=played - begun,
        late_ms=late * 1e3,
        answer_ms=answers * 1e3 / len(file.batches),
        settled_ms=(time.monotonic() - played) * 1e3,
        deploying=deploying,
    )


def _settled(session: Session, deadline: float) -> tuple[str, ...]:
    """Wait until no query is being deployed. Returns those that still are when the time is over."""
    while True:
        lines = session.ask("queries", None, list[QueryLine])
        deploying = tuple(line.query for line in lines if line.state == "deploying")
        if not deploying or time.monotonic() >= deadline:
            return deploying
        time.sleep(LOOK_S)

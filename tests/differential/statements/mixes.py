"""Statements of three to five clauses drawn by chance, compared with Spark for as long as you like.

    uv run python -m tests.differential.statements.mixes --seed 7 --minutes 10

It prints each statement that is accepted where Spark refuses it, or that gives other columns or rows. Keep what it
finds as a clause of the grammar. Most of what is drawn is refused, so it is not part of the suite.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator

from rove.cloud.start.session import spark_session
from rove.model.errors import RoveError
from tests.differential.statements.grammar import CLAUSES, Statement, statement
from tests.differential.statements.verdicts import TOGETHER, Judge


def mixes(draw: random.Random) -> Iterator[Statement]:
    """Statements without end."""
    by_slot: dict[str, list[int]] = {}
    for n, clause in enumerate(CLAUSES):
        if clause.slot not in ("whole", "tail"):
            by_slot.setdefault(clause.slot, []).append(n)
    while True:
        slots = draw.sample(sorted(by_slot), draw.randint(3, 5))
        yield statement(*(CLAUSES[draw.choice(by_slot[slot])] for slot in slots))


def accepted(judge: Judge, texts: Iterator[Statement], until: float) -> Iterator[str]:
    """The texts that Rove accepts. What it refuses is not asked of Spark."""
    for each in texts:
        if time.monotonic() > until:
            return
        try:
            judge.session.sql(each.text)
        except RoveError:
            continue
        yield each.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    asked = parser.parse_args()
    judge = Judge(spark_session("local[2]"))
    until = time.monotonic() + asked.minutes * 60
    kinds: Counter[str] = Counter()
    some: list[str] = []

    def ask() -> None:
        for text, verdict in zip(some, judge.verdicts(some), strict=True):
            kinds[verdict.kind] += 1
            if verdict.kind in ("different", "accepted"):
                print(f"{verdict.kind}: {text}\n    {verdict.why[:500]}", flush=True)
        some.clear()

    for text in accepted(judge, mixes(random.Random(asked.seed)), until):
        some.append(text)
        if len(some) == TOGETHER:
            ask()
    ask()
    print(f"seed {asked.seed}: {dict(kinds)}")


if __name__ == "__main__":
    main()

"""The faults of a soak, drawn from a seed before it begins.

Law: a seed and a length determine all faults: what, to whom, when, for how long. A victim has one fault at a time.
What a damaged file costs depends on what is in it by then, so a replay is as close as real processes allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeVar

from tests.soak.network import COORDINATOR, DEVICES, EDGES, FORGER, GATEWAY

T = TypeVar("T")
Kind = Literal["kill", "stop", "full", "flip", "forge"]

EVERY_S = 2.0  # between two faults, on average
REST_S = 6.0  # a victim has no other fault for so long after one
START_S = 5.0  # a start takes about as long on a busy machine
KINDS: dict[Kind, int] = {"kill": 6, "stop": 5, "full": 3, "flip": 3, "forge": 3}
GROUPS = {"coordinator": 2, "gateway": 3, "edges": 6, "devices": 9}
GROUPS_OF = {"coordinator": (COORDINATOR,), "gateway": (GATEWAY,), "edges": tuple(EDGES), "devices": DEVICES}
LASTS_S: dict[Kind, tuple[float, float]] = {
    "kill": (1.0, 4.0),  # at least a second: the event times of a start are up to 0.8 s ahead of the clock
    "stop": (0.5, 9.0),  # a parent that is silent for 3 s is away
    "full": (2.0, 8.0),
    "flip": (1.0, 2.0),
    "forge": (1.0, 2.0),
}


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    at_s: float
    kind: Kind
    victim: str
    lasts_s: float
    draw: int  # the seed of what else is random about it

    def __str__(self) -> str:
        return f"{self.at_s:7.1f} s  {self.kind:5} {self.victim} for {self.lasts_s:.1f} s"


def plan_faults(seed: int, seconds: float) -> list[Fault]:
    """All faults, in order. The last one is over before the end. Each kind and each group of victims has its turn, as
    from a deck of cards, so a short run has all of them."""
    random, now, free = Random(seed), 0.0, dict[str, float]()
    kinds, groups = _dealt(random, KINDS), _dealt(random, GROUPS)
    found = []
    while True:
        now += random.expovariate(1 / EVERY_S)
        kind = next(kinds)
        victim = FORGER if kind == "forge" else random.choice(GROUPS_OF[next(groups)])
        lasts = random.uniform(*LASTS_S[kind])
        draw = random.getrandbits(32)
        if now + lasts > seconds:
            return found
        if now >= free.get(victim, 0.0):
            found.append(Fault(now, kind, victim, lasts, draw))
            free[victim] = now + lasts + REST_S + (START_S if kind in ("kill", "flip") else 0.0)


def _dealt(random: Random, shares: Mapping[T, int]) -> Iterator[T]:
    """Cards of a deck, shuffled anew when all are dealt."""
    while True:
        deck = [card for card, share in shares.items() for _ in range(share)]
        random.shuffle(deck)
        yield from deck

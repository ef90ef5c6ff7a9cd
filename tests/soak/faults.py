"""The faults of a soak, drawn from a seed before it begins.

Law: a seed and a length determine all faults: what, to whom, when, for how long. A victim has one fault at a time.
What a damaged file costs depends on what is in it by then, so a replay is as close as real processes allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.soak.network import COORDINATOR, DEVICES, EDGES, FORGER, GATEWAY

Kind = Literal["kill", "stop", "full", "flip", "forge"]

EVERY_S = 3.0  # between two faults, on average
REST_S = 6.0  # a victim has no other fault for so long after one
START_S = 5.0  # a start takes about as long on a busy machine
KINDS: dict[Kind, int] = {"kill": 6, "stop": 5, "full": 3, "flip": 3, "forge": 3}
LASTS_S: dict[Kind, tuple[float, float]] = {
    "kill": (0.2, 4.0),
    "stop": (0.5, 9.0),  # a parent that is silent for 3 s is away
    "full": (2.0, 8.0),
    "flip": (0.2, 1.0),
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
    """All faults, in order. The last one is over before the end."""
    random, now, free = Random(seed), 0.0, dict[str, float]()
    found = []
    while True:
        now += random.expovariate(1 / EVERY_S)
        kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        victim = FORGER if kind == "forge" else _victim(random)
        lasts = random.uniform(*LASTS_S[kind])
        draw = random.getrandbits(32)
        if now + lasts > seconds:
            return found
        if now >= free.get(victim, 0.0):
            found.append(Fault(now, kind, victim, lasts, draw))
            free[victim] = now + lasts + REST_S + (START_S if kind in ("kill", "flip") else 0.0)


def _victim(random: Random) -> str:
    group = random.choices(((COORDINATOR,), (GATEWAY,), tuple(EDGES), DEVICES), (2, 3, 6, 9))[0]
    return random.choice(group)

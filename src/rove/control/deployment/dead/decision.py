"""Decides what becomes of the operators of a silent node: wait for it, start them on another node, or neither.

Law: a decision follows from what was observed, and from nothing else. It says why, in words that users read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a node may be silent before its operators start on another node; None means for ever. The state of a
    `durable` node comes back with it. A node without a disk has lost its state with its process."""

    durable_us: int | None = 600 * US_PER_S
    forgetful_us: int | None = 30 * US_PER_S

    @classmethod
    def of_seconds(cls, durable: float, forgetful: float) -> Patience:
        """Less than 0 means for ever."""
        return cls(*(None if each < 0 else round(each * US_PER_S) for each in (durable, forgetful)))

    def of(self, durable: bool) -> int | None:
        return self.durable_us if durable else self.forgetful_us


class Decision(Enum):
    """What to do about the operators of a silent node."""

    WAIT = "wait"
    REPLACE = "replace"  # they start on another node
    CANNOT = "cannot"  # they should, and there is no way


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was observed of a silent node, for one query. A `reached_by` node reports a link with it that works.
    `obstacle` says why the operators cannot start elsewhere: what an attempt came to."""

    silent_us: int
    patience_us: int | None
    durable: bool
    reached_by: str = ""
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision, and the reason for it."""

    decision: Decision
    why: str


def decide(facts: Facts) -> Verdict:
    """What to do about the operators of a silent node."""
    if facts.reached_by:
        return Verdict(Decision.WAIT, f"it is only the coordinator that does not hear it: `{facts.reached_by}` does")
    if facts.patience_us is None:
        return Verdict(Decision.WAIT, "its operators wait for it, however long (replaceTimeout)")
    state = "its state is on its disk" if facts.durable else "its state is gone"
    if facts.silent_us <= facts.patience_us:
        bound = f"{facts.patience_us / US_PER_S:g} s (replaceTimeout)"
        return Verdict(Decision.WAIT, f"{state}; its operators start on another node after {bound}")
    if facts.obstacle:
        return Verdict(Decision.CANNOT, f"its operators cannot start on another node: {facts.obstacle}")
    return Verdict(Decision.REPLACE, "its operators start on another node")

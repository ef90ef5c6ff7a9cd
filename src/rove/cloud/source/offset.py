"""How far a streaming query has read its log, as Spark keeps it in the checkpoint.

Law: two offsets determine the rows between them. Everything needed to go on from an offset is in it, or in the log
after it.

    {"at": {"/data/log/q/out": {"from": 17, "to": 40, "low": 1700000000000000}}, "bound": …, "newest": …}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rove.model.clock import MICROS_MIN


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one folder was read."""

    first: int  # the lowest position with rows that are not admitted yet
    end: int  # the position after the last entry that was read
    low: int = MICROS_MIN  # the low watermark of the last entry that was read


@dataclass(frozen=True, slots=True)
class Offset:
    """How far every folder was read, and the greatest event time that was admitted."""

    folders: Mapping[str, Reach] = field(default_factory=dict)
    bound: int = MICROS_MIN
    newest: int = MICROS_MIN  # the greatest event time of all entries that were read, admitted or not

    def to_json(self) -> dict[str, Any]:
        """The offset as Spark stores it. Equal offsets give equal texts."""
        folders = {
            name: {"from": reach.first, "to": reach.end} | ({"low": reach.low} if reach.low > MICROS_MIN else {})
            for name, reach in self.folders.items()
        }
        times = {"bound": self.bound, "newest": self.newest}
        return {"at": folders} | {name: time for name, time in times.items() if time > MICROS_MIN}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Offset:
        """An offset that `to_json` made."""
        folders = {n: Reach(r["from"], r["to"], r.get("low", MICROS_MIN)) for n, r in stored["at"].items()}
        return cls(folders, stored.get("bound", MICROS_MIN), stored.get("newest", MICROS_MIN))

    def precedes(self, other: Offset) -> bool:
        """Whether this offset is at or before the other one."""
        return (
            self.bound <= other.bound
            and self.folders.keys() == other.folders.keys()
            and all(reach.end <= other.folders[name].end for name, reach in self.folders.items())
        )

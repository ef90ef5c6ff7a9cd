"""What happens to the coordinator, and what it asks its shell to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rove.model.events import Allow, Arrived, Drop, Garbled, Send, Tick


@dataclass(frozen=True, slots=True)
class Keep:
    """Store a record before the next commands are executed. None deletes it."""

    kind: str
    name: str
    record: bytes | None


Event: TypeAlias = Arrived | Garbled | Tick
Command: TypeAlias = Send | Keep | Allow | Drop

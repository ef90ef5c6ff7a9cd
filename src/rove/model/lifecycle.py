"""Named states, and a table of the events that may happen in each.

Law: a machine is in one named state. Its table says for each state which events may happen and which state follows. Any
other event is a bug of ours, and raises with the steps that led there.

    DOORS = {Door.OPEN: {Push.SHUT: Door.SHUT}, Door.SHUT: {Push.OPEN: Door.OPEN}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Generic, TypeAlias, TypeVar

from rove.model.errors import BrokenInvariant

STORY_MAX = 16  # steps that a machine remembers
STORIES_MAX = 4_096  # stories that are shared: machines of one kind mostly have the same

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)
Table: TypeAlias = Mapping[S, Mapping[E, S]]


class IllegalStep(BrokenInvariant):
    """An event happened that must not happen in this state: a bug of ours, not a fault of a peer."""


def advanced(table: Table[S, E], state: S, event: E, who: str, story: Iterable[str] = ()) -> S:
    """The state after an event."""
    after = table[state].get(event)
    if after is None:
        told = " ─► ".join(story)
        raise IllegalStep(
            f"{who} is `{state.value}`, where `{event.value}` cannot happen{f'; so far: {told}' if told else ''}"
        )
    return after


@lru_cache(STORIES_MAX)
def longer(story: tuple[str, ...], event: Enum | None, state: Enum) -> tuple[str, ...]:
    """A story with one more step, or its beginning. Equal stories are one value, so a million machines may have one."""
    step = str(state.value) if event is None else f"{event.value}: {state.value}"
    return (*story, step)[-STORY_MAX:]


class Machine(Generic[S, E]):
    """A state, its table, and the last steps that led to it. `who` names it in errors."""

    __slots__ = ("_story", "_table", "state", "who")

    def __init__(self, table: Table[S, E], state: S, who: str) -> None:
        self._table, self.state, self.who = table, state, who
        self._story = longer((), None, state)

    def step(self, event: E) -> S:
        """Take an event. An event that must not happen in this state raises."""
        self.state = advanced(self._table, self.state, event, self.who, self._story)
        self._story = longer(self._story, event, self.state)
        return self.state

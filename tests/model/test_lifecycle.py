"""Tables of states."""

from __future__ import annotations

from enum import Enum

import pytest

from rove.model.lifecycle import STORY_MAX, IllegalStep, Machine, Table, advanced


class Door(Enum):
    OPEN = "open"
    SHUT = "shut"


class Push(Enum):
    OPENED = "opened"
    CLOSED = "closed"


DOORS: Table[Door, Push] = {Door.OPEN: {Push.CLOSED: Door.SHUT}, Door.SHUT: {Push.OPENED: Door.OPEN}}


def test_an_event_leads_where_the_table_says() -> None:
    assert advanced(DOORS, Door.OPEN, Push.CLOSED, "the door") is Door.SHUT


def test_an_event_that_cannot_happen_raises_with_the_story_that_led_there() -> None:
    door = Machine(DOORS, Door.OPEN, "the door")
    door.step(Push.CLOSED)
    door.step(Push.OPENED)
    with pytest.raises(IllegalStep) as raised:
        door.step(Push.OPENED)
    assert str(raised.value) == (
        "the door is `open`, where `opened` cannot happen; so far: open ─► closed: shut ─► opened: open"
    )
    assert door.state is Door.OPEN


def test_a_story_has_a_bound() -> None:
    door = Machine(DOORS, Door.OPEN, "the door")
    for _ in range(STORY_MAX):
        door.step(Push.CLOSED)
        door.step(Push.OPENED)
    with pytest.raises(IllegalStep) as raised:
        door.step(Push.OPENED)
    assert str(raised.value).count("─►") == STORY_MAX - 1

"""Folders that are asked for: once, again after pauses that grow, and stale answers change nothing."""

from __future__ import annotations

import pyarrow as pa

from rove.data.events import Open, Opened, OpenFailed
from rove.data.log.folders import PAUSE_US_MAX, PAUSE_US_MIN, Folders
from rove.data.log.segments.partition import Partition

SCHEMA = pa.schema([pa.field("n", pa.int32())])


def opened(asked: Open) -> Opened:
    partition = Partition(asked.folder, asked.schema)
    return Opened(asked.folder, asked.number, partition, partition.mark())


def test_a_folder_is_asked_for_once_and_is_there_when_its_answer_has_come() -> None:
    folders = Folders()
    assert folders.want("log/q/out", SCHEMA) is None
    assert folders.want("log/q/out", SCHEMA) is None
    (asked,) = folders.ask(0)
    assert asked == Open("log/q/out", 1, SCHEMA)
    assert folders.ask(10**9) == []
    answer = opened(asked)
    assert folders.answered(answer, 5)
    assert folders.want("log/q/out", SCHEMA) is answer.partition
    assert folders.get("log/q/out") is answer.partition
    assert folders.troubles() == {}


def test_a_folder_that_cannot_be_opened_is_asked_for_again_after_pauses_that_grow() -> None:
    folders, now, pauses = Folders(), 0, list[int]()
    folders.want("log/q/out", SCHEMA)
    for _ in range(12):
        (asked,) = folders.ask(now)
        assert not folders.answered(OpenFailed("log/q/out", asked.number, "no such disk"), now)
        assert folders.troubles() == {"log/q/out": "no such disk"} == {"log/q/out": folders.trouble("log/q/out")}
        pause = folders._wanted["log/q/out"].due_us - now
        assert folders.ask(now + pause - 1) == []
        now, pauses = now + pause, [*pauses, pause]
    assert pauses[:4] == [PAUSE_US_MIN, 2 * PAUSE_US_MIN, 4 * PAUSE_US_MIN, 8 * PAUSE_US_MIN]
    assert pauses[-1] == PAUSE_US_MAX
    (asked,) = folders.ask(now)
    assert folders.answered(opened(asked), now)
    assert folders.trouble("log/q/out") == ""


def test_an_answer_to_a_question_that_nobody_asks_any_more_changes_nothing() -> None:
    folders = Folders()
    folders.want("log/q/out", SCHEMA)
    (first,) = folders.ask(0)
    folders.forget("log/q/out")
    assert not folders.answered(opened(first), 1)
    assert folders.get("log/q/out") is None
    folders.want("log/q/out", SCHEMA)
    (second,) = folders.ask(2)
    assert not folders.answered(opened(first), 3)
    assert folders.answered(opened(second), 4)

"""Every machine that a test made keeps its laws when the test is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from rove.data.fragment.frontier import Frontier
from rove.data.fragment.intake import Intake
from rove.data.fragment.pipeline import Pipeline
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.fragment.states import FragmentState
from rove.data.fragment.watermarks import Watermarks
from rove.data.link.link import Link
from rove.data.log.segments.partition import Partition
from rove.data.store.store import Store
from rove.data.worker import Worker

MACHINES = (Worker, Store, Link, RunningFragment, Pipeline, Partition, Frontier, Intake, Watermarks)
MADE_MAX = 500  # of those that a test made, the last so many are looked at; property tests make thousands


@pytest.fixture(autouse=True)
def made_machines_are_valid(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: deque[Any] = deque(maxlen=MADE_MAX)
    for machine in MACHINES:
        monkeypatch.setattr(machine, "__init__", _noting(machine.__init__, made))
    yield
    for each in made:
        if not (isinstance(each, RunningFragment) and each.state is FragmentState.ENDED):
            each.validate()


def _noting(init: Any, made: deque[Any]) -> Any:
    def noted(self: Any, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        made.append(self)

    return noted

"""Every machine that a test made keeps its laws when the test is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rove.data.fragment.frontier import Frontier
from rove.data.fragment.intake import Intake
from rove.data.fragment.lifecycle import FragmentState
from rove.data.fragment.pipeline import Pipeline
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.fragment.watermarks import Watermarks
from rove.data.link.link import Link
from rove.data.log.segments.partition import Partition
from rove.data.store.store import Store
from rove.data.worker import Worker
from tests.made_machines import noted

MACHINES = (Worker, Store, Link, RunningFragment, Pipeline, Partition, Frontier, Intake, Watermarks)


@pytest.fixture(autouse=True)
def made_machines_are_valid(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = noted(MACHINES, monkeypatch)
    yield
    for each in made:
        if not (isinstance(each, RunningFragment) and each.state is FragmentState.ENDED):
            each.validate()

"""Every coordinator that a test made keeps its laws when the test is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rove.control.coordinator import Coordinator
from tests.made_machines import noted


@pytest.fixture(autouse=True)
def made_machines_are_valid(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = noted((Coordinator,), monkeypatch)
    yield
    for each in made:
        each.validate()

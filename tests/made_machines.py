"""Machines that a test made, so that each can be asked for its laws when the test is over."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

MADE_MAX = 500  # of those that a test made, the last so many are looked at; property tests make thousands


def noted(machines: tuple[type, ...], patch: pytest.MonkeyPatch) -> deque[Any]:
    """All machines of these kinds that are made from now on, the last ones of them."""
    made: deque[Any] = deque(maxlen=MADE_MAX)
    for machine in machines:
        patch.setattr(machine, "__init__", _noting(machine.__init__, made))  # type: ignore[misc]
    return made


def _noting(init: Any, made: deque[Any]) -> Any:
    def noted(self: Any, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        made.append(self)

    return noted

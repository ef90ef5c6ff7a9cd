"""A machine that breaks its own law is caught, and the law is named. Bugs that are one replaced text are planted by
`rove sim --mutants` (`tests/mutants`); this one needs more."""

from __future__ import annotations

import pytest

from rove.data.fragment.intake import Intake
from rove.model.batch import Batch
from rove.sim.scenario import run_seed

SEEDS = 200
NODES = 12


def test_an_intake_that_holds_what_is_next_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def offer(self: Intake, origin: str, batch: Batch, word: object = None) -> list[Batch]:
        self._held.setdefault(origin, {})[batch.header.seq] = batch  # type: ignore[call-overload]
        return []

    monkeypatch.setattr(Intake, "offer", offer)
    trouble = next(found for seed in range(SEEDS) if (found := run_seed(seed, NODES).trouble))
    assert "what is held is beyond what is next" in trouble

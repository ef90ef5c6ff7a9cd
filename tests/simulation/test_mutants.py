"""The checkers catch machines that are broken on purpose in one place, within 200 seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rove.data.ends.pending_input import CaughtUp, PendingBatch, PendingInput
from rove.data.events import Opened, OpenFailed
from rove.data.fragment.frontier import Frontier
from rove.data.fragment.watermarks import Watermarks
from rove.data.link import loading
from rove.data.link.receipts import FrameReceipt
from rove.data.worker import Worker
from rove.model.ids import Origin
from rove.sim.scenario import run_seed

SEEDS = 200
NODES = 12


def a_frontier_that_takes_everything(patch: pytest.MonkeyPatch) -> None:
    def take(self: Frontier[Any], origin: Any, first: int, through: int) -> list[tuple[int, int]]:
        return [(first, through)]

    patch.setattr(Frontier, "take", take)


def an_ack_before_the_disk_has_it(patch: pytest.MonkeyPatch) -> None:
    def hold(self: FrameReceipt) -> None:
        self._open += 1
        self.release()

    def release(self: FrameReceipt) -> None:
        self._link.took(self._number, self._session)

    patch.setattr(FrameReceipt, "hold", hold)
    patch.setattr(FrameReceipt, "release", release)


def a_watermark_of_the_fastest(patch: pytest.MonkeyPatch) -> None:
    def heard(self: Watermarks, origin: Origin, mark: int) -> bool:
        if origin not in self._marks:
            return False
        self._marks[origin] = max(mark, self._marks[origin])
        rose, self.low = self._marks[origin] > self.low, max(self.low, self._marks[origin])
        return rose

    patch.setattr(Watermarks, "heard", heard)


def parked_batches_forgotten_when_an_open_fails(patch: pytest.MonkeyPatch) -> None:
    opened = Worker._opened

    def forgets(self: Worker, event: Opened | OpenFailed) -> None:
        if isinstance(event, OpenFailed):
            for query in self._parking.queries():
                for frame in self._parking.take(query):
                    frame.receipt.release()
        opened(self, event)

    patch.setattr(Worker, "_opened", forgets)


def new_input_computed_before_a_replay_is_over(patch: pytest.MonkeyPatch) -> None:
    def next(self: PendingInput) -> PendingBatch | CaughtUp | None:
        for query, each in list(self._queries.items()):
            found = each.fresh.popleft() if each.fresh else each.next(query)
            if found is not None:
                rows = found.payload if isinstance(found, PendingBatch) else None
                self.bytes -= 0 if rows is None else len(rows)
                return found
            if each.reading is None:
                del self._queries[query]
        return None

    patch.setattr(PendingInput, "next", next)


def rows_given_up_when_a_read_fails_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(loading, "ATTEMPTS_MAX", 1)


@pytest.mark.parametrize(
    "broken",
    [
        a_frontier_that_takes_everything,
        pytest.param(an_ack_before_the_disk_has_it, marks=pytest.mark.slow),
        pytest.param(a_watermark_of_the_fastest, marks=pytest.mark.slow),
        pytest.param(parked_batches_forgotten_when_an_open_fails, marks=pytest.mark.slow),
        pytest.param(new_input_computed_before_a_replay_is_over, marks=pytest.mark.slow),
        pytest.param(rows_given_up_when_a_read_fails_once, marks=pytest.mark.slow),
    ],
)
def test_a_broken_machine_is_caught(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert any(run_seed(seed, NODES).trouble for seed in range(SEEDS))

"""The benchmark of states that move, and the chain of nodes that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import migrate
from bench.chain import NEW, ChainSizes, built, pairs
from bench.migrate import TOO_LONG_MS, Run, moved, moved_once, raw_mb_per_s, recreated
from tests.bench.smoke import smoke

SIZES = ChainSizes(windows=64, window_bytes=64 * 1024, bytes_per_s=10e6)


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("migrate", tmp_path)
    assert set(values) == {"pause_256mb_vs_1mb", "pause_vs_st_two_hops", "whole_vs_st_two_hops", "vs_raw_transport"}
    assert values["whole_vs_st_two_hops"] > 1


def test_rows_wait_little_behind_a_state() -> None:
    ours = moved(SIZES)
    at_least_ms = SIZES.state_bytes / SIZES.bytes_per_s * 1e3
    assert at_least_ms < ours.whole_ms < 2 * at_least_ms
    assert ours.pause_ms < ours.whole_ms / 4
    assert ours.wire_mb < 1.5 * SIZES.state_bytes / 2**20


@pytest.mark.parametrize(("whole_ms", "pause_ms"), [(30.0, 34.0), (200.0, 10.0)])
def test_a_state_that_moves_before_the_next_batch_is_due_is_moved_while_one_is(
    monkeypatch: pytest.MonkeyPatch, whole_ms: float, pause_ms: float
) -> None:
    def once(sizes: ChainSizes, hop_by_hop: bool, due_in_s: float = 0.0) -> Run:
        return Run(pause_ms=10 + due_in_s * 1e3, whole_ms=whole_ms, wire_mb=1)

    monkeypatch.setattr(migrate, "moved_once", once)
    assert moved(SIZES).pause_ms == pytest.approx(pause_ms)


def test_the_next_batch_is_due_so_long_after_a_move_has_begun() -> None:
    small = ChainSizes(windows=4)
    assert 0 < moved_once(small, due_in_s=0.01).whole_ms < small.every_s * 1e3


def test_with_state_transfer_the_state_goes_from_node_to_node_and_results_wait_for_all_of_it() -> None:
    at_least_ms = SIZES.state_bytes / SIZES.bytes_per_s * 1e3
    transferred = moved(SIZES, hop_by_hop=True)
    assert transferred.whole_ms > (SIZES.between + 1) * at_least_ms
    assert transferred.pause_ms > 0.9 * at_least_ms


def test_every_window_has_its_result_while_the_join_moves() -> None:
    with built(SIZES, pairs(SIZES.windows, "edge")) as chain:
        chain.fill()
        chain.start()
        chain.net.run_for(0.5)
        assert chain.move() is not None
        chain.net.run_for(0.5)
        first = min(chain.arrived_us)
        assert sorted(chain.arrived_us) == list(range(first, first + len(chain.arrived_us)))
        assert len(chain.arrived_us) >= len(chain.due_us) - 3
        assert chain.has_taken(NEW, SIZES.windows + 3)
        chain.net.machine.validate()


def test_rows_that_are_sent_again_make_the_same_state() -> None:
    best, worst = recreated(SIZES, 0.0), recreated(SIZES, 1.0)
    assert 0 < best.whole_ms < TOO_LONG_MS
    assert 0 < worst.whole_ms < TOO_LONG_MS
    assert 0 < raw_mb_per_s(SIZES) <= 1.01 * SIZES.bytes_per_s / 2**20

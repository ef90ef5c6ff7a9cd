"""Counts of rows: each account for itself, and sums of two counts in all of them."""

from __future__ import annotations

from dataclasses import asdict

from rove.data.counts import Count
from rove.model.batch import Header
from rove.model.ids import Origin


def test_a_batch_is_counted_in_every_account() -> None:
    count = Count()
    for seq in (3, 1):
        count.take(
            Header(origin=Origin("s", "d"), seq=seq, through=seq + 1, rows=1, born=4, evicted=2, lost=3, faulted=1)
        )
    counted = (count.delivered, count.evicted, count.lost, count.late, count.faulted, count.seen)
    assert counted == (8, 4, 6, 0, 2, 5)
    count.make(Header(origin=Origin("s", "d"), seq=6, through=8), 10)
    assert (count.produced, count.made, count.seen) == (10, 9, 5)


def test_a_sum_forgets_no_account_and_covers_what_either_covers() -> None:
    one = Count(produced=1, delivered=2, evicted=3, late=4, lost=5, made=6, seen=70, open=8, faulted=9)
    other = Count(produced=10, delivered=20, evicted=30, late=40, lost=50, made=60, seen=7, open=80, faulted=90)
    one.add(other)
    assert asdict(one) == {
        "produced": 11,
        "delivered": 22,
        "evicted": 33,
        "late": 44,
        "lost": 55,
        "made": 60,
        "seen": 70,
        "open": 88,
        "faulted": 99,
    }

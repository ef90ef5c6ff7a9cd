"""A state on its way takes what rows leave of a link, and rows wait little behind it."""

from __future__ import annotations

from collections import deque

from hypothesis import example, given
from hypothesis import strategies as st

from rove.data.fragment.reconfigure.pace import PIECES_MIN, QUEUE_US, WAY, Pace

PIECES = 400


def sent_over(carry_us: int, back_us: int) -> tuple[int, list[int]]:
    """Send pieces over a link that takes `carry_us` for each, one after the other; its ack comes `back_us` later.
    Returns how long all of them took, and how long a row that came with each piece would have stood behind others."""
    pace, now, free, waits = Pace(), 0, 0, []
    acks: deque[int] = deque()
    left = PIECES
    while left or acks:
        while acks and acks[0] <= now:
            acks.popleft()
        while left and pace.has_room(len(acks), now):
            pace.sent(now)
            waits.append(max(0, free - now))
            free = max(free, now) + carry_us
            acks.append(free + back_us)
            left -= 1
        pace.has_room(len(acks), now)
        now = acks[0] if acks else now
    return now, waits


@given(st.integers(20, 400_000), st.integers(100, 300_000))
@example(2_000, 100)
@example(100_000, 40_000)  # a slow link
@example(50, 200_000)  # a fast one, far away
def test_a_state_takes_the_whole_link_and_rows_wait_for_a_queue_of_bounded_length(carry_us: int, back_us: int) -> None:
    took_us, waits = sent_over(carry_us, back_us)
    fastest_us = carry_us + back_us
    queue_us = max(QUEUE_US, fastest_us // WAY) + (PIECES_MIN + 1) * carry_us
    assert max(waits) <= 2 * queue_us + fastest_us, "what is learned is a round trip old"
    finding_out = fastest_us * (PIECES.bit_length() + 1)
    assert took_us <= 1.5 * (PIECES * carry_us + finding_out)


def test_two_pieces_may_always_be_on_their_way() -> None:
    pace = Pace()
    pace.sent(0)
    assert pace.has_room(0, 1_000)
    for now in range(1, 50):
        pace.sent(now * 1_000_000)
        assert pace.has_room(0, now * 1_000_000 + 900_000), "however long they stand in queues"
    assert pace.most == PIECES_MIN
    assert not pace.has_room(PIECES_MIN, 60_000_000)

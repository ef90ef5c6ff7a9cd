"""How many pieces of a state may be on their way at once.

Law: rows on the same links wait little behind a state. While pieces are acked about as fast as the fastest of them,
more are sent at once: twice as many in each round trip at first, then one more. If they take longer, they stand in a
queue somewhere, and rows stand behind them: then fewer are sent at once, once in each round trip. Two may always be on
their way, so that a link is not idle between them.
"""

from __future__ import annotations

from collections import deque

PIECES_MIN = 2
QUEUE_US = 2_500  # a piece may stand in queues for this time,
WAY = 4  # or for a quarter of the time that the fastest piece took
FEWER = 0.75  # of the pieces that were allowed before


class Pace:
    """For one state."""

    def __init__(self) -> None:
        self.most = float(PIECES_MIN)  # pieces that may be on their way
        self._doubles = True  # until the first piece stands in a queue
        self._fewer_since_us = 0
        self._sent_us: deque[int] = deque()  # of pieces that are not acked, the oldest first
        self._fastest_us: int | None = None

    def sent(self, now: int) -> None:
        """Note that a piece was sent."""
        self._sent_us.append(now)

    def has_room(self, unacked: int, now: int) -> bool:
        """Note how many pieces are not acked yet. Returns whether another one may be sent. Amortized O(1)."""
        while len(self._sent_us) > unacked:
            self._acked(self._sent_us.popleft(), now)
        return unacked < int(self.most)

    def _acked(self, sent_us: int, now: int) -> None:
        took_us = now - sent_us
        self._fastest_us = took_us if self._fastest_us is None else min(self._fastest_us, took_us)
        if took_us - self._fastest_us <= max(QUEUE_US, self._fastest_us // WAY):
            self.most += 1 if self._doubles else 1 / self.most
        elif sent_us >= self._fewer_since_us:  # pieces that were sent earlier tell nothing new
            self._doubles, self._fewer_since_us = False, now
            self.most = max(PIECES_MIN, FEWER * self.most)

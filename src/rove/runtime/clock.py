"""The clock of a process.

Law: `now` never runs backwards. It begins at the time on the wall, so that what is kept on a disk can be compared
between starts; after that it counts what passes, whoever sets the clock.
"""

from __future__ import annotations

import time

_OFFSET_NS = time.time_ns() - time.monotonic_ns()


def now_us() -> int:
    """Time for machines."""
    return (_OFFSET_NS + time.monotonic_ns()) // 1_000


def wall_us() -> int:
    """Time for people: what the clock on the wall says."""
    return time.time_ns() // 1_000

"""The clock of a process.

Law: `now` never runs backwards. It begins at the wall-clock time, so that times on the disk can be compared between
starts. After that it counts elapsed time, even if the wall clock is set.
"""

from __future__ import annotations

import time

_OFFSET_NS = time.time_ns() - time.monotonic_ns()


def now_us() -> int:
    """Time for machines."""
    return (_OFFSET_NS + time.monotonic_ns()) // 1_000


def wall_us() -> int:
    """Time for people: the wall clock."""
    return time.time_ns() // 1_000

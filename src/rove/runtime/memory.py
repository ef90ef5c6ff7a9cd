"""How a process of Rove uses memory: the C library keeps what is freed, and Python seldom looks for cycles.

Law: these settings belong to a whole process. A process of Rove's own makes them at its start. A process of a user
keeps the user's.
"""

from __future__ import annotations

import ctypes
import gc

KEPT_BYTES = 32 * 1024 * 1024  # freed memory that the C library keeps
NEW_OBJECTS = 10_000  # Python looks for cycles among new objects when this many were added; its default is 700
ROUNDS = 10  # searches of new objects for one of older ones, and of these for one of all objects


def keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next messages, up to a bound, instead of returning it to the system. Messages
    are allocated in one thread and freed in another, and each would cost thirty microseconds of page faults. Other C
    libraries are not changed."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((-1, KEPT_BYTES), (-2, 1024 * 1024), (-3, 1024 * 1024)):  # trim, top pad, mmap threshold
            mallopt(option, value)


def look_for_cycles_seldom() -> None:
    """Let Python look for unreachable cycles of objects less often, and never among the modules.

    A search goes through all objects that there are. With Python's defaults, searches take a quarter of what a new
    query over 1,500 devices costs a coordinator, and find next to nothing, because Rove makes few cycles. What is in no
    cycle is freed at once, as before."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, ROUNDS, ROUNDS)

"""Wakes a thread that waits in a poller.

Law: ringing never blocks, and one ring is enough for any number of events.
"""

from __future__ import annotations

import contextlib
import os


class Bell:
    """A pipe whose content does not matter. Poll its `descriptor`."""

    def __init__(self) -> None:
        self.descriptor, self._rope = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the pipe is full, so the bell rings already
            os.write(self._rope, b"!")

    def quiet(self) -> None:
        """Empty the pipe."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 4_096)

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self._rope)

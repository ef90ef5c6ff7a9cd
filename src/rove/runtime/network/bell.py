"""A bell that wakes a thread which waits in a poller.

Law: ringing never blocks, and one ring is enough however many things have happened.
"""

from __future__ import annotations

import contextlib
import os


class Bell:
    """A pipe of which only the noise matters. `descriptor` is what to poll."""

    def __init__(self) -> None:
        self.descriptor, self._rope = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it rings already
            os.write(self._rope, b"!")

    def quiet(self) -> None:
        """Stop the noise."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 4_096)

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self._rope)

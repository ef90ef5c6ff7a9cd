"""Ends the process of a machine that raised an unexpected exception, with a final message.

Law: commands that were decided before the exception and not executed are lost, so the machine must not go on. A restart
is safe: peers keep what was not acknowledged, and the disk has what was. Restarts are bounded, and wait longer each
time.
"""

from __future__ import annotations

from collections import deque

from rove.model.events import Arrived

EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h: a supervisor may start the process again
RESTARTS_MAX = 5  # within `WINDOW_US`; a machine that breaks more often stays down
WINDOW_US = 60_000_000
WAIT_US_MIN = 100_000  # before the first restart; each further wait within the window is twice as long
EVENT_CHARS_MAX = 200  # characters of an event in the final message


class Broken(Exception):
    """A machine raised an unexpected exception. The text is the final message of its process."""

    def __init__(self, node: str, event: object, error: BaseException) -> None:
        self.node = node
        super().__init__(
            f"{node} ends: {type(error).__name__}: {error}, at {described(event)}. This is a bug in rove, please "
            "report it with the lines above. A restart is safe: nothing that was acknowledged is lost."
        )


def described(event: object) -> str:
    """An event in a few words, without its rows."""
    if isinstance(event, Arrived):
        return f"{type(event.message).__name__} from {event.conn!r}: {str(event.message)[:EVENT_CHARS_MAX]}"
    return f"{type(event).__name__} {str(event)[:EVENT_CHARS_MAX]}"


class Restarts:
    """Decides when a process that ended by a bug is started again."""

    def __init__(self) -> None:
        self._ended: deque[int] = deque()

    def after(self, now: int) -> int | None:
        """The process ended now. Returns when to start it again; None if it ended too often."""
        while self._ended and now - self._ended[0] > WINDOW_US:
            self._ended.popleft()
        if len(self._ended) >= RESTARTS_MAX:
            return None
        self._ended.append(now)
        return int(now + WAIT_US_MIN * 2 ** (len(self._ended) - 1))

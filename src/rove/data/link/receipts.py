"""A receipt for a frame: the peer may forget it when everything that came of it is in safe hands.

Law: a frame is acked once, when the last of its parts is safe; a part that is still on its way to the disk is not.
"""

from __future__ import annotations

from rove.data.link.link import Link


class FrameReceipt:
    """Counts what is still to be made safe. Born with one, which its maker gives back when all parts are known."""

    __slots__ = ("_link", "_number", "_open", "_session", "bytes")

    def __init__(self, link: Link, number: int, size: int) -> None:
        self._link, self._number, self._session = link, number, link.sessions
        self._open = 1
        self.bytes = size

    def hold(self) -> None:
        """One more part has to be made safe."""
        self._open += 1

    def release(self) -> None:
        """A part is safe; the last one acks the frame."""
        self._open -= 1
        if self._open == 0:
            self._link.took(self._number, self._session)

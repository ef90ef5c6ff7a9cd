"""The receipt of a frame: the frame is acked, so that the peer may forget it, when all its results are safe.

Law: a frame is acked once, when the last of its parts is safe. A part that is still being written to the disk is not.
"""

from __future__ import annotations

from rove.data.link.link import AckFate, Link
from rove.data.store.kept_batch import Receipt


class FrameReceipt:
    """Counts the parts that are not safe yet. It starts with one, which its creator releases when all parts are
    known."""

    __slots__ = ("_number", "_open", "bytes", "link", "session")

    def __init__(self, link: Link, number: int, size: int) -> None:
        self.link, self._number, self.session = link, number, link.sessions
        self._open = 1
        self.bytes = size

    @property
    def stale(self) -> bool:
        """Whether the frame is of an earlier session. Its sender has it back, and may send it again."""
        return self.session != self.link.sessions

    def hold(self) -> None:
        """Add a part that must be made safe."""
        self._open += 1

    def release(self) -> None:
        """A part is safe. The last one acks the frame."""
        self._open -= 1
        if self._open == 0:
            self.link.took(self._number, self.session)

    @property
    def fate(self) -> AckFate:
        """What is known of the ack of the frame."""
        return self.link.ack_fate(self._number, self.session)


class Receipts:
    """Two receipts for one batch, which came twice."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Receipt, second: Receipt) -> None:
        self._first, self._second = first, second

    def release(self) -> None:
        self._first.release()
        self._second.release()

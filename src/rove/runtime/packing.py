"""A thread that packs rows while a node does other things.

Law: one thread, started when it is first needed. Every order is answered once, also if packing fails.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue

from rove.data.events import Pack, Packed
from rove.data.store.packing import Packer

log = logging.getLogger(__name__)


class PackThread:
    """Takes orders and returns answers. An answer wakes no thread: it is taken in the next round."""

    def __init__(self, codec: str) -> None:
        self._packer = Packer(codec)
        self._orders: SimpleQueue[Pack] = SimpleQueue()
        self._done: deque[Packed] = deque()
        self._thread: threading.Thread | None = None

    def begin(self, order: Pack) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="packing", daemon=True)
            self._thread.start()
        self._orders.put(order)

    def done(self) -> Iterator[Packed]:
        """The answers so far."""
        while self._done:
            yield self._done.popleft()

    def _work(self) -> None:
        while True:
            order = self._orders.get()
            try:
                self._done.append(self._packer.answer(order))
            except Exception:
                log.exception("rows of %s stay unpacked", order.kind)
                self._done.append(Packed(order.order, None))

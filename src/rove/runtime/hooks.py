"""Hooks: a user's functions that are called when something happens to a node.

Law: hooks run in a separate thread, one after the other. An error is logged and has no other effect. A slow hook does
not delay the node; events that it misses are counted.

    def on_disconnect(parent): ...                            # a route is cut
    def on_reconnect(parent, away_s): ...                     # the route works again
    def on_evict(query, origin, first, last, rows): ...       # rows of batches `first` to `last` were evicted
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Full, Queue

from rove.data.events import Cut, Evicted, Met
from rove.model.errors import RAISED_BY_USERS, SetupError
from rove.runtime.loading import module_at

log = logging.getLogger(__name__)

NAMES = ("on_disconnect", "on_reconnect", "on_evict")
WAITING_MAX = 10_000  # events that wait for a hook

Happening = Cut | Met | Evicted


class Hooks:
    """The hooks of one module or file: the functions of `NAMES` that it has."""

    def __init__(self, where: str) -> None:
        module = module_at(where)
        self._functions = {name: getattr(module, name) for name in NAMES if callable(getattr(module, name, None))}
        if not self._functions:
            raise SetupError(f"{where} has none of the functions {', '.join(NAMES)}; define one of them")
        self.missed = 0
        self._waiting: Queue[tuple[str, Callable[[], object]]] = Queue(WAITING_MAX)
        threading.Thread(target=self._work, name="hooks", daemon=True).start()

    def tell(self, event: Happening) -> None:
        """Call the hook for this event, if there is one."""
        match event:
            case Cut(peer=peer):
                self._call("on_disconnect", str(peer))
            case Met(peer=peer, away_us=away_us):
                self._call("on_reconnect", str(peer), away_us / 1e6)
            case Evicted(query=query, origin=origin, seq=seq, through=through, rows=rows):
                self._call("on_evict", str(query), str(origin), seq, through, rows)

    def _call(self, name: str, *arguments: object) -> None:
        function = self._functions.get(name)
        if function is None:
            return
        try:
            self._waiting.put_nowait((name, lambda: function(*arguments)))
        except Full:
            self.missed += 1

    def _work(self) -> None:
        while True:
            name, call = self._waiting.get()
            try:
                call()
            except RAISED_BY_USERS:
                log.exception("%s failed", name)

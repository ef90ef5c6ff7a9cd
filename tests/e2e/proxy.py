"""A wire that can be cut: a TCP proxy on this computer."""

from __future__ import annotations

import selectors
import socket
import threading


class CuttingProxy:
    """Carries bytes between whoever dials it and a port. While it is cut, connections break and none is made."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._pairs: dict[socket.socket, socket.socket] = {}
        self.cut = self._closed = False
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        self._thread.join()

    def _carry(self) -> None:
        while not self._closed:
            ready = [key.fileobj for key, _ in self._selector.select(0.05)]
            if self.cut:
                for end in list(self._pairs):
                    self._break(end)
            for end in ready:
                if end is self._listener:
                    self._accept()
                elif isinstance(end, socket.socket) and end in self._pairs:
                    self._pass_on(end)
        for end in list(self._pairs):
            self._break(end)
        self._listener.close()

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        if self.cut:
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()
            return
        for end, other in ((near, far), (far, near)):
            self._pairs[end] = other
            self._selector.register(end, selectors.EVENT_READ)

    def _pass_on(self, end: socket.socket) -> None:
        try:
            data = end.recv(65_536)
            if data:
                self._pairs[end].sendall(data)
                return
        except OSError:
            pass
        self._break(end)

    def _break(self, end: socket.socket) -> None:
        other = self._pairs.get(end)
        if other is None:
            return
        for each in (end, other):
            del self._pairs[each]
            self._selector.unregister(each)
            each.close()

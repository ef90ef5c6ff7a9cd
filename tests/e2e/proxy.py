"""A wire that can be cut: a TCP proxy on this computer."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from pathlib import Path


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

    def cuts(self, near: socket.socket) -> bool:
        """Whether a connection is cut."""
        return self.cut

    def close(self) -> None:
        self._closed = True
        self._thread.join()

    def _carry(self) -> None:
        while not self._closed:
            ready = [key.fileobj for key, _ in self._selector.select(0.05)]
            for end in [end for end in self._pairs if self.cuts(end)]:
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
        if self.cuts(near):
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


class ChoosyProxy(CuttingProxy):
    """Carries bytes for some processes alone. Connections of those that are `away` break."""

    def __init__(self, port: int) -> None:
        self.away: frozenset[int] = frozenset()
        self._owners: dict[socket.socket, int] = {}
        super().__init__(port)

    def cuts(self, near: socket.socket) -> bool:
        if near not in self._owners and self._pairs.get(near) in self._owners:
            return False  # its other end decides
        if near not in self._owners:
            self._owners[near] = _owner(near.getpeername()[1])
        return self._owners[near] in self.away


def _owner(port: int) -> int:
    """The process that has a connection from a port of this computer; 0 if there is none."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    links = {f"socket:[{line[9]}]" for line in lines if int(line[1].rpartition(":")[2], 16) == port}
    for process in (path for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            if any(os.readlink(file) in links for file in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:  # it has ended, or is somebody else's
            continue
    return 0

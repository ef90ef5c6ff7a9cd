"""The sockets of one process: one that listens, one for each dialed peer, one poller, one thread.

Law: only `receive` blocks. A message that cannot be sent now is dropped and counted, because the machines repeat what
matters. Received rows are not copied. With keys, messages of unknown peers are refused; without keys, nothing leaves
this computer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

import zmq
import zmq.utils.z85

from rove.model.errors import ProtocolError, SetupError
from rove.model.events import Arrived, Conn, Garbled, Payload
from rove.model.messages import Message, Peer, decode, encode
from rove.runtime.network.keys import Keys
from rove.runtime.network.sockets import Socket, bounded, dealer, on_this_computer

DRAIN_MAX = 256  # messages taken from one socket in a round, so that no other socket starves
VIEW_BYTES_MIN = 4_096  # smaller payloads are copied, because a view would keep a larger buffer alive
LEND_BYTES_MIN = (
    256 * 1024
)  # larger payloads are sent without a copy; below, a copy costs less than tracking the buffer
REDIAL_S = 3.0  # a socket that was refused may never try again by itself, so a new one is made
FLUSH_MS = 200
KNOWN_MAX = 100_000  # connections whose keys are remembered
ZAP = "inproc://zeromq.zap.01"  # where libzmq asks whether a peer may connect


@dataclass(slots=True)
class _Dialed:
    socket: Socket
    address: str
    key: str
    blocked_s: float | None = None  # since when nothing can be sent


class Wires:
    """The sockets of a process. `listen` may end in port 0; `address` is the real address."""

    def __init__(self, listen: str = "", keys: Keys | None = None) -> None:
        self._context, self._keys = zmq.Context(), keys
        self._poller = zmq.Poller()
        self._dialed: dict[str, _Dialed] = {}
        self._names: dict[Socket, str] = {}
        self._router: Socket | None = None
        self._zap: Socket | None = None
        self._bell: int | None = None
        self._allowed: frozenset[str] = frozenset()
        self._key_of: dict[bytes, str] = {}  # by connection, for connections that have proven a key
        self.dropped = 0  # messages that could not be sent
        self.turned_away = 0  # connections and messages of keys that are not allowed
        self.address = ""
        with ExitStack() as undo:
            undo.callback(self._context.destroy, linger=0)
            if listen:
                self._listen(listen)
            undo.pop_all()

    # Peers

    def dial(self, name: str, address: str, key: str = "") -> None:
        """Connect to a peer. Does nothing if the peer is already dialed at this address."""
        known = self._dialed.get(name)
        if known is not None and (known.address, known.key) == (address, key):
            return
        socket = dealer(self._context, address, self._keys, key)
        self.hang_up(name)
        self._dialed[name] = _Dialed(socket, address, key)
        self._names[socket] = name
        self._poller.register(socket, zmq.POLLIN)

    def hang_up(self, conn: Conn) -> None:
        """Close a dialed connection. A connection that the peer dialed ends when its key is no longer allowed."""
        found = self._dialed.pop(conn, None) if isinstance(conn, str) else None
        if found is not None:
            self._poller.unregister(found.socket)
            del self._names[found.socket]
            found.socket.close(linger=0)

    def allow(self, peers: Iterable[Peer]) -> None:
        """Set the peers that may connect. Messages of connected peers with other keys are ignored from now on."""
        self._allowed = frozenset(p.key for p in peers if p.key)

    def watch(self, bell: int) -> None:
        """Let `receive` return when this descriptor can be read."""
        self._bell = bell
        self._poller.register(bell, zmq.POLLIN)

    # Messages

    def send(self, conn: Conn, message: Message, payload: Payload | None = None) -> bool:
        """Send a message. Returns whether it could be sent."""
        said = encode(message)
        if isinstance(conn, str):
            dialed = self._dialed.get(conn)
            if dialed is None:
                self.dropped += 1
                return False
            try:
                _send(dialed.socket, said, payload)
            except zmq.ZMQError as error:
                self._unsent(error)
                self._redial(conn, dialed)
                return False
            dialed.blocked_s = None
            return True
        if self._router is None:
            self.dropped += 1
            return False
        try:
            self._router.send(conn, _MORE)
            _send(self._router, said, payload)
        except zmq.ZMQError as error:
            self._unsent(error)
            return False
        return True

    def receive(self, timeout_ms: int) -> list[Arrived | Garbled]:
        """The messages that have arrived. Waits for the first one, at most `timeout_ms`."""
        events: list[Arrived | Garbled] = []
        for readable, _ in self._poller.poll(timeout_ms):
            if readable is self._router:
                self._from_outside(events)
            elif readable is self._zap:
                self._who_may_come_in()
            elif isinstance(readable, int):
                os.read(readable, 4_096)
            elif (name := self._names.get(readable)) is not None:
                self._from_dialed(name, readable, events)
        return events

    def close(self, flush_ms: int = FLUSH_MS) -> None:
        """Close all sockets. The last messages have `flush_ms` to be sent."""
        self._context.destroy(linger=flush_ms)

    # Internals

    def _listen(self, listen: str) -> None:
        if self._keys is None and not on_this_computer(listen):
            raise SetupError(
                f"without keys only addresses of this computer can be used, and {listen} is not one; make keys with: "
                "rove keys new, or listen on tcp://127.0.0.1:0"
            )
        self._router = router = self._context.socket(zmq.ROUTER)
        bounded(router, listen)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        if self._keys is not None:
            self._zap = self._context.socket(zmq.REP)
            self._zap.linger = 0
            self._zap.bind(ZAP)
            self._poller.register(self._zap, zmq.POLLIN)
            router.setsockopt(zmq.ZAP_DOMAIN, b"rove")
            router.setsockopt(zmq.CURVE_SERVER, 1)
            router.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret.encode())
        try:
            router.bind(listen.replace("://localhost", "://127.0.0.1"))
        except zmq.ZMQError as error:
            raise SetupError(f"cannot listen on {listen}: {error.strerror}; choose another address or port") from error
        self.address = router.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()  # type: ignore[union-attr]
        self._poller.register(router, zmq.POLLIN)

    def _from_outside(self, events: list[Arrived | Garbled]) -> None:
        router = self._router
        if router is None:
            return
        recv, keyed, known = router.recv, self._keys is not None, self._key_of
        for _ in range(DRAIN_MAX):
            try:
                conn = recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            key = ""
            if keyed:
                found = known.get(conn)
                if found is None:
                    frame = recv(copy=False)
                    said, key = frame.bytes, self._prove(conn, frame)
                else:
                    said, key = recv(), found
                event = _heard(router, conn, said, key)
                if key not in self._allowed:
                    self.turned_away += 1
                    continue
            else:
                event = _heard(router, conn, recv(), "")
            events.append(event)

    def _prove(self, conn: bytes, frame: zmq.Frame) -> str:
        """The key behind a connection. A connection that we named keeps its key for ever. A name that the peer chose
        may come back with another key."""
        key = str(frame.get("User-Id"))
        if conn[:1] == b"\0":
            if len(self._key_of) >= KNOWN_MAX:
                self._key_of.clear()
            self._key_of[conn] = key
        return key

    def _from_dialed(self, name: str, socket: Socket, events: list[Arrived | Garbled]) -> None:
        recv, key = socket.recv, self._dialed[name].key
        for _ in range(DRAIN_MAX):
            try:
                said = recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            events.append(_heard(socket, name, said, key))

    def _who_may_come_in(self) -> None:
        """Answer libzmq whether a peer may connect. A refusal is "not now" (300), so that a peer that is not known yet
        tries again."""
        zap = self._zap
        if zap is None:
            return
        for _ in range(DRAIN_MAX):
            try:
                version, request, _, _, _, mechanism, *credentials = zap.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            key = zmq.utils.z85.encode(credentials[0]).decode() if mechanism == b"CURVE" and credentials else ""
            known = key in self._allowed
            if not known:
                self.turned_away += 1
            status, text = (b"200", b"OK") if known else (b"300", b"not known here")
            zap.send_multipart([version, request, status, text, key.encode() if known else b"", b""])

    def _unsent(self, error: zmq.ZMQError) -> None:
        if error.errno not in (zmq.EAGAIN, zmq.EHOSTUNREACH):
            raise error
        self.dropped += 1

    def _redial(self, name: str, dialed: _Dialed) -> None:
        now = time.monotonic()
        if dialed.blocked_s is None:
            dialed.blocked_s = now
        elif now - dialed.blocked_s > REDIAL_S:
            self.hang_up(name)
            self.dial(name, dialed.address, dialed.key)


_MORE = zmq.NOBLOCK | zmq.SNDMORE


def _send(socket: Socket, said: bytes, payload: Payload | None) -> None:
    if payload is None:
        socket.send(said, zmq.NOBLOCK)
    else:
        socket.send(said, _MORE)
        socket.send(payload, zmq.NOBLOCK, copy=len(payload) < LEND_BYTES_MIN)


def _heard(socket: Socket, conn: Conn, said: bytes, key: str) -> Arrived | Garbled:
    """Read one message with all its parts from the socket."""
    payload: Payload | None = None
    more = socket.getsockopt(zmq.RCVMORE)
    if more:
        frame = socket.recv(copy=False)
        payload = frame.buffer if len(frame) >= VIEW_BYTES_MIN else frame.bytes
        more = frame.more
    surplus = 0
    while more:
        more = socket.recv(copy=False).more
        surplus += 1
    if surplus:
        return Garbled(conn, "malformed", f"a message of {2 + surplus} parts; the most is 2, the message and its rows")
    try:
        return Arrived(conn, decode(said), payload, key)
    except ProtocolError as error:
        return Garbled(conn, error.why, str(error))

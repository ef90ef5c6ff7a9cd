"""Asks the coordinator on behalf of a user: one question, one answer.

Law: a question is repeated with the same id until it is answered. So a lost message or a restart of the coordinator
costs time, but nothing is done twice.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import TypeVar
from uuid import uuid4
from weakref import finalize

import msgspec
import zmq
from zmq.utils.monitor import recv_monitor_message

from rove.control.asks.requests import Named, from_body, to_body
from rove.model.errors import ProtocolError, RoveError, SetupError
from rove.model.messages import Answer, Ask, Refused, decode, encode
from rove.runtime.network.keys import Keys
from rove.runtime.network.sockets import Socket, dealer

T = TypeVar("T")

REPEAT_S = 1.0


class Client:
    """Asks a coordinator. `keys` are the keys for giving commands; None if the coordinator uses no keys."""

    def __init__(self, url: str, keys: Keys | None = None, timeout_s: float = 10) -> None:
        self.url, self._timeout_s, self._keys = url, timeout_s, keys
        self._events: Socket | None = None  # of the socket: whether a coordinator is there, and accepts our key
        self._seen: set[int] = set()  # the events so far
        self._context = zmq.Context()
        self._open: list[
            Socket
        ] = []  # kept for `_hang_up`: without a reference they may be collected before the context
        self._hang_up = finalize(self, _hang_up, self._context, self._open)  # also if this client is never closed
        with ExitStack() as undo:
            undo.callback(self._hang_up)
            self._socket = self._dial()
            undo.pop_all()

    def ask(self, verb: str, body: msgspec.Struct | None, kind: type[T]) -> T:
        """The coordinator's answer to a verb. A refusal raises a RoveError, no answer a SetupError."""
        ask = encode(Ask(uuid4().hex, verb, to_body(Named() if body is None else body)))
        id = msgspec.msgpack.decode(ask)[1]
        deadline = time.monotonic() + self._timeout_s
        while (left := deadline - time.monotonic()) > 0:
            until = time.monotonic() + min(REPEAT_S, left)
            if self._say(ask, until):
                while (answer := self._hear(until)) is not None:
                    if isinstance(answer, Refused):
                        raise RoveError(f"the coordinator at {self.url} refused `{verb}`: {answer.text}")
                    if answer.id == id:
                        return _read(answer, verb, kind)
        if self._keys is not None and self._turned_away():
            raise SetupError(
                f"the coordinator at {self.url} does not accept the key in use. A token works once, and only until it "
                "expires; a key works until it is revoked. Ask for another token: rove keys invite"
            )
        raise SetupError(
            f"nobody answered `{verb}` at {self.url} in {self._timeout_s:g} s; the coordinator is not running or "
            "cannot be reached. Start one with: rove coordinator"
        )

    def close(self) -> None:
        self._hang_up()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _dial(self) -> Socket:
        coordinator = self._keys.coordinator if self._keys is not None else ""
        return dealer(self._context, self.url, self._keys, coordinator, self._watch)

    def _watch(self, socket: Socket) -> None:
        """Listen to the events of a new socket."""
        self._listen()
        self._events = socket.get_monitor_socket(zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._open[:] = [socket, self._events]

    def _listen(self) -> None:
        while self._events is not None and self._events.poll(0):
            self._seen.add(int(recv_monitor_message(self._events)["event"]))

    def _turned_away(self) -> bool:
        """Whether a coordinator is there that does not accept our key. A coordinator does not answer a key that it
        does not know, because it may know the key later."""
        self._listen()
        return zmq.EVENT_CONNECTED in self._seen and zmq.EVENT_HANDSHAKE_SUCCEEDED not in self._seen

    def _say(self, ask: bytes, until: float) -> bool:
        """Send a message. Returns whether it could be handed over in time."""
        if not self._socket.poll(_ms(until), zmq.POLLOUT):
            self._socket.close(linger=0)  # a socket that was refused may never try again by itself
            self._socket = self._dial()
            return False
        try:
            self._socket.send(ask, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def _hear(self, until: float) -> Answer | Refused | None:
        while self._socket.poll(_ms(until), zmq.POLLIN):
            parts = self._socket.recv_multipart()
            try:
                message = decode(parts[0])
            except ProtocolError:
                continue
            if isinstance(message, Answer | Refused):
                return message
        return None


def _hang_up(context: zmq.Context[Socket], sockets: list[Socket]) -> None:
    """Close all sockets of a context. What was not sent is dropped."""
    context.destroy(linger=0)
    sockets.clear()


def _ms(until: float) -> int:
    return max(0, round((until - time.monotonic()) * 1_000))


def _read(answer: Answer, verb: str, kind: type[T]) -> T:
    if answer.trouble:
        raise RoveError(answer.trouble)
    try:
        return from_body(answer.body, kind)
    except msgspec.MsgspecError as error:
        raise RoveError(
            f"the answer to `{verb}` cannot be read: {error}; use the same version of rove for coordinator and client"
        ) from error

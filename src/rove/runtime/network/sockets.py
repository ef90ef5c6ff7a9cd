"""Sets up the sockets of Rove.

Law: every queue, message part and wait is bounded. A dialing socket talks only to the holder of one key. Without keys
it talks only to this computer.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

import zmq

from rove.model.errors import SetupError
from rove.model.messages import ROWS_BYTES_MAX
from rove.runtime.network.keys import Keys

WAITING_MAX = 10_000  # queued messages of one connection; links bound their bytes by credit
PART_BYTES_MAX = ROWS_BYTES_MAX + 64 * 1024
RECONNECT_MS, RECONNECT_MS_MAX = 100, 2_000
BEAT_MS, SILENT_MS = 2_000, 6_000  # a silent connection is closed and dialed again

Socket = zmq.Socket[bytes]


def dealer(
    context: zmq.Context[Socket],
    address: str,
    keys: Keys | None,
    key: str,
    watch: Callable[[Socket], None] = lambda socket: None,
) -> Socket:
    """A socket that dials an address. Only the holder of the key can answer. `watch` gets it before it dials."""
    if keys is None and not on_this_computer(address):
        raise SetupError(
            f"without keys only addresses of this computer can be dialed, and {address} is not one; join with a token: "
            "rove join --token"
        )
    if keys is not None and not key:
        raise SetupError(f"no public key is known for {address}; join with a token: rove join --token")
    socket = context.socket(zmq.DEALER)
    try:
        bounded(socket, address)
        socket.setsockopt(
            zmq.IMMEDIATE, 1
        )  # a message that cannot be sent now is dropped, so it cannot arrive in a later session
        socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_MS_MAX)
        if keys is not None:
            socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public.encode())
            socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret.encode())
            socket.setsockopt(zmq.CURVE_SERVERKEY, key.encode())
        watch(socket)
        socket.connect(address)
    except zmq.ZMQError as error:
        socket.close(linger=0)
        raise SetupError(f"cannot dial `{address}`: {error.strerror}; an address is like tcp://host:4700") from error
    return socket


def bounded(socket: Socket, address: str) -> None:
    """Set the bounds of a socket, before it listens or dials."""
    for option, value in (
        (zmq.SNDHWM, WAITING_MAX),
        (zmq.RCVHWM, WAITING_MAX),
        (zmq.MAXMSGSIZE, PART_BYTES_MAX),
        (zmq.LINGER, 0),
        (zmq.IPV6, int("[" in address)),
        (zmq.TCP_KEEPALIVE, 1),
        (zmq.TCP_KEEPALIVE_IDLE, 30),
        (zmq.TCP_KEEPALIVE_INTVL, 10),
        (zmq.HEARTBEAT_IVL, BEAT_MS),
        (zmq.HEARTBEAT_TIMEOUT, SILENT_MS),
    ):
        socket.setsockopt(option, value)


def on_this_computer(address: str) -> bool:
    """Whether an address is on this computer."""
    kind, _, place = address.partition("://")
    if kind != "tcp":
        return kind in ("ipc", "inproc")
    host = place.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

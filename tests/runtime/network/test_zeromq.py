"""Sockets: frames, bounds, who gets in and who does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import zmq

from rove.model.batch import Header
from rove.model.errors import SetupError
from rove.model.events import Arrived, Garbled
from rove.model.ids import NodeId, Origin
from rove.model.messages import Data, Goodbye, Message, Peer
from rove.runtime.network import zeromq
from rove.runtime.network.keys import Keys, new_keys
from rove.runtime.network.zeromq import Wires

HEADER = Header(origin=Origin("trains", "dev1"), seq=0, through=0, rows=1, born=1)
Open = Callable[..., Wires]


def word(number: int) -> Message:
    return Goodbye(NodeId(f"node{number}"))


@pytest.fixture
def opened() -> Iterator[Open]:
    """Wires that are closed at the end."""
    made: list[Wires] = []

    def open_wires(listen: str = "", keys: Keys | None = None) -> Wires:
        made.append(Wires(listen, keys))
        return made[-1]

    yield open_wires
    for wires in made:
        wires.close(0)


def hear(listener: Wires, speak: Callable[[], object], timeout_s: float = 5) -> list[Arrived | Garbled]:
    """What a listener hears of something that is said until it is heard."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        speak()
        if found := listener.receive(50):
            return found
    return []


def test_a_message_and_its_rows_go_there_and_an_answer_comes_back(opened: Open) -> None:
    edge, device = opened("tcp://127.0.0.1:0"), opened()
    device.dial("edge", edge.address)
    rows = bytes(range(256)) * 64

    (event,) = hear(edge, lambda: device.send("edge", Data(1, HEADER), rows))[:1]
    assert isinstance(event, Arrived)
    assert event.message == Data(1, HEADER)
    assert isinstance(event.payload, memoryview)
    assert event.payload == rows

    assert edge.send(event.conn, word(7), None)
    (answer,) = hear(device, lambda: None)
    assert answer == Arrived("edge", word(7))


@pytest.mark.parametrize("size", [0, 1, zeromq.VIEW_BYTES_MIN - 1, zeromq.VIEW_BYTES_MIN, zeromq.LEND_BYTES_MIN + 8])
def test_rows_of_any_size_arrive_as_they_were(opened: Open, size: int) -> None:
    edge, device = opened("tcp://127.0.0.1:0"), opened()
    device.dial("edge", edge.address)
    rows = bytes(n % 251 for n in range(size))
    (event, *_) = hear(edge, lambda: device.send("edge", Data(1, HEADER), rows))
    assert isinstance(event, Arrived)
    assert event.payload is not None
    assert bytes(event.payload) == rows


@pytest.mark.parametrize("parts", [[b""], [b"\xc1"], [b"\x93\x01\x02\x03"], [b"x" * 100_000], [b"", b"", b"", b""]])
def test_what_is_no_message_is_told_and_the_next_one_is_heard(opened: Open, parts: list[bytes]) -> None:
    edge, device = opened("tcp://127.0.0.1:0"), opened()
    context = zmq.Context()
    stranger = context.socket(zmq.DEALER)
    stranger.connect(edge.address)
    stranger.send_multipart(parts)
    (event,) = hear(edge, lambda: None)
    assert isinstance(event, Garbled)
    assert event.why == "malformed"
    context.destroy(linger=0)

    device.dial("edge", edge.address)
    assert isinstance(hear(edge, lambda: device.send("edge", word(1)))[0], Arrived)


def test_what_nobody_can_take_is_dropped_and_counted(opened: Open) -> None:
    edge, device = opened("tcp://127.0.0.1:0"), opened()
    device.dial("gone", "tcp://127.0.0.1:1")
    assert not device.send("gone", word(1))
    assert not device.send("never dialed", word(1))
    assert not device.send(b"nobody", word(1))
    assert not edge.send(b"nobody", Data(1, HEADER), b"rows")
    assert (device.dropped, edge.dropped) == (3, 1)


def test_a_peer_that_comes_back_at_the_same_address_is_heard_again(opened: Open) -> None:
    edge, device = opened("tcp://127.0.0.1:0"), opened()
    address = edge.address
    device.dial("edge", address)
    assert hear(edge, lambda: device.send("edge", word(1)))
    edge.close(0)
    device.send("edge", word(2))
    again = opened(address)
    assert hear(again, lambda: device.send("edge", word(3)))


@pytest.mark.parametrize("listen", ["tcp://0.0.0.0:0", "tcp://*:0", "tcp://10.0.0.1:4700", "tcp://[::]:0"])
def test_without_keys_nothing_listens_beyond_this_computer(listen: str) -> None:
    with pytest.raises(SetupError, match="make keys with: rove keys new"):
        Wires(listen)


def test_without_keys_nobody_beyond_this_computer_is_dialed(opened: Open) -> None:
    with pytest.raises(SetupError, match="join with a token"):
        opened().dial("edge", "tcp://192.168.0.1:4700")


def test_an_address_in_use_says_so(opened: Open) -> None:
    with pytest.raises(SetupError, match=r"cannot listen on .* choose another"):
        opened(opened("tcp://127.0.0.1:0").address)


# Keys


def peer(keys: Keys) -> Peer:
    return Peer(node=NodeId("device"), key=keys.public)


def test_a_known_key_gets_in_and_is_told(opened: Open) -> None:
    ours, theirs = new_keys(), new_keys()
    edge, device = opened("tcp://127.0.0.1:0", ours), opened("", theirs)
    edge.allow([peer(theirs)])
    device.dial("edge", edge.address, ours.public)
    (event, *_) = hear(edge, lambda: device.send("edge", word(1)))
    assert isinstance(event, Arrived)
    assert event.key == theirs.public
    edge.send(event.conn, word(2))
    (answer,) = hear(device, lambda: None)
    assert answer == Arrived("edge", word(2), key=ours.public)


def test_an_unknown_key_gets_nothing_in_until_it_is_allowed(opened: Open) -> None:
    ours, theirs = new_keys(), new_keys()
    edge, device = opened("tcp://127.0.0.1:0", ours), opened("", theirs)
    edge.allow([peer(new_keys())])
    device.dial("edge", edge.address, ours.public)
    assert hear(edge, lambda: device.send("edge", word(1)), 1.5) == []
    assert edge.turned_away > 0
    edge.allow([peer(theirs)])
    assert hear(edge, lambda: device.send("edge", word(1)), 15)


def test_whoever_has_no_key_at_all_gets_nothing_in(opened: Open) -> None:
    edge, device = opened("tcp://127.0.0.1:0", new_keys()), opened()
    device.dial("edge", edge.address)
    assert hear(edge, lambda: device.send("edge", word(1)), 1) == []


def test_a_listener_without_the_expected_key_hears_nothing(opened: Open) -> None:
    ours, theirs = new_keys(), new_keys()
    edge, device = opened("tcp://127.0.0.1:0", ours), opened("", theirs)
    edge.allow([peer(theirs)])
    device.dial("edge", edge.address, new_keys().public)
    assert hear(edge, lambda: device.send("edge", word(1)), 1) == []


@pytest.mark.parametrize("named", [b"", b"a name of its own"])
def test_a_revoked_key_is_no_longer_heard_on_connections_it_has(opened: Open, named: bytes) -> None:
    ours, theirs, other = new_keys(), new_keys(), new_keys()
    edge = opened("tcp://127.0.0.1:0", ours)
    edge.allow([peer(theirs), peer(other)])
    context = zmq.Context()
    device = zeromq.dealer(context, edge.address, theirs, ours.public)
    if named:
        device.close(0)
        device = context.socket(zmq.DEALER)
        device.setsockopt(zmq.ROUTING_ID, named)
        device.setsockopt(zmq.CURVE_PUBLICKEY, theirs.public.encode())
        device.setsockopt(zmq.CURVE_SECRETKEY, theirs.secret.encode())
        device.setsockopt(zmq.CURVE_SERVERKEY, ours.public.encode())
        device.connect(edge.address)
    said = zeromq.encode(Goodbye(NodeId("device")))

    def speak() -> None:
        if device.poll(10, zmq.POLLOUT):
            device.send(said, zmq.NOBLOCK)

    assert hear(edge, speak)
    edge.allow([peer(other)])
    edge.receive(100)
    assert hear(edge, speak, 1) == []
    edge.allow([peer(theirs)])
    assert hear(edge, speak)
    context.destroy(linger=0)

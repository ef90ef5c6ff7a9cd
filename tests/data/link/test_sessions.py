"""When a session goes on, and when it begins anew: numbers of an earlier one are void."""

from __future__ import annotations

import pytest

from rove.model.messages import PROTOCOL, Ack, Hello, Welcome
from tests.data.link.test_gaps import FRAME_BYTES, met, offered
from tests.data.link.test_link import DEVICE, EDGE
from tests.lines import lines


@pytest.mark.parametrize(("another", "heard"), [(1, 0), (0, 1)])
def test_a_session_goes_on_only_if_both_sides_mean_the_same_one(another: int, heard: int) -> None:
    device, edge = met()
    hello = device.link.tick(10**9)[0].message  # type: ignore[union-attr]
    assert isinstance(hello, Hello)
    edge.link.receive(1, FRAME_BYTES, 1)
    (welcome, *_) = edge.link.heard(hello, b"device", 2)
    assert welcome.message.received == 1  # type: ignore[union-attr]
    strange = Hello(PROTOCOL, DEVICE, hello.start + another, hello.heard + heard, 0)
    (welcome, *_) = edge.link.heard(strange, b"device", 3)
    assert welcome.message.received == 0  # type: ignore[union-attr]


def test_a_dialler_notices_that_its_peer_has_forgotten_frames_that_it_had_acked() -> None:
    device, _ = met()
    offered(device, 3)
    device.link.heard(Ack(2, 10**6), "edge", 1)
    hello = device.link.tick(10**9)[0].message  # type: ignore[union-attr]
    assert isinstance(hello, Hello)
    welcome = Welcome(PROTOCOL, EDGE, hello.heard, hello.start, 0, 10**6)
    assert "to edge: Data 1: q o 2, 1 rows" in lines(device.link.heard(welcome, "edge", 10**9 + 1))


def test_a_link_that_took_frames_back_says_hello_as_another() -> None:
    device, _ = met()
    offered(device, 2)
    before = device.link._start
    assert len(device.link.take_back("q")) == 2
    hello = device.link.tick(10**9)[0].message  # type: ignore[union-attr]
    assert isinstance(hello, Hello)
    assert hello.start != before


def test_a_copy_is_dropped_when_its_route_is_left() -> None:
    device, _ = met()
    offered(device, 1)
    (entry,) = device.store
    device.link.offer(device.store.copy(entry), 2)
    assert device.link.take_back("q") == [entry]
    assert [*device.store] == [entry]


def test_frames_that_were_safe_in_an_earlier_session_are_not_safe_in_the_next() -> None:
    _, edge = met()
    for number in (1, 2, 3):
        edge.link.receive(number, FRAME_BYTES, 1)
    for number in (2, 3):
        edge.link.took(number, edge.link.sessions)
    edge.link.heard(Hello(PROTOCOL, DEVICE, 99), b"device", 2)
    edge.link.grant(10**6)
    for number in (1, 2):
        edge.link.receive(number, FRAME_BYTES, 3)
    edge.link.took(1, edge.link.sessions)
    (said,) = edge.link.flush(4)
    assert said.message.through == 1  # type: ignore[union-attr]


def test_frames_that_are_refused_one_by_one_cost_one_handshake() -> None:
    device, edge = met()
    offered(device, 20)
    said = [device.link.tick(10**6) for _ in range(20) if device.link.refused()]
    assert [*map(lines, said)] == [[f"to edge: Hello, start 1, has 0 frames of start {edge.link._start}"]]


def test_two_processes_of_one_name_take_the_session_from_each_other_once_in_a_heartbeat() -> None:
    device, edge = met()
    hellos = 0
    for now in range(0, 10 * device.link.beat_us, 1_000):
        device.link.refused()  # the other process has said hello
        for hello in device.link.tick(now):
            hellos += 1
            (welcome, *_) = edge.link.heard(hello.message, b"device", now)  # type: ignore[union-attr]
            device.link.heard(welcome.message, "edge", now)  # type: ignore[union-attr]
    assert hellos <= 10


def test_a_second_answer_sends_no_frame_again() -> None:
    device, edge = met()
    offered(device, 20)
    device.link.refused()
    (hello,) = device.link.tick(10**9)
    (welcome, *_) = edge.link.heard(hello.message, b"device", 1)  # type: ignore[union-attr]
    again = lines(device.link.heard(welcome.message, "edge", 2))  # type: ignore[union-attr]
    assert len([line for line in again if "Data" in line]) == 20
    again = lines(device.link.heard(welcome.message, "edge", 3))  # type: ignore[union-attr]
    assert not [line for line in again if "Data" in line]

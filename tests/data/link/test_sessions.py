"""When a session goes on, and when it begins anew: numbers of an earlier one are void."""

from __future__ import annotations

import pytest

from rove.data.link.link import SILENT_US
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


@pytest.mark.parametrize("dials", [True, False])
def test_a_frame_that_takes_longer_than_a_peer_may_be_silent_is_taken_and_acked_once_the_peer_is_heard(
    dials: bool,
) -> None:
    device, edge = met()
    device.link.grant(10**6)
    end, late = device if dials else edge, SILENT_US + 1
    said = end.link.tick(late)
    assert not end.link.up
    assert end.link.receive(1, FRAME_BYTES, late + 1) == (True, [])
    assert end.link.receive(1, FRAME_BYTES, late + 2) == (False, []), "once"
    assert end.link.receive(3, FRAME_BYTES, late + 2) == (False, []), "and in order"
    end.link.took(1, end.link.sessions)
    assert end.link.flush(late + 3) == [], "the peer may not hear us"
    (hello,) = said or device.link.tick(late)
    welcome = edge.link.heard(hello.message, b"device", late + 4)  # type: ignore[union-attr]
    acks = device.link.heard(welcome[0].message, "edge", late + 5) if dials else edge.link.flush(late + 5)  # type: ignore[union-attr]
    assert [each.message.through for each in acks] == [1]  # type: ignore[union-attr]
    end.link.validate()


@pytest.mark.parametrize("left", ["renewed", "refused", "dialled", "renewed and silent"])
def test_a_frame_of_a_session_that_was_left_is_not_taken_before_the_next_begins(left: str) -> None:
    device, _ = met()
    device.link.grant(10**6)
    offered(device, 1)
    if left.startswith("renewed"):
        device.link.take_back("q")
    if left.endswith("silent"):
        device.link.tick(SILENT_US + 1)
    if left == "refused":
        device.link.refused()
    if left == "dialled":
        device.link.tick(SILENT_US + 1)
        device.link.dial("edge")
    assert not device.link.up
    assert device.link.receive(1, FRAME_BYTES, SILENT_US + 2) == (False, [])

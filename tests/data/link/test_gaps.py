"""Frames and acks that get lost one by one: what is missing is asked for, and nothing beside a gap is taken."""

from __future__ import annotations

from rove.data.link.link import BEATS, RESEND_US, SILENT_US
from rove.model.batch import Header
from rove.model.ids import Origin
from rove.model.messages import Ack, Beat, Resend
from tests.data.link.test_link import DEVICE, EDGE, End
from tests.lines import lines

FRAME_BYTES = 200


def met() -> tuple[End, End]:
    """A device and an edge that have said hello, with credit for many frames."""
    device, edge = End(DEVICE, EDGE, "edge"), End(EDGE, DEVICE, b"device")
    (hello,) = device.link.tick(0)
    for said in edge.link.heard(hello.message, b"device", 0):  # type: ignore[union-attr]
        device.link.heard(said.message, "edge", 0)  # type: ignore[union-attr]
    edge.link.grant(10**6)
    for said in edge.link.flush(0):
        device.link.heard(said.message, "edge", 0)  # type: ignore[union-attr]
    return device, edge


def offered(device: End, count: int) -> None:
    for seq in range(count):
        header = Header(origin=Origin("o"), seq=seq, through=seq, rows=1, born=1, query="q")
        device.link.offer(device.store.put(header, bytes(50)), 0)


def test_a_frame_beside_a_gap_is_not_taken_and_the_missing_one_is_asked_for_once_in_a_while() -> None:
    _, edge = met()
    assert edge.link.receive(1, FRAME_BYTES, 1) == (True, [])
    fresh, said = edge.link.receive(3, FRAME_BYTES, 2)
    assert (fresh, lines(said)) == (False, ["to device: Resend after 1"])
    assert edge.link.receive(4, FRAME_BYTES, 3) == (False, []), "it has just been asked for"
    fresh, said = edge.link.receive(4, FRAME_BYTES, 2 + RESEND_US)
    assert (fresh, lines(said)) == (False, ["to device: Resend after 1"])
    for number in (2, 3):
        assert edge.link.receive(number, FRAME_BYTES, 4 + RESEND_US) == (True, [])
    edge.link.validate()


def test_the_last_frame_is_asked_for_when_a_beat_says_that_it_was_sent() -> None:
    device, edge = met()
    offered(device, 2)
    assert edge.link.receive(1, FRAME_BYTES, 1) == (True, [])
    assert lines(edge.link.heard(Beat(2, 0, 10**6), b"device", 2)) == ["to device: Resend after 1"]
    assert lines(device.link.heard(Resend(1), "edge", 3)) == ["to edge: Data 2: q o 1, 1 rows"]


def test_an_ack_that_was_lost_is_said_again_when_a_beat_does_not_know_of_it() -> None:
    device, edge = met()
    offered(device, 1)
    edge.link.receive(1, FRAME_BYTES, 1)
    edge.link.took(1, edge.link.sessions)
    (lost,) = edge.link.flush(2)
    assert isinstance(lost.message, Ack)  # type: ignore[union-attr]
    assert edge.link.flush(3) == []
    (beat,) = device.link.tick(SILENT_US // BEATS)
    edge.link.heard(beat.message, b"device", 4)  # type: ignore[union-attr]
    assert lines(edge.link.flush(5)) == ["to device: Ack 1"]
    device.link.heard(Ack(1, 10**6), "edge", 6)
    assert len(device.store) == 0


def test_an_ack_lets_go_of_what_it_covers_and_no_more() -> None:
    device, _ = met()
    offered(device, 3)
    device.link.heard(Ack(2, 10**6), "edge", 1)
    assert [entry.number for entry in device.link.entries()] == [3]
    assert len(device.store) == 1


def test_frames_are_acked_in_order_although_later_ones_are_safe_first() -> None:
    _, edge = met()
    for number in (1, 2, 3):
        edge.link.receive(number, FRAME_BYTES, 1)
    edge.link.took(3, edge.link.sessions)
    edge.link.took(2, edge.link.sessions)
    assert lines(edge.link.flush(2)) == []
    edge.link.took(1, edge.link.sessions - 1)  # of a session that is over
    assert lines(edge.link.flush(3)) == []
    edge.link.took(1, edge.link.sessions)
    assert lines(edge.link.flush(4)) == ["to device: Ack 3"]
    edge.link.validate()

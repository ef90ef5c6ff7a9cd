"""Room is promised once, little to the silent, and much to those who send."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rove.data.credit import PEERS_MIN, PROMISE_BYTES_MIN, SILENT_MIN, Credit
from rove.data.link import Link
from rove.data.store import Store
from rove.model.ids import NodeId
from rove.model.messages import PROTOCOL, Hello

LIMIT = 64_000_000
FRAME = 100_000
ROOM = LIMIT - LIMIT // 4  # that is promised


def links(count: int) -> dict[NodeId, Link]:
    """Peers that have said hello."""
    store, found = Store(LIMIT), {}
    for n in range(count):
        link = found[NodeId(f"d{n}")] = Link(NodeId("edge"), 1, NodeId(f"d{n}"), store)
        link.heard(Hello(PROTOCOL, link.peer, 1), link.peer.encode(), 0)
    return found


def send(link: Link, size: int = FRAME) -> bool:
    """A frame comes, if it may."""
    return link.receive(link._received + 1, size, 0)[0]


def drain(link: Link) -> int:
    """Bytes that a peer with a backlog sends on its promise."""
    sent = 0
    while send(link):
        sent += FRAME
    return sent


@given(st.integers(1, 40), st.data())
def test_room_is_never_promised_twice(count: int, data: st.DataObject) -> None:
    peers, credit, held = links(count), Credit(LIMIT), 0
    for _ in range(data.draw(st.integers(1, 30))):
        looked = {name: peers[name] for name in data.draw(st.lists(st.sampled_from(sorted(peers)), unique=True))}
        before = {name: link._granted for name, link in peers.items()}
        for link in looked.values():
            for _ in range(data.draw(st.integers(0, 20))):
                held += FRAME if send(link) else 0
        held = data.draw(st.integers(0, held))  # the rest has gone on
        credit.share(looked, LIMIT - held)
        assert all(link._granted >= before[name] for name, link in peers.items())
        promised = sum(link.outstanding for link in peers.values())
        assert promised + held <= ROOM + count * (PROMISE_BYTES_MIN + FRAME)


def test_a_peer_with_a_backlog_has_all_it_can_get_after_one_round_trip_however_many_are_silent() -> None:
    for count in (1, 5, 30):
        peers, credit = links(count), Credit(LIMIT)
        for name, link in peers.items():
            credit.share({name: link}, LIMIT)
        assert all(link.outstanding <= LIMIT // SILENT_MIN for link in peers.values())
        busy = peers[NodeId("d0")]
        drain(busy)
        credit.share({busy.peer: busy}, LIMIT)
        assert busy.outstanding == LIMIT // PEERS_MIN
        assert LIMIT // PEERS_MIN <= drain(busy) <= LIMIT // PEERS_MIN + FRAME


def test_those_who_send_at_a_time_get_equal_parts() -> None:
    peers, credit = links(20), Credit(LIMIT)
    credit.share(peers, LIMIT)
    for _ in range(3):
        for link in peers.values():
            drain(link)
        credit.share(peers, LIMIT)
    promises = [link.outstanding for link in peers.values()]
    assert max(promises) < 4 * min(promises)
    assert sum(promises) > ROOM / 2


def test_who_sends_little_keeps_little() -> None:
    peers, credit = links(2), Credit(LIMIT)
    slow = peers[NodeId("d0")]
    for _ in range(50):
        credit.share({slow.peer: slow}, LIMIT)
        assert LIMIT // SILENT_MIN // 2 < slow.outstanding <= LIMIT // SILENT_MIN
        assert send(slow)


def test_without_room_nobody_is_promised_any_and_all_are_when_there_is() -> None:
    peers, credit = links(3), Credit(LIMIT)
    credit.share(peers, LIMIT // 4)
    assert all(link.outstanding <= 1 for link in peers.values())
    credit.share({}, LIMIT)
    assert all(link.outstanding >= PROMISE_BYTES_MIN for link in peers.values())

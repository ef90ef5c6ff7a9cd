"""Invitations: tokens that let one node, or one process of `rove cloud`, join once.

Law: a token is a key pair with which a node may send one message: the public key that it will use from then on. Unknown
keys are always refused.
"""

from __future__ import annotations

import re

import msgspec

from rove.control.asks.requests import Enlist, Invite, Invited
from rove.model.errors import TopologyError
from rove.model.ids import NodeId, checked_name
from rove.model.messages import Peer

_KEY = re.compile(r"[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")  # the letters of Z85


class InviteRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An open invitation: the public key of its token, who may use it, and when it expires."""

    key: str
    node: NodeId
    kind: Invited
    expires_us: int


def check_key(key: str) -> None:
    """Refuse a text that is no public key. A key names a record, and is compared with those of connections."""
    if not _KEY.fullmatch(key):
        raise TopologyError("a public key has 40 characters, of those that 0MQ writes; make one with: rove keys new")


class Invitations:
    """Open invitations by key."""

    def __init__(self) -> None:
        self._open: dict[str, InviteRecord] = {}

    def invite(self, asked: Invite) -> InviteRecord:
        node = NodeId(checked_name(asked.node, "a node"))
        check_key(asked.key)
        record = InviteRecord(key=asked.key, node=node, kind=asked.kind, expires_us=asked.expires_us)
        self.keep(record)
        return record

    def keep(self, record: InviteRecord) -> None:
        self._open[record.key] = record

    def accept(self, asked: Enlist, key: str, wall: int) -> InviteRecord:
        """Use an invitation. `key` is the key that the connection has proven."""
        record = self._open.get(key)
        if record is None:
            raise TopologyError(
                "this token is unknown, was used already or has expired; ask for another: rove keys invite"
            )
        if wall > record.expires_us:
            raise TopologyError("this token has expired; ask for another: rove keys invite")
        if asked.node != record.node:
            raise TopologyError(f"this token is for `{record.node}`, not for `{asked.node}`")
        check_key(asked.key)
        del self._open[key]
        return record

    def expired(self, wall: int) -> list[InviteRecord]:
        """Forget the invitations that have expired, and return them. O(open invitations)."""
        gone = [record for record in self._open.values() if wall > record.expires_us]
        for record in gone:
            del self._open[record.key]
        return gone

    def kinds(self, node: NodeId) -> set[Invited]:
        """What a name is invited as. O(open invitations)."""
        return {record.kind for record in self._open.values() if record.node == node}

    def peers(self) -> list[Peer]:
        return [Peer(node=NodeId(f"invited {r.node}"), key=r.key) for r in self._open.values()]

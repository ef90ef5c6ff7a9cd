"""The processes of `rove cloud` that have a key.

Law: such a process is no node: it has no links, no fragments and no place in the topology. Its key lets it ask what
Spark should run and report progress, and nothing else.
"""

from __future__ import annotations

import msgspec

from rove.model.ids import NodeId
from rove.model.messages import Peer


class CloudRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A process of `rove cloud`: its name and its public key."""

    name: NodeId
    key: str


class Clouds:
    """The processes by name."""

    def __init__(self) -> None:
        self._by_name: dict[NodeId, CloudRecord] = {}

    def __contains__(self, name: NodeId) -> bool:
        return name in self._by_name

    def keep(self, record: CloudRecord) -> None:
        """Give a name to the holder of a key. An earlier holder loses it."""
        self._by_name[record.name] = record

    def revoke(self, name: NodeId) -> None:
        del self._by_name[name]

    def has_key(self, key: str) -> bool:
        """Whether a key is that of such a process. O(processes)."""
        return key != "" and any(record.key == key for record in self._by_name.values())

    def peers(self) -> list[Peer]:
        return [Peer(node=r.name, key=r.key) for r in self._by_name.values()]

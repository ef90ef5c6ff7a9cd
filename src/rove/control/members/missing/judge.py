"""Decides whether it is known who holds the batches of a query and origin.

Law: it is known if every node has reported that may hold batches of that origin. A node that has not reported since
the coordinator's start, or does not run its fragment, hides the batches of the makers below it and no others. A device
has nobody below it, so it hides its own alone, unless the query ends there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rove.control.deployment.query import Query
from rove.control.members.below import Below
from rove.control.members.membership import Membership
from rove.control.members.missing.missing import NEVER
from rove.model.ids import SOURCE, NodeId, Origin, QueryId


@dataclass(slots=True)
class _Heard:
    """What is known of the nodes of one query."""

    oldest_us: int  # the oldest of the last reports of its relays
    makes: set[Origin] = field(default_factory=set)
    relays: list[NodeId] = field(default_factory=list)  # that have not reported, or do not run their fragment
    devices: dict[NodeId, None] = field(default_factory=dict)  # the same
    makers: set[str] = field(default_factory=set)  # of operators on these devices
    end: bool = True  # whether the node where the query ends has reported


class Judge:
    """For one look at all lines, so that a query is judged once. O(fragments) for each query that is in doubt, and
    O(relays that are not heard) for each line of it."""

    def __init__(self, queries: Mapping[QueryId, Query], membership: Membership, below: Below, now: int) -> None:
        self._queries, self._membership, self._below, self._now = queries, membership, below, now
        self._heard: dict[QueryId, _Heard | None] = {}

    def __call__(self, query: QueryId, origin: Origin) -> int | None:
        """The moment up to which all nodes that may hold these batches have reported. It is `NEVER` if one of them does
        not run its fragment, or has not reported since the coordinator started. None if the query or the origin is
        over."""
        if query not in self._heard:
            self._heard[query] = self._all_heard(query)
        heard = self._heard[query]
        if heard is None or not self._lives(heard, origin):
            return None
        return NEVER if self._may_be_hidden(heard, origin) else heard.oldest_us

    def _all_heard(self, query: QueryId) -> _Heard | None:
        found = self._queries.get(query)
        if found is None or found.stopped or found.deployment is None:
            return None
        heard = _Heard(self._now)
        for node, fragment in found.fragments.items():
            heard.makes.update(fragment.makes.values())
            member = self._membership.members.get(node)
            device = member is not None and member.record.kind == "device"
            if member is None or member.conn is None or query not in member.running:
                heard.end &= node != found.deployment.root
                if device:
                    heard.devices[node] = None
                    heard.makers.update(origin.maker for origin in fragment.makes.values())
                else:
                    heard.relays.append(node)
            elif not device:  # a device holds its own batches only, and says of them in one report
                heard.oldest_us = min(heard.oldest_us, member.heard_us)
        return heard

    def _may_be_hidden(self, heard: _Heard, origin: Origin) -> bool:
        """Whether a node of which nothing is known may hold batches of an origin."""
        maker = origin.maker
        if not heard.end or maker in heard.makers or NodeId(origin.node) in heard.devices:
            return True
        if any(self._below.has(relay, maker) for relay in heard.relays):
            return True
        return not origin.node and any(self._below.has(device, maker) for device in heard.devices)

    def _lives(self, heard: _Heard, origin: Origin) -> bool:
        if origin.stage != SOURCE:
            return origin in heard.makes
        member = self._membership.members.get(NodeId(origin.node))
        return member is not None and any(source.origin == origin for source in member.record.sources)

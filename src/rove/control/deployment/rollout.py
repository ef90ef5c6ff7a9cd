"""The rollout of a deployment: which nodes were told their part, which run it, and which may leave.

Law: a node is told its part when all nodes above it on its route are ready. A node is ready if it runs the newest
version of its part, or if it only passes rows on and does not know the query yet: such a relay keeps batches until it
knows the query. So is a relay that was told that the sources hold (`holistic`). So a route of relays is told all at
once. A node above that can be reached must also know that it may take the batches of this node (`below`), or the
batches of others would wait behind them. A node that lost its part leaves when all nodes that sent to it send
elsewhere. Until then it may hold rows that the senders would forget if it acknowledged and dropped them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from enum import Enum

from rove.control.deployment.change_set import Difference
from rove.control.deployment.deployment import Deployment
from rove.control.deployment.part import GONE
from rove.control.members.below import Below
from rove.control.members.membership import Member
from rove.model.errors import must
from rove.model.ids import NodeId, QueryId, Version
from rove.model.lifecycle import Table, advanced, longer
from rove.model.messages import Fragment

TELL_AGAIN_US = 900_000


class PartState(Enum):
    """The state of one node's part of one query."""

    WAITS = "waits"  # the node was not told its part yet
    TOLD = "told"  # the node was told, and has not reported that it runs the part
    RUNS = "runs"  # the node reported that it runs the newest version
    LEAVES = "leaves"  # the node lost its part, and has not let go yet


class PartEvent(Enum):
    """An event of one node's part."""

    CHANGE = "change"  # the node gets a part, or a new version of it
    TELL = "tell"
    RUN = "run"  # the node reports that it runs the newest version
    FORGET = "forget"  # the node reports an older version than before, or none
    DROP = "drop"  # the node loses its part


_S, _E = PartState, PartEvent
PARTS: Table[PartState, PartEvent] = {
    _S.WAITS: {_E.CHANGE: _S.WAITS, _E.TELL: _S.TOLD, _E.RUN: _S.RUNS, _E.FORGET: _S.WAITS, _E.DROP: _S.LEAVES},
    _S.TOLD: {_E.CHANGE: _S.WAITS, _E.TELL: _S.TOLD, _E.RUN: _S.RUNS, _E.FORGET: _S.WAITS, _E.DROP: _S.LEAVES},
    _S.RUNS: {_E.CHANGE: _S.WAITS, _E.RUN: _S.RUNS, _E.FORGET: _S.WAITS, _E.DROP: _S.LEAVES},
    _S.LEAVES: {_E.CHANGE: _S.WAITS},
}


class Rollout:
    """The states of one query's nodes. `pending` holds the nodes that do not run their part yet."""

    def __init__(
        self,
        query: QueryId,
        members: Mapping[NodeId, Member],
        below: Below,
        works: Callable[[NodeId, NodeId], bool],
    ) -> None:
        self._query, self._members, self._below, self._works = query, members, below, works
        self.states: dict[NodeId, PartState] = {}
        self.pending: dict[NodeId, int] = {}  # since when
        self.untold: set[NodeId] = set()  # of these, the nodes that were not told their newest part
        self._stories: dict[NodeId, tuple[str, ...]] = {}  # the last steps that led to the state of each node
        self._runs: dict[NodeId, Version] = {}  # the versions that nodes reported, also of parts that they lost
        self._held: Version | None = None  # the last version that keeps what it has
        self._told: dict[NodeId, tuple[int, int]] = {}  # when a node was last told, and how often
        self._behind: dict[
            NodeId, dict[NodeId, None]
        ] = {}  # for each node that is not ready, the nodes that wait for it

    # Events

    def restored(self, nodes: Iterable[NodeId], fragments: Container[NodeId], now: int) -> None:
        """A query was restored from the records of these nodes. No node has reported yet. Those without a fragment had
        lost their part, and have not let go."""
        for node in nodes:
            self._step(node, PartEvent.CHANGE if node in fragments else PartEvent.DROP, now)

    def changed(self, change: Difference, now: int) -> None:
        """Nodes got new parts, or lost theirs. O(touched nodes)."""
        for node, fragment in change.fragments.items():
            self._step(node, PartEvent.CHANGE, now)
            self._told.pop(node, None)
            self._held = fragment.version if fragment.holds else self._held
        for node in change.undeploy:
            self._step(node, PartEvent.DROP, now)

    def heard(self, node: NodeId, runs: Version | None, fragment: Fragment | None, now: int) -> list[NodeId]:
        """A node reports the version that it runs, or that it runs none. Returns the nodes to look at because of it.
        O(nodes that wait for it)."""
        if runs is None:
            self._runs.pop(node, None)
        else:
            self._runs[node] = runs
        if fragment is None:
            if runs is None and self._has_let_go(node):
                self.states.pop(node, None)  # the node has let go
                self._stories.pop(node, None)
                self._told.pop(node, None)
            return []
        if runs is not None and runs >= fragment.version:
            self._step(node, PartEvent.RUN, now)
            return [node, *self._behind.pop(node, {})]
        if self.states.get(node) is PartState.RUNS:
            self._step(node, PartEvent.FORGET, now)
        return [node]

    def look(self, node: NodeId, deployment: Deployment, now: int) -> bool:
        """Whether to tell a node its part now: all nodes above it are ready, and it was not told a moment ago.
        O(route)."""
        fragment = deployment.fragments.get(node)
        if fragment is None or node not in self.pending:
            return False
        blocker = None if fragment.holds else self._blocker(node, fragment, deployment.fragments)
        blocker = blocker or self._on_its_way(node, fragment, deployment)
        if blocker is not None:
            self._behind.setdefault(blocker, {})[node] = None
            return False
        last, often = self._told.get(node, (None, 0))
        if last is not None and now - last < TELL_AGAIN_US:
            return False
        self._step(node, PartEvent.TELL, now)
        self._told[node] = (now, often + 1)
        return True

    def told_before(self, node: NodeId) -> bool:
        """Whether the node was told the newest version of its part before."""
        return self._told.get(node, (0, 0))[1] > 1

    def unhear(self, node: NodeId, now: int) -> None:
        """A node is gone, or has restarted: its earlier reports no longer count."""
        self._runs.pop(node, None)
        self._told.pop(node, None)
        if node in self.states and self.states[node] is PartState.RUNS:
            self._step(node, PartEvent.FORGET, now)

    # Reading

    def runs(self, node: NodeId) -> Version | None:
        """The version that a node reported."""
        return self._runs.get(node)

    def may_leave(self, node: NodeId, deployment: Deployment) -> bool:
        """Whether a node without a part may leave: no other node still sends to it. O(nodes that sent to it)."""
        return self._sender(node, deployment) is None

    def _sender(self, node: NodeId, deployment: Deployment) -> NodeId | None:
        """A node that still sends to another one, and was told to send elsewhere. O(nodes that sent to it)."""
        for sender, version in list(deployment.leaving(node).items()):
            runs = self._runs.get(sender)
            gone = runs is None and self._has_let_go(sender)
            if sender in self._members and (not gone if version == GONE else runs is None or runs < version):
                return sender
            deployment.left(node, sender)
        return None

    def _has_let_go(self, node: NodeId) -> bool:
        """Whether a node that runs no part has nothing of the query on its disk either, and knew, when it reported, the
        last part that it was told."""
        member = self._members.get(node)
        return member is None or (self._query not in member.unknown and member.orders.knew(self._query))

    def _on_its_way(self, node: NodeId, fragment: Fragment, deployment: Deployment) -> NodeId | None:
        """The node that a state waits for before it leaves over a route of its own: a node on this route that does not
        know the route yet, or one that still sends its rows to the old node, where they do not pass the new one.
        O(route + nodes that sent here)."""
        led = [state for state in fragment.sends.values() if state in fragment.leads]
        for state in led:
            at: NodeId | None = fragment.leads[state]
            while at is not None:
                found, runs = deployment.fragments.get(at), self._runs.get(at)
                if found is None or runs is None or runs < found.version:
                    return at
                at = found.leads.get(state)
        return self._sender(node, deployment) if led else None

    def _blocker(self, told: NodeId, part: Fragment, fragments: Mapping[NodeId, Fragment]) -> NodeId | None:
        """The first node above this one that is not ready; None if all are. O(route)."""
        makers = (told, *(origin.maker for origin in part.makes.values() if origin.node != told))
        before, node = told, part.next
        while node is not None:
            fragment, runs = fragments.get(node), self._runs.get(node)
            if fragment is None or node not in self._members:
                return node
            if self._works(before, node) and not all(self._below.is_heard(node, maker) for maker in makers):
                return node
            passes_on = not (fragment.makes or fragment.waits or fragment.sinks)
            keeps = passes_on and runs in (None, self._held)
            if not keeps and (runs is None or runs < fragment.version):
                return node
            before, node = node, fragment.next
        return None

    def _step(self, node: NodeId, event: PartEvent, now: int) -> None:
        before = self.states.get(node, PartState.WAITS)
        story = self._stories.get(node) or longer((), None, before)
        after = self.states[node] = advanced(PARTS, before, event, f"the part of `{node}`", story)
        self._stories[node] = longer(story, event, after)
        if after in (PartState.WAITS, PartState.TOLD):
            self.pending.setdefault(node, now)
        else:
            self.pending.pop(node, None)
        if after is PartState.WAITS:
            self.untold.add(node)
        else:
            self.untold.discard(node)

    def validate(self, fragments: Mapping[NodeId, Fragment]) -> None:
        """Raise if the states contradict the parts, the reports, or the tables that follow from them. A stopped query
        has no parts; its nodes keep their last state until they let go. O(nodes)."""
        for node, fragment in fragments.items():
            runs, state = self._runs.get(node), self.states.get(node)
            newest = runs is not None and runs >= fragment.version
            must(state not in (None, PartState.LEAVES), "a node with a part has a state for it", node, state)
            must((state is PartState.RUNS) == newest, "a part runs if its node says so", node, fragment.version, runs)
        if fragments:
            stray = [n for n, s in self.states.items() if n not in fragments and s is not PartState.LEAVES]
            must(not stray, "a node without a part leaves", stray[:3])
        waits = {node for node, state in self.states.items() if state is PartState.WAITS}
        told = {node for node, state in self.states.items() if state is PartState.TOLD}
        must(self.pending.keys() == waits | told, "the nodes that do not run their part are pending", self.pending)
        must(self.untold == waits, "the nodes that were not told their part are untold", self.untold)
        must(self._stories.keys() == self.states.keys(), "a state has a story")

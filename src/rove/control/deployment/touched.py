"""What events have touched in one query, whether it can stay as it is, and why a query cannot be placed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.query import Query
from rove.control.deployment.reroute import has_better
from rove.control.members.membership import Membership
from rove.control.topology.topology import Topology
from rove.model.ids import NodeId, Origin, Stage
from rove.model.messages import Begin

NAMED_MAX = 5  # nodes of a cause that are named


@dataclass(slots=True)
class Touched:
    """What to look at in one query."""

    nodes: dict[NodeId, None] = field(default_factory=dict)  # nodes whose sources or links have changed
    relays: dict[NodeId, None] = field(default_factory=dict)  # nodes whose links have changed: look at all below them
    restarted: dict[NodeId, None] = field(default_factory=dict)
    absent: dict[NodeId, bool] = field(default_factory=dict)  # whether a node is absent now, if that has changed
    lacking: dict[NodeId, None] = field(default_factory=dict)  # nodes that lack a function that was placed there
    arrived: dict[Origin, None] = field(default_factory=dict)  # states that have moved and are complete
    drained: dict[NodeId, None] = field(default_factory=dict)  # nodes that are being drained
    dead: dict[NodeId, None] = field(default_factory=dict)  # nodes that count as dead
    released: dict[tuple[NodeId, Origin], Begin] = field(default_factory=dict)  # origins that nodes have let go
    retry: bool = False  # look at all sources without a place or with a broken route

    @property
    def nodes_only(self) -> bool:
        """Whether nothing but sources and links of nodes has changed."""
        others = (self.relays, self.restarted, self.absent, self.lacking, self.arrived, self.drained, self.dead)
        return not (self.retry or self.released) and not any(others)

    def to_look_at(self, query: Query) -> dict[NodeId, None]:
        """The nodes to look at. O(touched nodes, and nodes below touched relays)."""
        nodes, deployment = dict(self.nodes), query.deployment
        for relay in self.relays:
            nodes |= dict.fromkeys(() if deployment is None else deployment.source_nodes(relay))
        if self.retry or self.arrived:
            nodes |= dict.fromkeys((*query.cut, *(each.node for each in query.unplaced.values())))
        return nodes

    def causes(self) -> tuple[str, ...]:
        """What has happened, in words. Of many nodes the first are named."""
        words = (
            (self.nodes, "sources or links of {} changed"),
            (self.relays, "links of {} changed"),
            (self.restarted, "{} restarted"),
            ([node for node, absent in self.absent.items() if absent], "{} stayed away for too long"),
            ([node for node, absent in self.absent.items() if not absent], "{} is back"),
            (self.lacking, "{} lacks a function"),
            (self.drained, "{} is drained, or takes part again"),
            (self.dead, "{} counts as dead, and its operators start elsewhere"),
            ([state.node for state in self.arrived], "the state of {} has moved"),
            (dict.fromkeys(node for node, _ in self.released), "{} has let devices go that had left"),
        )
        found = [text.format(_names(list(nodes))) for nodes, text in words if nodes]
        return (*found, "there is more room, or there are more routes") if self.retry else tuple(found)

    def with_other(self, other: Touched) -> Touched:
        """Both together. Where both name a node, the other's value is used."""
        pairs = {each.name: (getattr(self, each.name), getattr(other, each.name)) for each in fields(self)}
        return Touched(**{name: mine | theirs for name, (mine, theirs) in pairs.items()})


def _names(nodes: list[str]) -> str:
    more = len(nodes) - NAMED_MAX
    return ", ".join(nodes[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def stays(query: Query, deployment: Deployment, touched: Touched, membership: Membership, now: int) -> bool:
    """Whether a query can stay as it is: the sources of touched nodes have a place, and no better route. Then only what
    is known of broken routes changes. O(routes of touched nodes)."""
    if not touched.nodes_only or query.unplaced or query.drained or query.dead or query.record.replication > 1:
        return False
    if not all(_is_served(query, deployment, node, membership) for node in touched.nodes):
        return False
    for node in touched.nodes:
        note_cut(query, deployment, node, membership.topology, now)
    return True


def _is_served(query: Query, deployment: Deployment, node: NodeId, membership: Membership) -> bool:
    here, gone = {origin: stage for stage, origin in deployment.placed(node)}, membership.ended.gone
    if not here or node not in membership.members or any(origin in gone for origin in here):
        return False
    return here == wanted(query, node, membership) and not has_better(deployment, node, membership.topology)


def wanted(query: Query, node: NodeId, membership: Membership) -> dict[Origin, Stage]:
    """The sources of a node that a query reads."""
    member = membership.members.get(node)
    sources = () if member is None else member.record.sources
    return {s.origin: query.streams[s.stream] for s in sources if query.columns.get(s.stream) == s.columns}


def note_cut(query: Query, deployment: Deployment, node: NodeId, topology: Topology, now: int) -> None:
    """Note since when the route of a node with sources is broken, if it is. O(route)."""
    if deployment.placed(node) and topology.broken_on(deployment.tree.route(node)):
        query.cut.setdefault(node, now)
    else:
        query.cut.pop(node, None)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The reason why a query cannot be placed now."""

    reason: str


def no_sources(streams: Iterable[str]) -> str:
    names = ", ".join(f"`{stream}`" for stream in streams)
    return f"waits for sources of {names}; start a device that has one"


def no_route(node: NodeId, end: NodeId) -> str:
    return f"`{node}` has no route to `{end}`; start the nodes between them, or give `{node}` another --parent"

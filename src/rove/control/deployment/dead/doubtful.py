"""Batches that a dead node may have taken, and that its senders send elsewhere.

Law: a sender that has not heard the ack of a batch sends it to the new operators. The dead node may have counted it
before, and said so: then the new operators let it in without its rows. The batch may also be on the disk of the dead
node: if that comes back, its operators let the batch in without its rows, because it is with the new ones. The first
such batch is the first that its sender keeps, or the root (`shares`), by their last reports.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.part import Taken
from rove.control.members.membership import Membership
from rove.model.errors import BadName
from rove.model.foreign.checks import SEQ_MAX
from rove.model.ids import NodeId, Origin, read_taker
from rove.model.spans import Spans, both, union

NOBODY = NodeId("")


def note(deployment: Deployment, node: NodeId, senders: Iterable[NodeId], membership: Membership) -> None:
    """A node counts as dead, and these nodes send elsewhere what it has not acked. O(counts of the node)."""
    query, parts = deployment.terms.query, deployment.tree.parts
    found = {sender: list[Taken]() for sender in senders if sender in parts}
    cut: dict[tuple[str, Origin], Spans] = {}
    for taker, origin, spans in membership.ended.counted(node, query):
        sender = NodeId(origin.node)
        first = _first_kept(deployment, membership, origin) if sender in found and _is_operator(taker) else None
        if first is None:
            continue
        cut[taker, origin] = again = (first, SEQ_MAX)
        if doubtful := both(spans, again):
            found[sender].append(Taken(taker, origin, doubtful, node))
    for sender, taken in found.items():
        _close(deployment, sender, membership)
        if taken:
            old = (each for each in parts[sender].taken if each.origin not in membership.ended.gone)
            deployment.put({sender: replace(parts[sender], taken=(*old, *taken))})
            deployment.heard_above(sender)
    if cut and node in parts:
        for each in parts[node].taken:
            if (key := (each.taker, each.origin)) in cut and not each.by:
                cut[key] = union((cut[key], each.spans))
        old = (each for each in parts[node].taken if each.origin not in membership.ended.gone)
        kept = (each for each in old if each.by or (each.taker, each.origin) not in cut)
        news = (Taken(taker, origin, spans, NOBODY) for (taker, origin), spans in cut.items())
        deployment.put({node: replace(parts[node], taken=(*kept, *news))})


def _is_operator(taker: str) -> bool:
    """Whether an operator has taken batches. What nodes report may be no taker at all."""
    try:
        return read_taker(taker).of.isdecimal()
    except BadName:
        return False


def _close(deployment: Deployment, sender: NodeId, membership: Membership) -> None:
    """A sender has another route. If that leads over a node that was dead, batches that the sender still keeps come
    there, and are not elsewhere. O(route)."""
    for at in list(deployment.tree.route(sender)):
        part = deployment.tree.parts[at]
        mine = [each for each in part.taken if not each.by and each.origin.node == sender]
        if mine and any(host == sender for _, host in deployment.meetings.read_by(at)):
            closed = (_closed(deployment, membership, each) for each in mine)
            kept = (*(each for each in part.taken if each not in mine), *(each for each in closed if each.spans))
            deployment.put({at: replace(part, taken=kept)})


def _closed(deployment: Deployment, membership: Membership, taken: Taken) -> Taken:
    first = _first_kept(deployment, membership, taken.origin)
    return replace(taken, spans=both(taken.spans, (0, first)) if first else ())


def _first_kept(deployment: Deployment, membership: Membership, origin: Origin) -> int | None:
    """The first batch of an origin that its maker keeps, or the root; None if they keep none, or that is not known.
    Batches in windows there may be with the dead node as well, so nothing is known then."""
    line = (deployment.terms.query, origin)
    members = (membership.members.get(node) for node in (NodeId(origin.node), deployment.root))
    tallies = [tally for member in members if member is not None and (tally := member.tallies.get(line)) is not None]
    if any(tally.open for tally in tallies):
        return None
    return min((tally.held[0] for tally in tallies if tally.held), default=None)

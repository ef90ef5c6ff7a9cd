"""The laws of all queries together: the indexes of `Deployments` follow from the queries.

Law: each index is worked out again, from the queries alone, and compared whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rove.model.errors import must
from rove.model.ids import NodeId, QueryId

if TYPE_CHECKING:
    from rove.control.deployment.deployments import Deployments
    from rove.control.deployment.query import Query
    from rove.control.members.membership import Member

_Index = Mapping[NodeId, Mapping[QueryId, None]]


def check_indexes(
    deployments: Deployments,
    members: Mapping[NodeId, Member],
    of_stream: Mapping[str, Mapping[QueryId, None]],
    unsettled: Mapping[QueryId, None],
    whole: bool,
) -> None:
    """Raise if a query contradicts itself, or an index the queries. O(nodes of all queries)."""
    for query in deployments.queries.values():
        query.validate(whole)
    live = {id: query for id, query in deployments.queries.items() if not query.stopped}
    _check_streams(live, of_stream)
    _check_nodes(deployments, live, members)
    wrong = unsettled.keys() ^ {id for id, query in live.items() if query.unsettled}
    must(not wrong, "the queries that more nodes or room may help are in the index", sorted(wrong))
    absent = {(id, node) for id, query in live.items() if query.deployment for node in query.deployment.absent}
    wrong_nodes = sorted(deployments.absent.keys() ^ absent)
    must(not wrong_nodes, "the nodes that queries do not wait for are in the index", wrong_nodes[:3])
    if whole:
        _check_load(deployments, live)


def _check_load(deployments: Deployments, live: Mapping[QueryId, Query]) -> None:
    taken = Counter[NodeId]()
    for query in live.values():
        placement = query.placement()
        taken.update({} if placement is None else placement.slots)
    must(taken == deployments.load.slots, "the slots that queries take are the load", taken, deployments.load.slots)


def _check_streams(live: Mapping[QueryId, Query], of_stream: Mapping[str, Mapping[QueryId, None]]) -> None:
    expected: dict[str, set[QueryId]] = {}
    for id, query in live.items():
        for stream in query.streams:
            expected.setdefault(stream, set()).add(id)
    found = {stream: set(ids) for stream, ids in of_stream.items() if ids}
    must(found == expected, "the queries of a stream are in the index", found, expected)


def _check_nodes(deployments: Deployments, live: Mapping[QueryId, Query], members: Mapping[NodeId, Member]) -> None:
    of_node: _Index = deployments.of_node
    for id, query in live.items():
        for node in query.rollout.states:
            must(id in of_node.get(node, ()), "a node with a part, or that had one, is in the index", id, node)
        for node in query.rollout.pending:
            must(id in deployments.open.get(node, ()), "a node that has to be told is in the index", id, node)
    for node, ids in of_node.items():
        for id in ids:
            has = id in deployments.queries and node in deployments.queries[id].rollout.states
            must(has, "only nodes with a state are in the index", id, node)
    for node, ids in deployments.open.items():
        for id in ids:
            found = _is_open(deployments.queries.get(id), members.get(node), id, node)
            must(found, "a node that runs what it should is not open", id, node)


def _is_open(query: Query | None, member: Member | None, id: QueryId, node: NodeId) -> bool:
    """Whether a node may have to be told something of a query: it does not run its part, or may run what it lost."""
    if query is not None and not query.stopped and node in query.fragments:
        return node in query.rollout.pending
    reports = member is None or id in member.running or id in member.unknown
    return reports or (query is not None and node in query.rollout.states)

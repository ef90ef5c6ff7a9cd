"""Each law of the coordinator is looked at: a table that is corrupted by hand is seen, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from msgspec.structs import replace

from rove.control.deployment.deployments import Deployments
from rove.control.deployment.query import Query, QueryEvent, QueryState
from rove.control.deployment.rollout import PartEvent, PartState
from rove.model.errors import BrokenInvariant
from rove.model.ids import NodeId, QueryId, Version
from rove.model.lifecycle import IllegalStep
from tests.control.desk import Desk

Q, EDGE, DEVICE, STRANGER = QueryId("q"), NodeId("edge"), NodeId("d"), NodeId("stranger")


def running() -> Desk:
    """A query that runs on a device, an edge and a gateway."""
    desk = Desk()
    desk.report("gateway", "gateway")
    desk.report("edge", "edge", "gateway")
    desk.report("d", "device", "edge", origins=("s/d",))
    assert not desk.submit().trouble
    for _ in range(3):
        for node, kind, parents in (("gateway", "gateway", ()), ("edge", "edge", ("gateway",))):
            desk.report(node, kind, *parents)  # type: ignore[arg-type]
        desk.report("d", "device", "edge", origins=("s/d",))
    assert desk.machine.queries[Q].state is QueryState.RUNNING
    return desk


def _waiting(_: Deployments, query: Query) -> None:
    query.machine.state = QueryState.WAITING


def _deploying(_: Deployments, query: Query) -> None:
    query.machine.state = QueryState.DEPLOYING


def _stopped(_: Deployments, query: Query) -> None:
    query.machine.state = QueryState.STOPPED


def _stopped_record(_: Deployments, query: Query) -> None:
    query.record = replace(query.record, stopped=True)


def _no_gateway(_: Deployments, query: Query) -> None:
    query.record = replace(query.record, gateway=None)


def _untold(_: Deployments, query: Query) -> None:
    query.rollout.untold.add(EDGE)


def _pending(_: Deployments, query: Query) -> None:
    query.rollout.pending[EDGE] = 0


def _told(_: Deployments, query: Query) -> None:
    query.rollout.states[EDGE] = PartState.TOLD


def _without_part(_: Deployments, query: Query) -> None:
    query.rollout.states[STRANGER] = PartState.RUNS


def _without_state(_: Deployments, query: Query) -> None:
    del query.rollout.states[EDGE]


def _older(_: Deployments, query: Query) -> None:
    query.rollout._runs[EDGE] = Version(0)


def _of_node(deployments: Deployments, _: Query) -> None:
    deployments.of_node[STRANGER] = {Q: None}


def _of_node_unknown(deployments: Deployments, _: Query) -> None:
    deployments.of_node[EDGE][QueryId("p")] = None


def _of_node_lacks(deployments: Deployments, _: Query) -> None:
    del deployments.of_node[EDGE][Q]


def _of_stream(deployments: Deployments, _: Query) -> None:
    deployments._of_stream.clear()


def _of_stream_more(deployments: Deployments, _: Query) -> None:
    deployments._of_stream["t"] = {Q: None}


def _absent(deployments: Deployments, _: Query) -> None:
    deployments.absent[QueryId("p"), EDGE] = None


def _absent_here(deployments: Deployments, _: Query) -> None:
    deployments.absent[Q, DEVICE] = None


def _unsettled(deployments: Deployments, _: Query) -> None:
    deployments._unsettled[Q] = None


def _settled(_: Deployments, query: Query) -> None:
    query.cut[DEVICE] = 0


def _open(deployments: Deployments, _: Query) -> None:
    deployments.open.setdefault(EDGE, {})[Q] = None


def _open_unknown(deployments: Deployments, _: Query) -> None:
    deployments.open.setdefault(EDGE, {})[QueryId("p")] = None


def _load(deployments: Deployments, _: Query) -> None:
    deployments.load.slots[EDGE] = 7


def _fragments(_: Deployments, query: Query) -> None:
    assert query.deployment is not None
    query.deployment.fragments[EDGE] = replace(query.deployment.fragments[EDGE], next=STRANGER)


CORRUPTIONS = [
    *(_waiting, _deploying, _stopped, _stopped_record, _no_gateway, _untold, _pending, _told, _without_part),
    *(_without_state, _older, _of_node, _of_node_unknown, _of_node_lacks, _of_stream, _of_stream_more, _absent),
    *(_absent_here, _unsettled, _settled, _open, _open_unknown, _load, _fragments),
]


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda each: each.__name__.strip("_"))
def test_a_table_that_is_corrupted_is_seen(corrupt: Callable[[Deployments, Query], None]) -> None:
    machine = deepcopy(running().machine)  # machines that a test has made are valid when it ends
    machine.validate()
    corrupt(machine.deployments, machine.queries[Q])
    with pytest.raises(BrokenInvariant):
        machine.validate()


def test_what_costs_most_is_left_out_if_it_is_not_asked_for() -> None:
    machine = deepcopy(running().machine)
    for corrupt in (_load, _fragments):
        corrupt(machine.deployments, machine.queries[Q])
    machine.deployments.validate(whole=False)


def test_a_step_of_a_query_that_cannot_happen_says_what_led_there() -> None:
    query = running().machine.queries[Q]
    with pytest.raises(IllegalStep) as raised:
        query.step(QueryEvent.COMPLETE)
    assert str(raised.value) == (
        "query `q` is `running`, where `complete` cannot happen; so far: "
        "waiting ─► change: deploying ─► complete: running"
    )


def test_a_step_of_a_part_that_cannot_happen_says_what_led_there() -> None:
    rollout = running().machine.queries[Q].rollout
    with pytest.raises(IllegalStep) as raised:
        rollout._step(EDGE, PartEvent.TELL, 0)
    assert str(raised.value) == (
        "the part of `edge` is `runs`, where `tell` cannot happen; so far: "
        "waits ─► change: waits ─► tell: told ─► run: runs"
    )


def test_a_stopped_query_that_is_restored_is_in_no_index_of_streams() -> None:
    desk = running()
    desk.machine.stop(desk.machine.queries[Q])
    desk.machine.validate()
    restored = Deployments(desk.machine.membership, desk.machine.below)
    query = restored.new(desk.machine.queries[Q].record, desk.machine.queries[Q].plan)
    restored.restore(query, (), Version(0))
    restored.validate()
    assert restored._of_stream == {}

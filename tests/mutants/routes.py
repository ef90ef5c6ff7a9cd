"""Bugs of routes: placement beside what runs, rerouting, alternatives, rollout."""

from __future__ import annotations

from rove.cli.mutants import Mutant

ROUTES = (
    Mutant(
        "a change is said to be told before all its nodes were",
        "control/deployment/rollout.py",
        "        if after is PartState.WAITS:\n            self.untold.add(node)\n        else:\n            self.untold.discard(node)\n",
        "",
        test="tests/control/deployment/test_history.py::test_a_change_says_why_it_came_whom_it_touched_and_how_long_it_took",
    ),
    Mutant(
        "a report that was made before some orders came is taken for an answer to them",
        "control/order.py",
        "return self.told.get(query, 0) <= (self.obeyed if self.obeyed <= self.sent else 0)",
        "return True",
        test="tests/control/test_orders.py::test_a_node_that_does_not_know_its_last_orders_has_not_let_go",
    ),
    Mutant(
        "what a node obeyed of an earlier coordinator counts",
        "control/order.py",
        "return self.told.get(query, 0) <= (self.obeyed if self.obeyed <= self.sent else 0)",
        "return self.told.get(query, 0) <= self.obeyed",
        test="tests/control/test_orders.py::test_numbers_of_an_earlier_coordinator_do_not_count",
    ),
    Mutant(
        "a sender without a part counts as gone while its orders are on their way",
        "control/deployment/rollout.py",
        "gone = runs is None and self._has_let_go(sender)",
        "gone = runs is None",
        test="tests/control/test_orders.py::test_a_sender_that_does_not_know_its_last_orders_may_still_send",
    ),
    Mutant(
        "a node that opens the folders of a query does not say so",
        "data/worker.py",
        "unknown=tuple(dict.fromkeys((*self.parking.queries(), *self.opening(), *(QueryId(h.query) for h in left)))),",
        "unknown=tuple(dict.fromkeys((*self.parking.queries(), *(QueryId(h.query) for h in left)))),",
        test="tests/data/fragment/test_opening.py::test_a_node_reports_the_queries_whose_folders_it_opens",
    ),
    Mutant(
        "a node leaves while somebody still sends to it",
        "control/deployment/rollout.py",
        "not gone if version == GONE else runs is None or runs < version",
        "not gone if version == GONE else runs is None",
        test="tests/control/test_restarts.py::test_a_node_leaves_when_its_senders_have_said_that_they_send_elsewhere",
    ),
    Mutant(
        "orders that were lost are not repeated",
        "control/deployment/rollout.py",
        "if last is not None and now - last < TELL_AGAIN_US:",
        "if last is not None:",
        seed=2,
    ),
    Mutant(
        "an older version that a node reports counts as the newest",
        "control/deployment/rollout.py",
        "if runs is not None and runs >= fragment.version:",
        "if runs is not None:",
        test="tests/control/test_restarts.py::test_a_node_leaves_when_its_senders_have_said_that_they_send_elsewhere",
    ),
    Mutant(
        "a device moves although an operator holds its state elsewhere",
        "control/deployment/reroute.py",
        "            stuck = deployment.meetings.disturbed(deployment.journal, position)\n",
        "            stuck = []\n",
        test="tests/control/deployment/test_reroute.py::test_whatever_breaks_nobody_passes_by_what_remembers_and_nobody_else_is_disturbed",
    ),
    Mutant(
        "an operator begins where rows of a new source may wait that have not passed it",
        "control/deployment/reroute.py",
        "            if host == source_node and deployment.hosts(reads, host) and not deployment.starts.get(host):\n",
        "            if False:\n",
        test="tests/control/deployment/test_reroute.py::test_an_operator_that_takes_batches_in_order_is_not_put_where_rows_of_a_new_source_may_wait",
    ),
    Mutant(
        "a device that is new to a query runs the operators of one of its streams",
        "control/deployment/reroute.py",
        "            if host == source_node and deployment.hosts(reads, host) and not deployment.starts.get(host):\n",
        "            if host == source_node and not deployment.starts.get(host):\n",
        test="tests/control/deployment/test_reroute.py::test_operators_for_two_streams_of_a_device_that_is_new_to_a_query_run_there",
    ),
    Mutant(
        "a move takes nodes out that others need",
        "control/deployment/reroute.py",
        "if shared or part.sources or part.stays or remembers or node == deployment.root:",
        "if part.sources or part.stays or remembers or node == deployment.root:",
        test="tests/control/deployment/test_reroute.py::test_whatever_breaks_nobody_passes_by_what_remembers_and_nobody_else_is_disturbed",
    ),
    Mutant(
        "two routes of a source share a node",
        "control/deployment/alternatives.py",
        "if whole[-1] != own[-1] or not set(whole[1:-1]).isdisjoint(node for route in taken for node in route):",
        "if whole[-1] != own[-1]:",
        test="tests/control/deployment/test_alternatives.py::test_whatever_route_rows_take_they_are_taken_in_order_in_one_place",
    ),
    Mutant(
        "an alternative route passes an operator that takes rows in order",
        "control/deployment/alternatives.py",
        "taken, avoid = [own], set(in_order)",
        "taken, avoid = [own], set[NodeId]()",
        test="tests/control/deployment/test_alternatives.py::test_whatever_route_rows_take_they_are_taken_in_order_in_one_place",
    ),
    Mutant(
        "an alternative route takes a relay that may lead past an operator",
        "control/deployment/alternatives.py",
        "if astray := [node for node in whole[1:-1] if own[-1] not in topology.certain(node, request.root)]:",
        "if astray := [node for node in whole[1:-1] if node in taken]:",
        test="tests/control/deployment/test_alternatives.py::test_no_route_takes_a_relay_that_may_lead_past_the_operator",
    ),
)

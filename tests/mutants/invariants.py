"""Laws of the coordinator that are not looked at: each is missed by a corruption that is planted by hand."""

from __future__ import annotations

from rove.cli.mutants import Mutant

_SEEN = "tests/control/deployment/test_invariants.py::test_a_table_that_is_corrupted_is_seen"
_TABLES = "control/deployment/tables/invariants.py"

INVARIANTS = (
    Mutant(
        "a query may wait though it is deployed",
        "control/deployment/query.py",
        "        must(waits == (self.deployment is None),",
        "        must(True,",
        test=f"{_SEEN}[waiting]",
    ),
    Mutant(
        "a query may deploy with nothing pending",
        "control/deployment/query.py",
        "must(not deploying or bool(self.rollout.pending),",
        "must(True,",
        test=f"{_SEEN}[deploying]",
    ),
    Mutant(
        "nodes may be untold that were told",
        "control/deployment/rollout.py",
        "must(self.untold == waits,",
        "must(True,",
        test=f"{_SEEN}[untold]",
    ),
    Mutant(
        "a node without a part may have any state",
        "control/deployment/rollout.py",
        "            must(not stray,",
        "            must(True,",
        test=f"{_SEEN}[without_part]",
    ),
    Mutant(
        "the index of nodes may have more than there is",
        _TABLES,
        'must(has, "only nodes with a state',
        'must(True, "only nodes with a state',
        test=f"{_SEEN}[of_node]",
    ),
    Mutant(
        "the index of streams is not compared",
        _TABLES,
        "    must(found == expected,",
        "    must(True,",
        test=f"{_SEEN}[of_stream]",
    ),
    Mutant(
        "absent nodes are not compared",
        _TABLES,
        "    must(not wrong_nodes,",
        "    must(True,",
        test=f"{_SEEN}[absent]",
    ),
    Mutant(
        "queries that wait for room are not compared",
        _TABLES,
        '    must(not wrong, "the queries that more',
        '    must(True, "the queries that more',
        test=f"{_SEEN}[unsettled]",
    ),
    Mutant(
        "a node that runs what it should may be open",
        _TABLES,
        "        return node in query.rollout.pending\n",
        "        return True\n",
        test=f"{_SEEN}[open]",
    ),
    Mutant(
        "a stopped query is in the index of streams after a restart",
        "control/deployment/deployments.py",
        "for stream in () if query.stopped else query.streams:",
        "for stream in query.streams:",
        test="tests/control/deployment/test_invariants.py::test_a_stopped_query_that_is_restored_is_in_no_index_of_streams",
    ),
    Mutant(
        "the step of a part forgets what led to it",
        "control/deployment/rollout.py",
        'f"the part of `{node}`", story)',
        'f"the part of `{node}`")',
        test="tests/control/deployment/test_invariants.py::test_a_step_of_a_part_that_cannot_happen_says_what_led_there",
    ),
)

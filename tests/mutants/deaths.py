"""Bugs of operators that start on another node because theirs is silent."""

from __future__ import annotations

from rove.cli.mutants import Mutant

_DEAD = "control/deployment/dead"
_DECISION = (
    "tests/control/deployment/dead/test_decision.py::test_a_decision_follows_from_what_was_observed_and_says_why"
)
_STORY = "tests/simulation/test_deaths.py"
_GOES_ON = f"{_STORY}::test_the_windows_of_an_edge_that_died_go_on_on_another_edge_and_what_it_had_is_missing"
_AGAIN = f"{_STORY}::test_an_edge_that_counted_as_dead_and_starts_again_leaves_and_doubles_nothing"


DEATHS = (
    Mutant(
        "a node that others reach counts as dead",
        f"{_DEAD}/decision.py",
        "    if facts.reached_by:\n",
        "    if facts.reached_by and facts.obstacle:\n",
        test=f"{_STORY}::test_an_edge_that_its_devices_reach_is_not_dead",
    ),
    Mutant(
        "a silent node counts as dead at once",
        f"{_DEAD}/decision.py",
        "    if facts.silent_us <= facts.patience_us:\n",
        "    if facts.silent_us <= 0:\n",
        test=_DECISION,
    ),
    Mutant(
        "operators that are wanted on a node by name start elsewhere",
        f"{_DEAD}/replacement.py",
        "        if request.hints.get(stage) == node:\n",
        "        if request.hints.get(stage) is None:\n",
        test=f"{_STORY}::test_operators_that_are_wanted_on_a_node_by_name_wait_for_it",
    ),
    Mutant(
        "an operator that begins anew waits for the batches that the dead node had taken",
        f"{_DEAD}/replacement.py",
        "    deployment.forget(dict.fromkeys(forgotten))\n",
        "    deployment.forget({})\n",
        test=_GOES_ON,
    ),
    Mutant(
        "readers are not told whose earlier batches are gone",
        "control/deployment/fragments.py",
        "                anywhere.update(origins)\n",
        "                anywhere.update(())\n",
        test=_GOES_ON,
    ),
    Mutant(
        "what a dead node held still counts as held",
        "control/members/ended.py",
        "        kept = tuple(replace(t, buffered=0, open=0, held=()) for t in tallies)\n"
        "        record = EndedRecord(node=node, start=start, tallies=kept, gone=(), dead=True)\n",
        "        kept = tuple(tallies)\n"
        "        record = EndedRecord(node=node, start=start, tallies=kept, gone=(), dead=True)\n",
        test=_GOES_ON,
    ),
    Mutant(
        "what a dead node counted is counted again when it starts again",
        "control/members/ended.py",
        "        record = self._dead.pop(node, None)\n        if record is not None:\n",
        "        record = self._dead.pop(node, None)\n        if record is None:\n",
        test=_AGAIN,
    ),
    Mutant(
        "operators begin anew under a name that had numbers before",
        f"{_DEAD}/replacement.py",
        '        Named(stage, "" if merges(operators[stage]) else node, version, start)\n',
        '        Named(stage, "" if merges(operators[stage]) else node, 0, start)\n',
        test=f"{_STORY}::test_an_operator_that_comes_back_to_an_edge_with_a_disk_begins_anew",
    ),
    Mutant(
        "operators that come back to a node with a disk find their old input there",
        "data/fragment/deployment/deployment.py",
        "        if self.input_log.begin(query, memory := str(InputFolder(query, fragment.anew))):\n",
        "        if self.input_log.begin(query, memory := str(InputFolder(query))):\n",
        test=f"{_STORY}::test_an_operator_that_comes_back_to_an_edge_with_a_disk_begins_anew",
    ),
    Mutant(
        "an edge with a disk that is back has left a query of which its disk has input",
        "control/deployment/rollout.py",
        "        return member is None or (self._query not in member.unknown and member.orders.knew(self._query))\n",
        "        return member is None or member.orders.knew(self._query)\n",
        test=f"{_STORY}::test_an_edge_with_a_disk_leaves_when_it_is_back_also_if_the_coordinator_had_not_told_it_its_part",
    ),
    Mutant(
        "a batch that goes elsewhere is computed again by the edge that was dead",
        f"{_DEAD}/doubtful.py",
        "        cut[taker, origin] = again = (first, SEQ_MAX)\n",
        "        again = (first, SEQ_MAX)\n",
        test=f"{_STORY}::test_edges_that_stay_dead_among_other_faults[37]",
    ),
    Mutant(
        "a batch that a dead edge had counted is counted again",
        f"{_DEAD}/doubtful.py",
        "            found[sender].append(Taken(taker, origin, doubtful, node))\n",
        "            pass\n",
        test=f"{_STORY}::test_edges_that_stay_dead_among_other_faults[286]",
    ),
    Mutant(
        "a batch of which a part is counted elsewhere is let in without its rows",
        "data/fragment/intake.py",
        "            if other is None or minus((header.seq, header.through + 1), other):\n",
        "            if other is None:\n",
        test="tests/data/fragment/test_intake.py::test_a_batch_that_is_counted_elsewhere_is_let_in_without_its_rows",
    ),
)

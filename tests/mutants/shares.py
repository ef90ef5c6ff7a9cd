"""Bugs of devices that leave an edge which holds their windows."""

from __future__ import annotations

from rove.cli.mutants import Mutant

_DATA = "tests/data/fragment/test_shares.py::"
_ONE_RESULT = f"{_DATA}test_rows_of_a_device_that_has_left_its_edge_are_in_one_result"
_LIFTED = f"{_DATA}test_a_lifted_batch_keeps_its_name_and_promises_the_start_of_its_pane"
_CONTROL = "tests/control/deployment/test_shares.py::"
_AT_ONCE = f"{_CONTROL}test_a_device_goes_on_at_another_edge_at_once_and_its_old_one_keeps_what_it_has"
_SHARES = "data/fragment/reconfigure/shares.py"
_CONTROL_SHARES = "control/deployment/shares/shares.py"

SHARES = (
    Mutant(
        "an edge takes rows of a device that it has let go",
        "data/fragment/intake.py",
        "return origin in self._next and origin not in self.released",
        "return origin in self._next",
        test=f"{_DATA}test_an_operator_that_has_let_an_origin_go_passes_it_by_and_lets_it_go_once",
    ),
    Mutant(
        "an edge drops batches of a device that wait there when it lets the device go",
        _SHARES,
        "        emitted += [Emitted(self._steps.inputs_of(step.stage)[0], batch, passes=True) for batch in held]\n",
        "",
        test=f"{_DATA}test_batches_that_wait_on_an_edge_pass_by_when_it_lets_their_device_go",
    ),
    Mutant(
        "windows wait for ever for a device that their edge has let go",
        _SHARES,
        "        if step.waits is not None and step.waits.leave(origin):\n"
        "            self._pipeline.rise(step, step.waits.low, emitted)\n",
        "",
        test=f"{_DATA}test_an_edge_that_all_devices_have_left_gives_what_it_has",
    ),
    Mutant(
        "the root takes rows before it knows where they begin",
        _SHARES,
        "                lowest.intake.shut_out(origin)\n",
        "                pass\n",
        test=f"{_DATA}test_batches_that_come_before_it_is_known_where_they_begin_are_held",
    ),
    Mutant(
        "the root takes batches that the edge has taken too",
        _SHARES,
        "        number = None if begin.next == ANYWHERE else begin.next\n",
        "        number = None\n",
        test=_ONE_RESULT,
    ),
    Mutant(
        "the watermark of a device begins anew at the root",
        _SHARES,
        "                step.logic.begin_at(origin, begin.mark)\n",
        "                pass\n",
        test=_ONE_RESULT,
    ),
    Mutant(
        "rows that are lifted are counted once more by who merges them",
        "data/operators/lifting.py",
        "            born=0,\n",
        "",
        test=_ONE_RESULT,
    ),
    Mutant(
        "a lifted batch promises more than the start of its pane",
        "data/operators/lifting.py",
        "        return self._clock.base_us + self._clock.pane_of(mark) * self._clock.pane_us\n",
        "        return mark\n",
        test=_LIFTED,
    ),
    Mutant(
        "numbers that an edge has taken do not go out as a header",
        "data/operators/lifting.py",
        "        if header.seq <= following:\n",
        "        if True:\n",
        test=_LIFTED,
    ),
    Mutant(
        "a restart does not know which devices an edge has let go",
        "data/ends/wait_changes.py",
        "    yield from _shares(fragment, kept)\n",
        "",
        test=f"{_DATA}test_a_restart_lets_origins_go_and_takes_them_at_the_same_places",
    ),
    Mutant(
        "a window ends on an edge that all devices have left",
        "control/deployment/tables/meetings.py",
        "bool(self._taken.get((stage, node))) or self._keeps(stage, node)",
        "bool(self._taken.get((stage, node)))",
        test=_AT_ONCE,
    ),
    Mutant(
        "nobody waits for the windows of an edge that has still to let a device go",
        "control/deployment/tables/meetings.py",
        "        if self._keeps(stage, node) and not any(stage == each for each, _ in part.releases):\n",
        "        if self._keeps(stage, node):\n",
        test=_AT_ONCE,
    ),
    Mutant(
        "an edge that counted as dead says anew where a device begins",
        _CONTROL_SHARES,
        "    if part is None or (origin, node) not in part.held:\n",
        "    if part is None:\n",
        test=f"{_CONTROL}test_an_edge_that_counts_as_dead_is_waited_for_no_longer_and_lets_go_when_it_is_back",
    ),
    Mutant(
        "an edge that devices have left keeps its windows when it counts as dead",
        "control/deployment/dead/replacement.py",
        "        deployment.put({node: replace(part, releases=(), keeps=())})\n",
        "        pass\n",
        test="tests/simulation/test_swaps.py::"
        "test_rows_that_wait_for_an_old_edge_go_on_when_it_counts_as_dead[False-False]",
    ),
    Mutant(
        "event time waits for a device whose old edge is absent",
        "control/deployment/fragments.py",
        "maker[1] in self._absent or any(edge in self._absent for _, edge in held)",
        "maker[1] in self._absent",
        test=f"{_CONTROL}test_nobody_waits_for_a_device_whose_old_edge_is_absent",
    ),
    Mutant(
        "an edge takes rows of a device that comes back to it and is taken at the root",
        "control/deployment/fragments.py",
        "(*part.releases, *((stage, o) for stage, origins in passing.items() for o in origins))",
        "part.releases",
        test=_AT_ONCE,
    ),
    Mutant(
        "an edge keeps earlier origins of a device that it lets go",
        _SHARES,
        "            if (earlier.node, earlier.name) == (origin.node, origin.name) and earlier != origin:\n",
        "            if False:\n",
        test="tests/simulation/test_swaps.py::test_devices_that_swap_edges_lose_no_row_and_double_none[171]",
    ),
    Mutant(
        "a device leaves a node on which its windows are wanted by name",
        _CONTROL_SHARES,
        " or any(request.hints.get(stage) == share.at for stage in share.taking)",
        "",
        test=f"{_CONTROL}test_a_window_that_is_wanted_on_a_node_by_name_stays_there",
    ),
)

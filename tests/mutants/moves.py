"""Bugs of operators that move with their state."""

from __future__ import annotations

from rove.cli.mutants import Mutant

_MOVED = "tests/data/fragment/test_moves.py::test_an_operator_that_moves_gives_what_one_gives_that_stays"
_RENAMED = (
    "tests/data/fragment/test_moves.py::"
    "test_an_operator_that_goes_on_without_the_rest_of_its_state_numbers_its_output_from_0_under_its_new_name"
)
_WITHOUT = "tests/data/fragment/test_moves.py::test_rows_whose_state_does_not_come_are_lost_and_not_delivered"
_DRAIN = "tests/simulation/test_transcripts.py::test_machines_say_what_their_transcript_says"
_PACE = (
    "tests/data/fragment/test_pace.py::test_a_state_takes_the_whole_link_and_rows_wait_for_a_queue_of_bounded_length"
)
_ASIDE = "tests/control/deployment/test_aside.py::"
_EARLY = "tests/data/fragment/test_moves.py::test_batches_that_came_too_early_go_aside_with_the_state"
_ANY_SIZE = "tests/data/fragment/test_moves.py::test_a_state_of_any_size_moves_in_pieces_that_a_link_takes"
_FOLDER = "data/fragment/reconfigure"

MOVES = (
    Mutant(
        "a piece of a state may be larger than a link takes",
        "data/operators/pieces.py",
        "rows > PART_ROWS_MAX or batch.nbytes > PIECE_BYTES_MAX",
        "rows > PART_ROWS_MAX",
        test=_ANY_SIZE,
    ),
    Mutant(
        "small parts of a state are gathered to a piece that is larger than a link takes",
        "data/operators/pieces.py",
        "rows + part.num_rows > PIECE_ROWS or size + part.nbytes > PIECE_BYTES_MAX",
        "rows + part.num_rows > PIECE_ROWS",
        test=_ANY_SIZE,
    ),
    Mutant(
        "a scan closes a pane before all its running totals have come",
        "data/operators/ordered.py",
        "return Snapshot(self.kind, {**self._clock.facts(), UNTIL: first_pane(self._moving())})",
        "return Snapshot(self.kind, {**self._clock.facts(), UNTIL: first_pane(self._rows.occupied())})",
        test=_ANY_SIZE,
    ),
    Mutant(
        "the second part of the running totals of a scan replaces the first",
        "data/operators/ordered.py",
        "one_batch(pa.Table.from_batches([self._carried, *carried.to_batches()]))",
        "one_batch(pa.Table.from_batches(carried.to_batches()))",
        test=_ANY_SIZE,
    ),
    Mutant(
        "a state is sent whatever its pace",
        f"{_FOLDER}/leaving_states.py",
        "leaving.pace.has_room(self.store.pieces_of(query, leaving.origin), now)",
        "True",
        test="tests/bench/test_migrate.py::test_rows_wait_little_behind_a_state",
    ),
    Mutant(
        "with state transfer, an operator takes rows before its whole state has come",
        f"{_FOLDER}/moves.py",
        "        if arriving.at_once:\n",
        "        if True:\n",
        test="tests/bench/test_migrate.py::"
        "test_with_state_transfer_the_state_goes_from_node_to_node_and_results_wait_for_all_of_it",
    ),
    Mutant(
        "a state takes the whole link, and rows wait behind it",
        f"{_FOLDER}/pace.py",
        "            self.most = max(PIECES_MIN, FEWER * self.most)\n",
        "            pass\n",
        test=_PACE,
    ),
    Mutant(
        "every piece that stood in a queue slows a state down",
        f"{_FOLDER}/pace.py",
        "        elif sent_us >= self._fewer_since_us:",
        "        elif sent_us:",
        test=_PACE,
    ),
    Mutant(
        "the pace of a state never rises",
        f"{_FOLDER}/pace.py",
        "            self.most += 1 if self._doubles else 1 / self.most\n",
        "            pass\n",
        test=_PACE,
    ),
    Mutant(
        "a piece of state is merged twice",
        f"{_FOLDER}/moves.py",
        "            for each in step.arriving.in_order(batch):\n",
        "            for each in (batch,):\n",
        test=_MOVED,
    ),
    Mutant(
        "the frontier is ignored: what the old node had taken is taken again",
        f"{_FOLDER}/migration.py",
        "    intake.take_over(\n",
        "    list(\n",
        test=_MOVED,
    ),
    Mutant(
        "rows are taken before the frontier has come",
        f"{_FOLDER}/moves.py",
        "            step.intake.closed = True\n",
        "            step.intake.closed = False\n",
        test=_MOVED,
    ),
    Mutant(
        "a window closes before its state has come",
        f"{_FOLDER}/moves.py",
        "            step.waits.expect([origin])\n",
        "            pass\n",
        test=_MOVED,
    ),
    Mutant(
        "the last piece of a state is lost",
        "data/operators/pieces.py",
        "    if gathered:\n        yield",
        "    if gathered and rows > 1:\n        yield",
        test=_MOVED,
    ),
    Mutant(
        "rows that come during a move go before the state of their pane",
        "data/operators/pieces.py",
        "        if number < self.until:\n            return False\n",
        "        if number < WHOLE:\n            return False\n",
        test=_MOVED,
    ),
    Mutant(
        "rows that come during a move are forgotten",
        "data/operators/pieces.py",
        "        ready = [each for each in self._parts if each[0] < until]\n",
        "        ready: list[tuple[int, Origin, T]] = []\n",
        test=_MOVED,
    ),
    Mutant(
        "the watermark of the old node is forgotten",
        "data/fragment/watermarks.py",
        "        for origin, mark in marks.items():\n            self.heard(origin, mark)\n        self.low",
        "        self.low",
        test=_MOVED,
    ),
    Mutant(
        "open rows that move are counted on both nodes",
        f"{_FOLDER}/moves.py",
        "                    self._pipeline.count(open_origin).open -= rows\n",
        "                    pass\n",
        test=_MOVED,
    ),
    Mutant(
        "a state is forgotten before it has arrived",
        f"{_FOLDER}/moves.py",
        "if stage in kept}",
        "if stage not in kept}",
        test=f"{_DRAIN}[drain_with_a_crash]",
    ),
    Mutant(
        "a state that was lost on its way is not sent again",
        "control/deployment/migration.py",
        "    elif part.awaits:\n        _again(deployment, node, part)\n",
        "",
        test=f"{_DRAIN}[drain_with_a_crash]",
    ),
    Mutant(
        "the state of an operator without output of its own is not sent again when its new node has lost it",
        "control/deployment/deployments.py",
        "if fragment is not None and (fragment.makes or fragment.awaits):",
        "if fragment is not None and fragment.makes:",
        test="tests/simulation/test_drains.py::"
        "test_a_watermark_that_moves_goes_on_if_a_node_without_a_disk_dies_meanwhile",
    ),
    Mutant(
        "the old node is told to forget the state when only the new one has said that it came",
        "control/deployment/migration.py",
        "    return target in said and (NodeId(state.node) in said or",
        "    return target in said or (NodeId(state.node) in said or",
        test=f"{_DRAIN}[drain]",
    ),
    Mutant(
        "the numbers of an operator that is renamed go on from the middle",
        "data/operators/panes.py",
        "        return NOTHING if last < 0 else Output(",
        "        return NOTHING if last < 10**15 else Output(",
        test=_RENAMED,
    ),
    Mutant(
        "operators beside one that is renamed do not take its new name",
        f"{_FOLDER}/moves.py",
        "                reader.intake.expect([name])\n",
        "                pass\n",
        test=_RENAMED,
    ),
    Mutant(
        "a restart does not give an operator the names of its input log",
        "data/ends/wait_changes.py",
        "            return pipeline.moves.rename(stage, origin)\n",
        "            return []\n",
        test="tests/simulation/test_seeds.py::test_a_seed_that_once_broke_a_law_with_all_draws_keeps_it[1128-12]",
    ),
    Mutant(
        "the new name of an operator is not written to its input log",
        "data/ends/wait_changes.py",
        "        if maker in (*fragment.awaits, *named) and",
        "        if maker in fragment.awaits and",
        test="tests/data/ends/test_counting_again.py::"
        "test_the_names_of_an_operator_that_comes_with_its_state_are_written_before_it_goes_on_without_the_state",
    ),
    Mutant(
        "an operator that moves gets a new name",
        "control/deployment/fragments.py",
        "        if named.stage == stage and named.while_start == (starts.get(node) or 0):\n",
        "        if named.stage != stage and named.while_start == (starts.get(node) or 0):\n",
        test=f"{_DRAIN}[drain]",
    ),
    Mutant(
        "an update may change what a scan counts",
        "plan/rules/amend.py",
        "if stateful(operator) and not isinstance(operator, Aggregate):",
        "if False:",
        test="tests/plan/test_amend.py::test_everything_else_is_refused_by_name",
    ),
    Mutant(
        "an update may change the columns of a stage",
        "plan/rules/amend.py",
        "if type(before) is not type(after) or (before.schema, before.traits) != (after.schema, after.traits):",
        "if type(before) is not type(after):",
        test="tests/plan/test_amend.py::test_everything_else_is_refused_by_name",
    ),
    Mutant(
        "operators forget whom they wait for when their query is updated",
        "data/fragment/pipeline.py",
        "if alike or (n < len(mine)",
        "if (n < len(mine)",
        test="tests/data/fragment/test_amended.py::test_an_operator_waits_for_the_same_origins_after_an_update",
    ),
    Mutant(
        "two updates of a query run at once",
        "control/asks/update.py",
        "        _check_alone(coordinator, query)\n",
        "",
        test="tests/control/asks/test_update.py::test_one_update_at_a_time",
    ),
    Mutant(
        "a coordinator that starts again has lost the new text of a query",
        "control/asks/update.py",
        '        coordinator.keep_bytes("plan", query.record.plan, asked.plan)\n',
        "",
        test="tests/control/asks/test_update.py::test_a_coordinator_that_starts_again_goes_on_with_the_new_text",
    ),
    Mutant(
        "rows whose state does not come count as delivered",
        f"{_FOLDER}/moves.py",
        "                count.lost += rows\n",
        "                count.delivered += rows\n",
        test=_WITHOUT,
    ),
    Mutant(
        "rows whose state has come are lost with the rest of the state",
        f"{_FOLDER}/moves.py",
        "        arriving.complete_until = batch.header.watermark\n",
        "",
        test=_WITHOUT,
    ),
    Mutant(
        "rows that are lost stay in the sums of open rows",
        "data/operators/open_rows.py",
        "                self._add(origin, gone, -1)\n",
        "",
        test=_WITHOUT,
    ),
    Mutant(
        "a state takes the way of rows although it is led another way",
        "data/fragment/running_fragment.py",
        "return self.fragment.leads.get(header.origin, self.route) if header.state else self.route",
        "return self.route",
        test=f"{_DRAIN}[drain_to_a_sibling]",
    ),
    Mutant(
        "a state leaves before the sources below send elsewhere",
        "control/deployment/rollout.py",
        "        return self._sender(node, deployment) if led else None\n",
        "        return None\n",
        test=f"{_DRAIN}[drain_to_a_sibling]",
    ),
    Mutant(
        "a state leaves before the nodes on its way know it",
        "control/deployment/rollout.py",
        "                if found is None or runs is None or runs < found.version:\n                    return at\n",
        "",
        test=f"{_ASIDE}test_a_state_leaves_when_its_way_knows_it_and_nobody_sends_rows_to_the_old_node",
    ),
    Mutant(
        "the way of a state is not forgotten",
        "control/deployment/migration.py",
        "    leads.forget(deployment, (state,))\n",
        "",
        test=f"{_ASIDE}test_when_a_state_has_arrived_its_way_is_forgotten_and_idle_nodes_leave",
    ),
    Mutant(
        "a state that is sent again is not led",
        "control/deployment/migration.py",
        "        leads.lead(deployment, NodeId(state.node), target, (state,))\n",
        "        pass\n",
        test=f"{_ASIDE}test_a_state_that_is_sent_again_is_led_under_its_new_name",
    ),
    Mutant(
        "operators move aside although a source below them has no other route",
        "control/deployment/aside/drain.py",
        "        if node in route or topology.broken_on(route):\n",
        "        if False:\n",
        test=f"{_ASIDE}test_nothing_moves_aside_if_a_source_below_has_no_other_route",
    ),
    Mutant(
        "batches that came too early stay behind when a state goes aside",
        f"{_FOLDER}/moves.py",
        "for name, batch in came if origin in leads]\n",
        "for name, batch in came if origin is None]\n",
        test=f"{_EARLY}",
    ),
    Mutant(
        "a chunk of state with an early batch is lost",
        f"{_FOLDER}/moves.py",
        "                    for each in intake.offer_early(body.early.name, early):\n",
        "                    for each in ():\n",
        test=f"{_EARLY}",
    ),
    Mutant(
        "an operator whose state came again waits for batches that an earlier start has lost",
        "data/fragment/intake.py",
        "        self.onward = {origin for origin, following in self._next.items() if following}\n",
        "        pass\n",
        test="tests/data/fragment/test_intake.py::"
        "test_an_origin_goes_on_anywhere_after_an_earlier_start_has_taken_its_next_batches",
    ),
    Mutant(
        "rows that come open with a state are of batches that were never seen",
        "data/fragment/reconfigure/moves.py",
        "                self._pipeline.count(each.origin.unsided).saw_until(each.next)\n",
        "                pass\n",
        test=_WITHOUT,
    ),
)

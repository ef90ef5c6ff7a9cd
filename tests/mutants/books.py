"""Bugs in the books: names that nodes hold and have counted, missing batches, open windows, rows at fault."""

from __future__ import annotations

from rove.cli.mutants import Mutant

SPANS = "tests/model/test_spans.py"
MISSING = "tests/control/members/test_missing.py"
FAULTED = "tests/data/operators/test_faulted.py"
SEEDS = "tests/simulation/test_seeds.py::test_a_seed_that_once_broke_a_law_with_all_draws_keeps_it"

BOOKS = (
    Mutant(
        "a range that is taken away leaves its end behind",
        "model/spans.py",
        "        self._rise(through + 1, -times)\n",
        "        self._rise(through + 1, -abs(times))\n",
        test=f"{SPANS}::test_a_coverage_holds_what_was_added_and_not_taken_away",
    ),
    Mutant(
        "ranges that touch are two ranges in a union",
        "model/spans.py",
        "        if found and start <= found[-1]:\n",
        "        if found and start < found[-1]:\n",
        test=f"{SPANS}::test_ranges_of_two_sets_that_touch_are_one_range",
    ),
    Mutant(
        "a difference forgets what follows its last hole",
        "model/spans.py",
        "        if start < end:\n            found += (start, end)\n    return tuple(found)\n",
        "    return tuple(found)\n",
        test=f"{SPANS}::test_differences_and_common_numbers_are_those_of_plain_sets",
    ),
    Mutant(
        "large gaps are filled before small ones",
        "model/spans.py",
        "key=lambda at: (spans[at + 1] - spans[at], at))",
        "key=lambda at: (spans[at] - spans[at + 1], at))",
        test=f"{SPANS}::test_small_gaps_are_filled_before_large_ones",
    ),
    Mutant(
        "a batch between two reports is missing at once",
        "control/members/missing/missing.py",
        "if now - d.since_us >= PATIENCE_US and heard_us > d.since_us]",
        "if heard_us > d.since_us]",
        test=f"{MISSING}::test_batches_that_no_node_has_are_missing_after_a_while",
    ),
    Mutant(
        "a batch is missing though a node that could hold it is silent",
        "control/members/missing/missing.py",
        "if now - d.since_us >= PATIENCE_US and heard_us > d.since_us]",
        "if now - d.since_us >= PATIENCE_US]",
        test=f"{MISSING}::test_nothing_is_said_as_long_as_a_node_that_could_hold_it_is_silent",
    ),
    Mutant(
        "a batch that one taker has counted is counted for all",
        "control/members/missing/missing.py",
        "        open_ = union(minus(whole, union((*spans, *over))) for spans in takers.values()) if takers else whole\n",
        "        open_ = minus(whole, union([s for spans in takers.values() for s in spans] + over)) if takers else whole\n",
        test=f"{MISSING}::test_a_batch_that_one_of_two_takers_never_got_is_missing",
    ),
    Mutant(
        "a line is in doubt again from the beginning each time",
        "control/members/missing/missing.py",
        "        doubts = [Doubt(d.since_us, kept) for",
        "        doubts = [Doubt(now, kept) for",
        test=f"{MISSING}::test_batches_that_no_node_has_are_missing_after_a_while",
    ),
    Mutant(
        "what a node held before it died counts as held",
        "control/members/ended.py",
        "if t.query in again else replace(t, buffered=0, open=0, held=())",
        "if t.query in again else replace(t, buffered=0, open=0)",
        test=f"{MISSING}::test_what_an_earlier_start_counted_stays_counted_and_what_it_held_is_gone",
    ),
    Mutant(
        "a node that was removed still holds its batches",
        "control/members/missing/missing.py",
        "            del nodes[node]\n",
        "            if not nodes:\n                continue\n",
        test=f"{MISSING}::test_a_node_that_is_removed_holds_nothing",
    ),
    Mutant(
        "rows of open windows are delivered",
        "data/fragment/pipeline.py",
        "                count.delivered -= rows\n                count.open += rows\n",
        "                count.open += rows\n",
        seed=0,
    ),
    Mutant(
        "rows of a window that has closed stay open",
        "data/fragment/pipeline.py",
        "            count.open -= rows\n            count.delivered += rows\n",
        "",
        seed=0,
    ),
    Mutant(
        "a batch is open until the first of its windows closes",
        "data/operators/panes.py",
        "        return self.window.start_us(panes[-1] // self.panes_per_slide) + self.window.size_us\n",
        "        return self.window.start_us(panes[-1] // self.panes_per_slide) + self.window.slide_us\n",
        test="tests/data/operators/test_open_rows.py::test_a_batch_is_open_until_the_last_of_its_windows_closes",
    ),
    Mutant(
        "the store forgets the names of evicted batches",
        "data/store/store.py",
        "        book = self._late if header.late else self._names",
        "        book = self._late if header.late or not header.born else self._names",
        seed=0,
    ),
    Mutant(
        "late rows are counted by every start that computes their watermark",
        "data/fragment/pipeline.py",
        "            if step.waits is not None:\n                count, rows = self",
        "            if step.waits is None:\n"
        "                self.count(batch.header.origin).late += batch.header.born\n"
        "            else:\n                count, rows = self",
        test=f"{SEEDS}[3063-6]",
    ),
    Mutant(
        "rows that are late for a watermark are not counted",
        "data/counts.py",
        "        self.late += header.belated\n",
        "",
        test="tests/data/test_counts.py::"
        "test_rows_that_are_late_for_a_watermark_are_counted_once_however_many_starts_of_its_node_compute_them",
    ),
    Mutant(
        "a restart does not count rows again that were late for a watermark",
        "data/ends/output.py",
        "            count.late += found.late + found.belated\n",
        "            count.late += found.late\n",
        test="tests/data/ends/test_counting_again.py::"
        "test_rows_that_were_late_for_a_watermark_below_are_counted_again_by_a_restart",
    ),
    Mutant(
        "the half of a batch with the fault is at fault as a whole",
        "data/operators/faulted.py",
        "        if end - start == 1 or tries < 2 or not why.tries_max:\n",
        "        if end - start <= 2 or tries < 2 or not why.tries_max:\n",
        test=f"{FAULTED}::test_exactly_the_rows_at_fault_are_found",
    ),
    Mutant(
        "computed rows come in the order in which they were tried",
        "data/operators/faulted.py",
        "    results.sort(key=lambda found: found[0])\n",
        "",
        test=f"{FAULTED}::test_exactly_the_rows_at_fault_are_found",
    ),
    Mutant(
        "rows at fault are born and faulted at once",
        "data/fragment/pipeline.py",
        "        return replace(header, born=header.born - aside.rows, faulted=header.faulted + aside.rows)\n",
        "        return replace(header, faulted=header.faulted + aside.rows)\n",
        test=f"{FAULTED}::test_a_division_by_zero_takes_its_own_row_alone",
    ),
    Mutant(
        "a window that takes the rest of a batch counts its rows at fault as delivered",
        "data/fragment/pipeline.py",
        "            count.delivered -= batch.header.born - header.born\n",
        "",
        test=f"{FAULTED}::test_a_window_takes_the_rows_that_it_can_compute",
    ),
    Mutant(
        "a batch that comes after it was counted as lost is lost and taken",
        "data/fragment/entrance.py",
        "        self.accounts.found(query, header)\n",
        "",
        test="tests/data/test_identity.py::test_a_batch_that_is_taken_after_it_was_counted_as_lost_is_not_lost",
    ),
    Mutant(
        "an operator that computes again without lost input has counted rows twice",
        "control/members/accounts.py",
        "if anew or origin in unsure:",
        "if origin in unsure:",
        test="tests/control/members/test_accounts.py::test_an_operator_that_computes_again_without_lost_input_has_produced_what_arrived",
    ),
    Mutant(
        "rows that are damaged are not counted as lost",
        "model/batch.py",
        "    lost = header.lost + header.born\n",
        "    lost = header.lost\n",
        test="tests/data/ends/test_damaged_input.py::test_a_batch_whose_rows_are_damaged_is_lost_and_the_query_goes_on",
    ),
    Mutant(
        "batches that were computed and passed on count as held",
        "data/accounts.py",
        "            if (each := running.get(QueryId(query))) is None or each.replays:\n",
        "            if True:\n",
        test=f"{SEEDS}[378-6]",
    ),
    Mutant(
        "the sums of a moved operator do not wait for the node that it has left",
        "control/asks/snapshot.py",
        "if part.names and (silent or part.awaits)",
        "if part.names and part.awaits",
        test=f"{SEEDS}[323-6]",
    ),
    Mutant(
        "batches that wait to be computed are held by nobody",
        "data/ends/pending_input.py",
        "for each in self._queries.values() for batch in each.fresh)\n",
        "for each in self._queries.values() for batch in each.read)\n",
        test="tests/data/ends/test_pending_input.py::test_what_became_safe_and_waits_is_named",
    ),
    Mutant(
        "the checker expects no rows that a device evicted before it died and made them again",
        "sim/rows.py",
        "if known and not source.died and",
        "if known and not source.dead and",
        test="tests/simulation/test_checkers.py::"
        "test_rows_that_a_device_evicted_may_arrive_if_it_died_and_made_them_again",
    ),
)

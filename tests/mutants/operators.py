"""Bugs in operators: panes, windows, joins, scans, count windows, watermarks; merging, snapshots, restoring."""

from __future__ import annotations

from rove.cli.mutants import Mutant

OPERATORS = (
    Mutant(
        "a pane is complete one pane too early",
        "data/operators/panes.py",
        "self.complete = max(self.complete, self.pane_of(time_us))",
        "self.complete = max(self.complete, self.pane_of(time_us) + 1)",
        seed=5,
    ),
    Mutant(
        "silent windows before one with rows are left out",
        "data/operators/panes.py",
        "            if number > self.next_window:\n                batches.append(self._nothing_until(number - 1))\n",
        "",
        test="tests/data/operators/test_stateful.py::test_numbers_have_no_gaps_and_start_at_nought",
    ),
    Mutant(
        "a hopping window forgets its first pane",
        "data/operators/panes.py",
        "-(-(pane - self.panes_per_window + 1) // self.panes_per_slide)",
        "-(-(pane - self.panes_per_window + 2) // self.panes_per_slide)",
        test="tests/data/operators/test_operators.py::test_a_window_closes_when_the_watermark_reaches_its_end_and_not_before",
    ),
    Mutant(
        "late rows stay in the batch as well",
        "data/operators/panes.py",
        "micros, first = micros.filter(kept), self.complete",
        "first = self.complete",
        test="tests/data/operators/test_pane_split.py::test_every_row_is_in_its_pane_or_late_in_the_order_it_had",
    ),
    Mutant(
        "a pane that the next window needs is deleted",
        "data/operators/window.py",
        "if n < self._clock.first_needed_pane]:",
        "if n <= self._clock.first_needed_pane]:",
        seed=5,
    ),
    Mutant(
        "complete panes are not restored",
        "data/operators/window.py",
        "                self._merged[number] = self._form.read(part)\n",
        "                continue\n",
        test="tests/data/operators/test_stateful.py::test_an_operator_restored_from_a_snapshot_goes_on_as_if_nothing_had_happened",
    ),
    Mutant(
        "a pane keeps the states of one origin only",
        "data/operators/window.py",
        "        if origin not in origins:\n            origins[origin] = self._form.open()\n",
        "        if origin not in origins:\n            origins.clear()\n            origins[origin] = self._form.open()\n",
        seed=5,
    ),
    Mutant(
        "late rows that are folded are counted as one row each",
        "data/operators/window.py",
        "return Batch(replace(late.header, born=rows_in(late.data)), late.data) if header.folded else late",
        "return late",
        test="tests/data/store/test_folding.py::test_folded_rows_that_come_too_late_are_counted_as_late_to_the_row",
    ),
    Mutant(
        "a sum that does not fit a bigint wraps around",
        "data/operators/numbers.py",
        "            raise ArithmeticFault(",
        "            return _one_row(total % 2**32, BIGINT)\n            raise ArithmeticFault(",
        test="tests/data/operators/test_pane_forms.py::test_a_sum_that_does_not_fit_a_bigint_is_a_fault_in_both_forms",
    ),
    Mutant(
        "both sides of a join are restored from the left one",
        "data/operators/join.py",
        'zip(self._sides, ("left", "right"), strict=True)',
        'zip(self._sides, ("left", "left"), strict=True)',
        test="tests/data/operators/test_stateful.py::test_an_operator_restored_from_a_snapshot_goes_on_as_if_nothing_had_happened",
    ),
    Mutant(
        "rows of an open pane are given in the order of arrival, not by origin",
        "data/operators/buffered.py",
        "[b for o in sorted(origins) for b in origins[o]]",
        "[b for o in origins for b in origins[o]]",
        test="tests/data/operators/test_stateful.py::test_output_does_not_depend_on_how_origins_interleave",
    ),
    Mutant(
        "rows of a pane are not restored",
        "data/operators/buffered.py",
        "            self.add(number, read_origin(origin), rows)\n",
        "            self._panes.setdefault(number, {})\n",
        test="tests/data/operators/test_stateful.py::test_an_operator_restored_from_a_snapshot_goes_on_as_if_nothing_had_happened",
    ),
    Mutant(
        "a scan forgets the state of the last key",
        "data/operators/scan.py",
        "pa.concat_arrays([changed, pa.array([True])])",
        "pa.concat_arrays([changed, pa.array([False])])",
        test="tests/data/operators/test_operators.py::test_a_scan_runs_in_event_time_order_whatever_came_first",
    ),
    Mutant(
        "a scan keeps the first state of a key, not the last",
        "data/operators/scan.py",
        "    return pa.concat_arrays([changed, pa.array([True])])",
        "    return pa.concat_arrays([pa.array([True]), changed])",
        test="tests/data/operators/test_operators.py::test_a_scan_runs_in_event_time_order_whatever_came_first",
    ),
    Mutant(
        "the carried states of a scan are not restored",
        "data/operators/ordered.py",
        '        self._carried = one_batch(snapshot.tables["carried"])\n',
        "",
        test="tests/data/operators/test_stateful.py::test_an_operator_restored_from_a_snapshot_goes_on_as_if_nothing_had_happened",
    ),
    Mutant(
        "the watermark of an origin falls with an older batch",
        "data/operators/watermark.py",
        "after = max(mark, newest - self._delay_us)",
        "after = newest - self._delay_us",
        test="tests/data/operators/test_operators.py::test_a_watermark_never_falls",
    ),
    Mutant(
        "lateness is decided by the newest origin",
        "data/operators/watermark.py",
        "mark = self._marks.get(header.origin, MICROS_MIN)",
        "mark = max(self._marks.values(), default=MICROS_MIN)",
        test="tests/data/operators/test_operators.py::test_lateness_is_decided_by_the_origins_own_clock",
    ),
)

"""Bugs of checkpoints: what they hold, when they are written, and what is deleted because of them."""

from __future__ import annotations

from rove.cli.mutants import Mutant

HERE = "tests/data/fragment/test_checkpoints.py"
CHECKPOINTS = (
    Mutant(
        "a checkpoint is written before the next node has what was given out",
        "data/fragment/deployment/checkpoints.py",
        "return all(entry.order > order for entry in own)",
        "return True",
        test=f"{HERE}::test_a_checkpoint_waits_until_the_next_node_has_what_was_given_out",
    ),
    Mutant(
        "a checkpoint is written before the disk has what was given out",
        "data/fragment/deployment/checkpoints.py",
        " and self._output.is_safe(taken.reached):",
        ":",
        test=f"{HERE}::test_a_checkpoint_waits_until_the_disk_has_what_was_given_out",
    ),
    Mutant(
        "a restart leaves out the first batch after the checkpoint",
        "data/fragment/deployment/checkpoints.py",
        "Position(batch.position + 1)",
        "Position(batch.position + 2)",
        test=f"{HERE}::test_results_and_books_are_those_of_a_node_that_never_stopped",
    ),
    Mutant(
        "a restart computes all input, although the checkpoint holds it",
        "data/fragment/deployment/checkpoints.py",
        "        return found.position\n",
        "        return START\n",
        test=f"{HERE}::test_a_restart_reads_the_input_since_the_last_checkpoint",
    ),
    Mutant(
        "a checkpoint is written although late rows in it have been evicted since",
        "data/fragment/deployment/checkpoints.py",
        "if running.pipeline.recounts != taken.recounts:",
        "if False:",
        test=f"{HERE}::test_late_rows_that_are_evicted_after_a_checkpoint_was_taken_stay_evicted",
    ),
    Mutant(
        "a restart does not open the folders of late rows that the checkpoint covers",
        "data/fragment/deployment/checkpoints.py",
        "            self._output.open_again(query, folders)\n",
        "",
        test=f"{HERE}::test_readers_are_told_of_late_rows_again_although_none_come_after_the_restart",
    ),
    Mutant(
        "counts begin at zero after a checkpoint",
        "data/fragment/saved.py",
        "        pipeline.counts, pipeline.faults, pipeline.fault = found.counts, found.faults, found.fault\n",
        "",
        test=f"{HERE}::test_results_and_books_are_those_of_a_node_that_never_stopped",
    ),
    Mutant(
        "batches that came too early are not in a checkpoint",
        "data/fragment/saved.py",
        "        intake.hold(origin, batch)\n",
        "        pass\n",
        test=f"{HERE}::test_a_batch_that_came_too_early_is_still_there_after_a_restart",
    ),
    Mutant(
        "the state of operators is not in a checkpoint",
        "data/fragment/saved.py",
        "            step.logic.restore(state)\n",
        "            pass\n",
        test=f"{HERE}::test_results_and_books_are_those_of_a_node_that_never_stopped",
    ),
    Mutant(
        "input is deleted that the older checkpoint needs",
        "data/log/segments/partition.py",
        "self.consumed(checkpoint.CONSUMER, before)",
        "self.consumed(checkpoint.CONSUMER, flight.checkpoint)",
        test=f"{HERE}::test_a_damaged_checkpoint_is_made_again_from_the_one_before",
    ),
    Mutant(
        "a new checkpoint replaces the only one that can be read",
        "data/log/segments/checkpoint.py",
        "Checkpoints(slot=1 - slot, newest",
        "Checkpoints(slot=slot, newest",
        test="tests/data/log/test_checkpoint.py::test_a_new_checkpoint_does_not_replace_the_only_one_that_can_be_read",
    ),
    Mutant(
        "a checkpoint that is ahead of the log keeps its position",
        "data/log/segments/recovery.py",
        "    if found.checkpoints.newest > found.position:\n",
        "    if False:\n",
        test="tests/data/log/test_checkpoint.py::test_a_checkpoint_that_is_ahead_of_its_log_moves_back",
    ),
    Mutant(
        "a damaged table of consumers is damage although checkpoints say the same",
        "data/log/segments/recovery.py",
        "    if found.checkpoints.safe and any(",
        "    if False and any(",
        test="tests/data/log/test_checkpoint.py::test_a_damaged_table_of_consumers_is_made_again_from_the_checkpoints",
    ),
    Mutant(
        "a query goes on from nothing when its checkpoints are damaged and their input is deleted",
        "data/log/segments/checkpoint.py",
        "        if trimmed:\n",
        "        if False:\n",
        test=f"{HERE}::test_a_query_waits_and_says_why_if_its_checkpoints_are_gone_and_their_input_is_deleted",
    ),
)

"""Bugs in sources that go on after a restart, and in compactions of tables."""

from __future__ import annotations

from rove.cli.mutants import Mutant

_POSITIONS = "tests/data/sources/test_positions.py"
_COMPACTION = "tests/cloud/test_compaction.py"

SOURCES = (
    Mutant(
        "a position passes batches that are not safe",
        "data/sources/positions.py",
        "            low = max(going.next, min(unsafe.get(query, made), made))\n",
        "            low = made\n",
        test=f"{_POSITIONS}::test_a_position_stays_before_the_first_batch_that_is_not_safe",
    ),
    Mutant(
        "a source that goes on has no line before its first row, so its earlier start counts twice",
        "data/accounts.py",
        "{*lines, *held, *counted, *self._produced}",
        "{*lines, *held, *counted}",
        test=f"{_POSITIONS}::test_a_source_that_goes_on_has_a_line_before_it_has_counted_a_row",
    ),
    Mutant(
        "a position passes batches that are on the disk and were not counted again",
        "data/sources/positions.py",
        "            low = max(going.next, min(unsafe.get(query, made), made))\n",
        "            low = max(going.next, unsafe.get(query, made))\n",
        test=f"{_POSITIONS}::test_whatever_dies_every_batch_is_counted_once_and_none_that_is_lost_is_passed",
    ),
    Mutant(
        "what is safe is made again for a query that has it",
        "data/sources/positions.py",
        "        if header.seq < going.next:\n            return False, False\n",
        "",
        test=f"{_POSITIONS}::test_a_later_start_gives_each_query_what_it_lacks_and_counts_it_once",
    ),
    Mutant(
        "what is on the disk is made again",
        "data/sources/positions.py",
        "        return True, forks or not _within(header.seq, going.kept)\n",
        "        return True, True\n",
        test=f"{_POSITIONS}::test_what_an_earlier_start_left_on_the_disk_counts_and_is_not_made_again",
    ),
    Mutant(
        "a part of a batch on the disk is taken for the whole of it",
        "data/sources/positions.py",
        "        return True, forks or not _within(header.seq, going.kept)\n",
        "        return True, not _within(header.seq, going.kept)\n",
        test=f"{_POSITIONS}::test_what_leaves_more_than_once_is_made_again_although_a_part_of_it_is_on_the_disk",
    ),
    Mutant(
        "a source does not wait for queries that its node has forgotten",
        "data/sources/sources.py",
        "        return not lacks\n",
        "        return True\n",
        test=f"{_POSITIONS}::test_a_source_waits_for_queries_that_its_node_has_forgotten_until_they_must_have_been_stopped",
    ),
    Mutant(
        "batches of a file that may have arrived before a restart are merged with later ones",
        "data/ends/exits.py",
        "        again = running.replays or self._sources.sent_before(header)\n",
        "        again = running.replays\n",
        test=f"{_POSITIONS}::test_batches_that_may_have_arrived_before_a_restart_are_not_merged_with_later_ones",
    ),
    Mutant(
        "a position does not follow the batches that are sent",
        "data/sources/sources.py",
        "                    due |= source.replayed.sends(header)\n",
        "                    source.replayed.sends(header)\n",
        test=f"{_POSITIONS}::test_a_position_is_kept_before_batches_are_sent_that_no_start_has_sent_before",
    ),
    Mutant(
        "a later start forgets which batches may have arrived",
        "data/sources/positions.py",
        "        self._sent_before = self._reserved = 0 if at is None else at.sent\n",
        "        self._sent_before, self._reserved = 0 if at is None else at.sent, 0\n",
        test=f"{_POSITIONS}::test_numbers_are_reserved_when_positions_are_kept_anyway_and_within_a_bound",
    ),
    Mutant(
        "a compaction deletes old files that the sink may still bring back",
        "cloud/compaction.py",
        "(swapped and not over)",
        "False",
        test=f"{_COMPACTION}::test_old_files_stay_for_open_readers_and_until_the_sink_has_taken_over_the_new_list",
    ),
    Mutant(
        "a compaction swaps the list though the sink has gone on",
        "cloud/compaction.py",
        "    if _last_compact(last.parent.parent) != last:\n",
        "    if False:\n",
        test=f"{_COMPACTION}::test_a_sink_that_writes_its_list_again_and_again_is_left_alone",
    ),
    Mutant(
        "a compaction that the sink has gone past replaces the old list",
        "cloud/compaction.py",
        "            last = _last_compact(folder) or last\n",
        "",
        test=f"{_COMPACTION}::test_files_are_put_together_although_the_sink_goes_on_while_they_are_rewritten",
    ),
    Mutant(
        "the checksum of the old list stays beside the new one",
        "cloud/compaction.py",
        '    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)\n',
        "",
        test=f"{_COMPACTION}::test_small_files_become_one_and_the_query_goes_on",
    ),
)

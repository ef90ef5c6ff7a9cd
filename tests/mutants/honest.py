"""Bugs of what the coordinator believes of a report."""

from __future__ import annotations

from rove.cli.mutants import Mutant

REPORTS = "tests/control/members/honest/test_report.py::"
STREAMS = "tests/control/members/test_streams.py::"

ACCOUNTS = "tests/control/members/test_accounts.py::"
JUDGE = "tests/control/members/test_judge.py::test_who_has_not_reported_hides_only_what_it_may_hold"

HONEST = (
    Mutant(
        "a node may not count again what an earlier start of it had counted",
        "control/members/honest/counts.py",
        "return self._durable and origin.start < self._report.start",
        "return False",
        test=REPORTS + "test_a_node_with_a_disk_counts_rows_of_its_earlier_starts_again",
    ),
    Mutant(
        "any node speaks of any query",
        "control/members/honest/parts.py",
        "if query is not None and id in parts:",
        "if query is not None:",
        test=REPORTS + "test_a_node_without_a_part_in_a_query_neither_stops_nor_condemns_it",
    ),
    Mutant(
        "texts of nodes keep their control characters",
        "control/members/honest/texts.py",
        "return cut if cut.isprintable() else",
        "return cut if cut else",
        test=REPORTS + "test_texts_of_nodes_are_cut_and_move_no_cursor",
    ),
    Mutant(
        "a node lacks functions that the query does not have",
        "control/members/honest/parts.py",
        'trouble.lacks if trouble.lacks in functions else ""',
        "trouble.lacks",
        test=REPORTS + "test_a_function_that_a_query_does_not_have_is_not_lacking",
    ),
    Mutant(
        "states that nobody waits for are noted",
        "control/deployment/migration.py",
        "if target is None or node not in (target, state.node):",
        "if node not in (target, state.node):",
        test=REPORTS + "test_what_is_kept_and_moved_is_of_queries_of_the_node",
    ),
    Mutant(
        "anybody counts the rows of a merging operator",
        "control/members/honest/counts.py",
        "return self._below.has(self._report.node, maker) or (ends and self._below.knows(maker))",
        "return True",
        test=REPORTS + "test_an_operator_is_counted_where_it_ran_and_above",
    ),
    Mutant(
        "counts may be negative",
        "control/members/honest/bounds.py",
        "return min(found) >= 0 and max(found) <= SUM_MAX",
        "return max(found) <= SUM_MAX",
        test=REPORTS + "test_counts_of_its_own_that_cannot_be_are_left_out_and_the_node_is_named",
    ),
    Mutant(
        "counts of queries that do not exist are kept",
        "control/members/honest/counts.py",
        "                continue  # a node may run what a coordinator with another catalog had told it\n",
        "                kept.append(tally)\n                continue\n",
        test=REPORTS + "test_counts_of_a_query_that_does_not_exist_are_not_kept",
    ),
    Mutant(
        "each start of a node leaves a record for ever",
        "control/members/ended.py",
        "        if kept >= STARTS_MAX or (kept and lines > OWN_LINES_MAX):\n            return kept\n",
        "",
        test=REPORTS + "test_earlier_starts_of_a_node_leave_a_bounded_number_of_records_and_counts",
    ),
    Mutant(
        "the names of unknown queries have no bound",
        "control/members/honest/bounds.py",
        'found["unknown"] = report.unknown[:QUERIES_MAX]',
        'found["unknown"] = report.unknown',
        test=REPORTS + "test_a_report_costs_what_is_in_it",
    ),
    Mutant(
        "columns are a stream's before they are read",
        "control/members/streams.py",
        "columns = next(filter(readable, found), None)",
        "columns = next(iter(found), None)",
        test=STREAMS + "test_columns_are_read_before_they_are_a_streams",
    ),
    Mutant(
        "a stream keeps the columns of a device that was removed",
        "control/members/streams.py",
        "if known is not None and (known in found or read(stream)):",
        "if known is not None:",
        test=STREAMS + "test_a_stream_that_only_a_removed_device_brought_is_forgotten_and_others_name_it",
    ),
    Mutant(
        "a stream that a query reads gets other columns",
        "control/members/streams.py",
        "if known is not None and (known in found or read(stream)):",
        "if known is not None and known in found:",
        test=STREAMS + "test_a_stream_that_a_query_reads_keeps_its_columns_until_the_query_is_stopped",
    ),
    Mutant(
        "a device whose own counts contradict each other is not named",
        "control/asks/snapshot.py",
        "done > tally.produced else",
        "done < tally.produced else",
        test=REPORTS + "test_a_device_whose_own_counts_contradict_each_other_is_named_and_not_a_bug",
    ),
    Mutant(
        "an end that is ahead of its maker is believed in everything",
        "control/members/accounts.py",
        "produced = done if beyond is None else min(done",
        "produced = done if beyond is not None else min(done",
        test=ACCOUNTS + "test_an_end_that_is_ahead_of_its_maker_hides_no_rows_that_were_counted_twice",
    ),
    Mutant(
        "whatever is counted of an origin that has ended was produced",
        "control/members/accounts.py",
        "if anew or origin in unsure:",
        "if anew or over or origin in unsure:",
        test=ACCOUNTS + "test_rows_of_an_origin_that_has_ended_are_not_produced_by_counting_them_twice",
    ),
    Mutant(
        "a lost row hides output that was counted twice",
        "control/members/accounts.py",
        "anew = query in hurt and query in again and",
        "anew = query in hurt and",
        test=ACCOUNTS + "test_a_lost_row_of_a_query_hides_no_output_that_was_counted_twice",
    ),
    Mutant(
        "a device that is absent hides the batches of all others",
        "control/members/missing/judge.py",
        "                if device:\n",
        "                if not device:\n",
        test=JUDGE,
    ),
    Mutant(
        "a device that is absent hides not even its own batches",
        "control/members/missing/judge.py",
        " or NodeId(origin.node) in heard.devices:",
        ":",
        test=JUDGE,
    ),
    Mutant(
        "an edge node that is absent hides nothing",
        "control/members/missing/judge.py",
        "if any(self._below.has(relay, maker) for relay in heard.relays):",
        "if any(relay == maker for relay in heard.relays):",
        test=JUDGE,
    ),
)

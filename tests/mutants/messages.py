"""Bugs where bytes of others are read: rows, packed rows, headers, reports."""

from __future__ import annotations

from rove.cli.mutants import Mutant

MESSAGES = (
    Mutant(
        "rows of others are not validated",
        "data/rows.py",
        "            data.validate(full=True)\n",
        "",
        test="tests/data/test_rows.py::test_offsets_that_lead_out_of_the_rows_are_refused",
    ),
    Mutant(
        "compressed buffers are opened",
        "data/rows.py",
        '            refuse_compressed(head_of(memoryview(payload).cast("B")))\n',
        "",
        test="tests/data/test_rows.py::test_compressed_buffers_are_refused_before_they_are_opened",
    ),
    Mutant(
        "compressed rows of a state are opened",
        "model/state.py",
        "        refuse_compressed(head_of(memoryview(message)))\n",
        "",
        test="tests/model/test_state.py::test_compressed_rows_are_refused_before_they_are_opened",
    ),
    Mutant(
        "the rows of a state are believed",
        "model/state.py",
        "    table.validate(full=True)\n",
        "",
        test="tests/model/test_state.py::test_offsets_that_lead_out_of_the_rows_are_refused",
    ),
    Mutant(
        "the number of rows is believed",
        "data/rows.py",
        "if data.num_rows != count:",
        "if data.num_rows < 0:",
        test="tests/data/test_worker.py::test_rows_that_do_not_fit_are_refused_counted_and_accounted_for",
    ),
    Mutant(
        "a head of packed rows may name columns twice",
        "data/store/packing.py",
        "    _check(head, len(schema))\n",
        "",
        test="tests/data/store/test_packing.py::test_a_head_that_names_columns_which_are_not_there_or_twice_is_refused",
    ),
    Mutant(
        "a header on a link may be of any kind",
        "model/messages.py",
        "if header.kind is not HeaderKind.BATCH:",
        "if header.kind is HeaderKind.LOW_WATERMARK:",
        test="tests/model/test_ids.py::test_a_header_with_what_no_origin_gives_is_refused_at_the_link",
    ),
    Mutant(
        "a batch with rows may stand for several numbers",
        "model/messages.py",
        "if header.rows and header.seq != header.through:",
        "if header.rows and header.seq > header.through:",
        test="tests/data/test_worker.py::test_numbers_that_no_origin_gives_are_refused_before_they_are_counted_with",
    ),
    Mutant(
        "a header may count less than no rows",
        "model/messages.py",
        "min(counts) < 0 or max(counts) >= SEQ_MAX",
        "max(counts) >= SEQ_MAX",
        test="tests/data/test_worker.py::test_numbers_that_no_origin_gives_are_refused_before_they_are_counted_with",
    ),
    Mutant(
        "a node may report sources of another node",
        "model/messages.py",
        "if (source.origin.name, source.origin.stage, source.origin.node) != (source.stream, SOURCE, report.node):",
        "if (source.origin.name, source.origin.stage) != (source.stream, SOURCE):",
        test="tests/control/members/test_identity.py::test_a_node_cannot_report_what_is_not_its_own",
    ),
    Mutant(
        "a report may have any number of tallies",
        "model/messages.py",
        "if len(report.tallies) > TALLIES_MAX:",
        "if len(report.tallies) < 0:",
        test="tests/control/members/test_identity.py::test_a_report_has_a_bound",
    ),
)

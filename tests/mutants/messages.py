"""Bugs where bytes of others are read: rows, packed rows, headers, reports."""

from __future__ import annotations

from rove.cli.mutants import Mutant

MESSAGES = (
    Mutant(
        "rows of others are not validated",
        "data/rows.py",
        "            data.validate(full=True)\n",
        "",
        test="tests/data/test_rows.py",
    ),
    Mutant(
        "compressed buffers are opened",
        "data/rows.py",
        '            _refuse_compressed(memoryview(payload).cast("B"))\n',
        "",
        test="tests/data/test_rows.py::test_compressed_buffers_are_refused_before_they_are_opened",
    ),
    Mutant(
        "the number of rows is believed",
        "data/rows.py",
        "if data.num_rows != count:",
        "if data.num_rows < 0:",
        test="tests/data",
    ),
    Mutant(
        "packed rows may be larger than their sender said",
        "data/rows.py",
        "if rows is not None and len(rows) > packed + UNPACKED_SLACK_BYTES:",
        "if rows is not None and len(rows) > 2**40:",
        test="tests/data/store/test_pack_queue.py tests/data/test_rows.py",
    ),
    Mutant(
        "the pages of packed rows are not measured before they are unpacked",
        "data/store/packing.py",
        "    check_pages(payload[begin:], UNPACKED_TIMES * bytes_max + UNPACKED_SLACK_BYTES)\n",
        "",
        test="tests/data/test_rows.py",
    ),
    Mutant(
        "a head of packed rows may name columns twice",
        "data/store/packing.py",
        "    _check(head, len(schema))\n",
        "",
        test="tests/data/store/test_packing.py",
    ),
    Mutant(
        "packed rows come back in the order of their key",
        "data/store/packing.py",
        "back = pc.sort_indices(pc.sort_indices(columns[head.key]))",
        "back = pc.sort_indices(columns[head.key])",
        test="tests/data/store/test_packing.py",
    ),
    Mutant(
        "a frame may be larger than rows may be",
        "data/worker.py",
        "if size > ROWS_BYTES_MAX + KEPT_BYTES_MIN:",
        "if size > 2**62:",
        test="tests/data",
    ),
    Mutant(
        "a header on a link may be of any kind",
        "model/messages.py",
        "if header.kind is not HeaderKind.BATCH:",
        "if header.kind is HeaderKind.LOW_WATERMARK:",
        test="tests/data tests/model",
    ),
    Mutant(
        "a batch with rows may stand for several numbers",
        "model/messages.py",
        "if header.rows and header.seq != header.through:",
        "if header.rows and header.seq > header.through:",
        test="tests/data tests/model",
    ),
    Mutant(
        "a header may count less than no rows",
        "model/messages.py",
        "min(counts) < 0 or max(counts) >= SEQ_MAX",
        "max(counts) >= SEQ_MAX",
        test="tests/data/test_worker.py tests/model",
    ),
    Mutant(
        "a header may carry any time",
        "model/messages.py",
        "if any(not -SEQ_MAX <= time <= SEQ_MAX for time in times):",
        "if any(time > SEQ_MAX for time in times):",
        test="tests/data/test_worker.py tests/model",
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
    Mutant(
        "a message may be of any size",
        "model/messages.py",
        "if len(data) > MESSAGE_BYTES_MAX:",
        "if len(data) < 0:",
        test="tests/runtime/network/test_zeromq.py tests/model tests/data/test_worker.py",
    ),
)

"""Bugs where names come in: a name that is not checked becomes a folder, a record or a key."""

from __future__ import annotations

from rove.cli.mutants import Mutant

NAMES = (
    Mutant(
        "the outputs of a plan have any name",
        "plan/codec.py",
        "(checked_output(name), Stage(n))",
        "(name, Stage(n))",
        test="tests/control/test_names.py::test_a_plan_whose_output_would_be_another_folder_is_refused_and_not_kept",
    ),
    Mutant(
        "an output may be a folder of late rows",
        "model/disk_folders.py",
        "name.startswith((LATE, FAULT))",
        "name.startswith(FAULT)",
        test="tests/control/test_names.py::test_a_plan_whose_output_would_be_another_folder_is_refused_and_not_kept",
    ),
    Mutant(
        "the coordinator takes any path of a sink",
        "control/asks/requests.py",
        "        checked_sink(sink.path)\n",
        "        pass\n",
        test="tests/control/test_names.py::test_a_sink_whose_path_leads_elsewhere_is_refused",
    ),
    Mutant(
        "a node takes any path of a sink",
        "data/ends/output.py",
        "                checked_sink(name)\n",
        "                pass\n",
        test="tests/data/test_names.py::test_a_node_refuses_the_path_of_a_sink_that_leads_elsewhere_and_says_so",
    ),
    Mutant(
        "only the first part of a sink's path is checked",
        "model/disk_folders.py",
        '    for part in parts:\n        checked_name(part, f"a folder of the sink',
        '    for part in parts[:1]:\n        checked_name(part, f"a folder of the sink',
        test="tests/data/test_names.py::test_a_node_refuses_the_path_of_a_sink_that_leads_elsewhere_and_says_so",
    ),
    Mutant(
        "two queries write into one folder",
        "data/ends/output.py",
        "known is not None and known.query != fragment.query:",
        "known is None and known:",
        test="tests/data/test_names.py::test_two_queries_do_not_write_into_one_folder",
    ),
    Mutant(
        "a node believes the names in a fragment",
        "data/fragment/deployment/deployment.py",
        "            check_fragment(fragment)\n",
        "",
        test="tests/data/test_names.py::test_a_node_refuses_a_fragment_with_names_that_nothing_can_have",
    ),
    Mutant(
        "a disk goes wherever a path leads below its folder",
        "runtime/disk/shelf.py",
        "        check_parts(folder)\n",
        "",
        test="tests/data/test_names.py::test_a_disk_opens_no_folder_whose_path_leads_elsewhere",
    ),
    Mutant(
        "a return timeout may name any stream",
        "control/asks/submit.py",
        "[stream for stream in asked.patience_of if stream not in query.streams]",
        "[stream for stream in () if stream not in query.streams]",
        test="tests/control/test_names.py::test_the_return_timeout_of_a_stream_that_cannot_be_or_is_not_read_is_refused",
    ),
    Mutant(
        "Spark's options that name folders are refused in one spelling",
        "control/sink_options.py",
        "KEPT_BY_ROVE.get(key.lower())",
        "KEPT_BY_ROVE.get(key)",
        test="tests/control/test_names.py::test_a_sink_in_spark_that_would_write_elsewhere_is_refused",
    ),
    Mutant(
        "the origins of counts are believed",
        "model/messages.py",
        "        check_origin(tally.origin)\n",
        "",
        test="tests/control/test_names.py::test_a_report_with_a_name_that_others_would_have_to_read_back_is_refused",
    ),
    Mutant(
        "batches that wait are read back into the folder of a wrong start",
        "model/disk_folders.py",
        "int(start.removesuffix(SENT)), start.endswith(SENT))",
        "int(start.removesuffix(SENT)), False)",
        test="tests/model/test_disk_folders.py::test_a_folder_is_read_as_it_was_written_and_no_two_have_one_path",
    ),
)

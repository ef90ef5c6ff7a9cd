"""Bytes that others sent reach Arrow in one place only."""

from __future__ import annotations

import ast

from tests.layers import SOURCE

# What makes Arrow read bytes. It may end its process on bytes that nobody has checked.
READS = {
    "MessageReader", "ParquetFile", "RecordBatchFileReader", "RecordBatchStreamReader", "deserialize", "open_file",
    "open_stream", "read_message", "read_next_message", "read_pandas", "read_record_batch", "read_schema",
    "read_table", "read_tensor",
}  # fmt: skip
# Who may, and whose bytes they are. Rows of other nodes go through the first two only.
READERS = {
    "model/foreign/arrow_head.py": {"read_record_batch"},  # any, after a look at them
    "data/store/packing.py": {"ParquetFile"},  # any, after a look at their pages
    "data/log/segments/disk_work/reader.py": {"read_record_batch", "read_schema"},  # this node's log, with a checksum
    "data/log/segments/recovery.py": {"read_schema"},  # the same
    "data/fragment/deployment/checkpoints.py": {"read_schema"},  # the same
    "cloud/source/shape.py": {"read_schema"},  # the same
    "cloud/source/rows.py": {"open_stream", "read_schema"},  # the same
    "plan/expressions/codec.py": {"open_stream", "read_schema"},  # plans of users, which the coordinator sends
    "runtime/functions/frames.py": {"open_stream"},  # of a process with the rights of this one
    "runtime/adapters/files.py": {"ParquetFile", "open_file"},  # a user's file
    "services/transit/ring.py": {"read_table"},  # the same
    "api/session.py": {"open_stream"},  # an answer of the coordinator
}


def readers() -> dict[str, set[str]]:
    """What each module calls that reads bytes with Arrow."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names if n.module}
        named = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} | imported
        if read := (named & READS) - _of_ours(tree):
            found[path.relative_to(SOURCE).as_posix()] = read
    return found


def _of_ours(tree: ast.Module) -> set[str]:
    """The names that a module imports from other modules of ours."""
    froms = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("rove."))
    return {alias.name for n in froms for alias in n.names}


def test_bytes_of_others_reach_arrow_in_one_place_only() -> None:
    assert readers() == READERS

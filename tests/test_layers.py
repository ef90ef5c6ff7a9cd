"""Imports run one way, and what is light stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "rove"
# Each layer with those it may import.
MAY_IMPORT = {
    "model": set(),
    "plan": {"model"},
    "control": {"model", "plan"},
    "data": {"model", "plan"},
    "runtime": {"model", "plan", "control", "data"},
    "sim": {"model", "plan", "control", "data"},
    "cloud": {"model", "plan", "control", "data", "runtime"},
    "api": {"model", "plan", "control", "data", "runtime", "cloud"},
    "services": {"model", "api"},
    "cli": {"model", "plan", "control", "data", "runtime", "sim", "cloud", "api", "services"},
}
CORE = ("model", "plan", "data", "control", "sim")
# What a simulation leaves to chance is drawn from a seed.
SEEDED = {"sim": {"random"}}
# Only the coordinator's machine needs these.
COORDINATOR = {"control": {"rustworkx", "highspy"}, "runtime": {"prometheus_client"}}
IO = {
    "asyncio", "fcntl", "glob", "io", "linecache", "logging", "mmap", "os", "pathlib", "pyarrow.csv", "pyarrow.dataset",
    "pyarrow.feather", "pyarrow.fs", "pyarrow.orc", "queue", "random", "secrets", "select", "shutil", "signal",
    "socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "traceback", "uuid", "warnings",
}  # fmt: skip
# Calls that reach a file, a terminal or a clock without an import that says so.
IO_CALLS = {"breakpoint", "input", "open", "print"}
IO_METHODS = {
    "OSFile", "create_memory_map", "input_stream", "memory_map", "new_file", "now", "open_file", "output_stream",
    "read_bytes", "read_text", "today", "utcnow", "write_bytes", "write_text",
}  # fmt: skip
DEVICE = {"pyarrow", "zmq", "msgspec", "sqlglot"}


def modules(layer: str) -> list[Path]:
    return sorted((SOURCE / layer).rglob("*.py"))


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_a_layer_imports_only_those_below_it(layer: str) -> None:
    for path in modules(layer):
        ours = {m.split(".")[1] for m in imports(path) if m.startswith("rove.")}
        assert ours <= MAY_IMPORT[layer] | {layer}, path


@pytest.mark.parametrize("layer", CORE)
def test_the_core_knows_no_clock_file_thread_socket_or_chance(layer: str) -> None:
    for path in modules(layer):
        found = imports(path)
        found |= {m.split(".")[0] for m in found}
        assert not found & (IO - SEEDED.get(layer, set())), path


def calls(path: Path) -> set[str]:
    """What a module calls that opens, prints or reads a clock."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & IO_CALLS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found |= {node.func.attr} & IO_METHODS
    return found


@pytest.mark.parametrize("layer", CORE)
def test_the_core_opens_prints_and_looks_at_nothing(layer: str) -> None:
    for path in modules(layer):
        assert not calls(path), path


# What makes Arrow read bytes. It may end its process on bytes that nobody has checked.
READS = {
    "MessageReader", "ParquetFile", "RecordBatchFileReader", "RecordBatchStreamReader", "deserialize", "open_file",
    "open_stream", "read_message", "read_next_message", "read_pandas", "read_record_batch", "read_schema",
    "read_table", "read_tensor",
}  # fmt: skip
# Who may, and whose bytes they are. Rows of other nodes go through the first two only.
READERS = {
    "model/arrow_head.py": {"read_record_batch"},  # any, after a look at them
    "data/store/packing.py": {"ParquetFile"},  # any, after a look at their pages
    "data/log/segments/reader.py": {"read_record_batch", "read_schema"},  # this node's log, with a checksum
    "data/log/segments/recovery.py": {"read_schema"},  # the same
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


# What machines may be given that is not a value: none of it reads, writes or waits, but for `Disk`.
PORTS = {
    "control/topology/changes.py": {"Known"},
    "data/log/segments/commands.py": {"Disk"},
    "data/operators/logic.py": {"Logic", "Stateless"},
    "data/operators/pane_forms.py": {"OpenPane", "PaneForm"},
    "data/store/degrading.py": {"Degrading"},
    "data/store/eviction.py": {"Policy"},
    "data/store/kept_batch.py": {"Receipt"},
}
# Modules that read and write through a `Disk`, for shells to call.
DISK_WORK = {f"rove.data.log.segments.{name}" for name in ("commit", "read_back", "reader")}


def protocols(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(n, ast.Name) and n.id == "Protocol" for base in node.bases for n in ast.walk(base))
    }


@pytest.mark.parametrize("layer", ["model", "plan", "control", "data"])
def test_no_port_leads_a_machine_to_a_disk(layer: str) -> None:
    for path in modules(layer):
        name = path.relative_to(SOURCE).as_posix()
        assert protocols(path) == PORTS.get(name, set()), f"{name}: a machine asks with commands, not through a port"
        if f"rove.{name.removesuffix('.py').replace('/', '.')}" not in DISK_WORK:
            assert not imports(path) & DISK_WORK, name
            named = {n.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Name)}
            assert "Disk" not in named or name == "data/log/segments/commands.py", name


@pytest.mark.parametrize("layer", [*CORE, "runtime"])
def test_a_device_needs_only_its_four_packages(layer: str) -> None:
    for path in modules(layer):
        foreign = {m.split(".")[0] for m in imports(path)} - set(sys.stdlib_module_names) - {"rove"}
        assert foreign <= DEVICE | COORDINATOR.get(layer, set()), path


def test_a_worker_runs_without_what_only_the_coordinator_needs() -> None:
    others = "{'rustworkx', 'highspy', 'pyspark', 'prometheus_client'}"
    code = f"import sys, rove.runtime.process; print(sorted({others} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_import_rove_loads_nothing_heavy() -> None:
    heavy = "{'pyspark', 'pyarrow', 'sqlglot'}"
    code = f"import sys, rove; from rove import functions; print(sorted({heavy} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_planning_a_query_does_not_load_spark() -> None:
    code = """
import sys, rove
s = rove.Session.local().stream("s", schema="a int")
s.where("a > 1").explain()
print("pyspark" in sys.modules, "numpy" in sys.modules and "pandas" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1].split()[0] == "False"

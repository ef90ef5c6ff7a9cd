"""Imports run one way, and what is light stays light."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.layers import (
    CORE,
    MACHINES,
    MAY_IMPORT,
    SOURCE,
    core_violations,
    layer_violations,
    modules,
    name_of,
    packages,
    port_violations,
    unused_exceptions,
)

DEVICE = {"pyarrow", "zmq", "msgspec", "sqlglot"}
# Only the coordinator's machine needs these.
COORDINATOR = {"control": {"rustworkx", "highspy"}, "runtime": {"prometheus_client"}}


def test_every_folder_is_a_layer() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(MAY_IMPORT)


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_a_layer_imports_only_those_below_it(layer: str) -> None:
    assert not {name_of(p): found for p in modules(layer) if (found := layer_violations(name_of(p), p.read_text()))}


@pytest.mark.parametrize("layer", CORE)
def test_the_core_knows_no_clock_file_thread_socket_or_chance(layer: str) -> None:
    assert not {name_of(p): found for p in modules(layer) if (found := core_violations(name_of(p), p.read_text()))}


@pytest.mark.parametrize("layer", MACHINES)
def test_no_port_leads_a_machine_to_a_disk(layer: str) -> None:
    """A machine asks with commands. `PORTS` and `FUNCTIONS` in `tests/layers.py` list what else it may be given."""
    assert not {name_of(p): found for p in modules(layer) if (found := port_violations(name_of(p), p.read_text()))}


def test_no_exception_is_listed_that_nobody_needs() -> None:
    read = {name_of(p): p.read_text() for layer in MACHINES for p in modules(layer)}
    assert not {name: found for name, text in read.items() if (found := unused_exceptions(name, text))}


LAYER_PLANTS = {
    "a layer beside it": ("control/planted.py", "from rove.data.log.segments.disk_work import reader"),
    "a module of a layer beside it": ("control/planted.py", "from rove.data.log.segments import partition"),
    "a whole layer": ("control/planted.py", "from rove import data"),
    "a layer above": ("model/planted.py", "from rove import runtime"),
    "a module above": ("plan/planted.py", "import rove.runtime.shell"),
    "a relative import": ("data/link/planted.py", "from ...runtime import shell"),
    "a relative import of a whole layer": ("data/planted.py", "from .. import sim"),
    "a function of the API": ("plan/planted.py", "from rove import functions"),
    "the whole package": ("data/planted.py", "import rove"),
    "an import for types alone": (
        "data/planted.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rove.control.coordinator import Coordinator",
    ),
    "an import in a function": ("plan/planted.py", "def f():\n    from rove.cloud import compile"),
}


@pytest.mark.parametrize("plant", LAYER_PLANTS)
def test_an_import_of_another_layer_is_caught(plant: str) -> None:
    assert layer_violations(*LAYER_PLANTS[plant])


CORE_PLANTS = [
    "from pyarrow import fs",
    "from pyarrow import csv as table",
    "import pyarrow.parquet",
    "import pyarrow.dataset as ds",
    "import pyarrow as pa\npa.fs.LocalFileSystem()",
    "import pyarrow as pa\nsource = pa.OSFile('x')",
    "import pyarrow as pa\nsource = pa.memory_map('x')",
    "import importlib\nimportlib.import_module('time')",
    "from importlib import import_module\nimport_module('time').time()",
    "__import__('time').time()",
    "load = __import__",
    "import time",
    "from time import monotonic as beat",
    "from datetime import datetime\nNOW = datetime.now\nNOW()",
    "from datetime import datetime\nat = datetime.now()",
    "from datetime import date\nat = date.today()",
    "import datetime",
    "from datetime import datetime\nat = getattr(datetime, 'now')()",
    "class A:\n    def f(self):\n        return self.clock.now()",
    "import sys\nsys.stderr.write('x')",
    "class A:\n    def f(self):\n        self.stdout.write('x')",
    "print('x')",
    "said = print",
    "open('x')",
    "def f(path):\n    reader = open\n    return reader(path)",
    "def f():\n    exec('import time')",
    "eval('1')",
    "from concurrent.futures import ThreadPoolExecutor",
    "import concurrent.futures",
    "from concurrent import futures",
    "import multiprocessing",
    "from multiprocessing import Process",
    "import http.client",
    "from http import client",
    "from urllib import request",
    "import urllib.request",
    "import codecs\ncodecs.open('x')",
    "from codecs import open as read",
    "import zmq",
    "import asyncio",
    "import threading",
    "import logging",
    "from os import path",
    "import pathlib",
    "import io",
    "import random",
    "import secrets",
    "import uuid",
    "import warnings",
    "import socketserver",
    "import ssl",
    "import ctypes",
    "import numpy",
    "import pandas",
    "import pyspark",
    "async def f():\n    pass",
]


@pytest.mark.parametrize("layer", CORE)
@pytest.mark.parametrize("plant", CORE_PLANTS)
def test_io_in_the_core_is_caught(layer: str, plant: str) -> None:
    assert core_violations(f"{layer}/planted.py", plant)


def test_a_name_of_ones_own_is_no_builtin() -> None:
    text = "class A:\n    input: int\n    def f(self, input, open):\n        return open(input) + self.input"
    assert core_violations("plan/planted.py", text) == []


def test_what_one_module_may_do_no_other_may() -> None:
    assert core_violations("plan/user_functions.py", "from importlib import import_module") == []
    assert core_violations("plan/codec.py", "from importlib import import_module")
    assert core_violations("sim/planted.py", "from random import Random") == []
    assert core_violations("sim/planted.py", "from random import randint")
    assert core_violations("data/planted.py", "from random import Random")


PORT_PLANTS = {
    "a protocol": "from typing import Protocol\nclass Files(Protocol):\n    def read(self, name: str) -> bytes: ...",
    "a protocol by its module": "import typing\nclass Files(typing.Protocol):\n    def read(self) -> bytes: ...",
    "a protocol of a type": "from typing import Protocol\nclass Files(Protocol[T]):\n    def read(self) -> T: ...",
    "an abstract class": "import abc\nclass Files(abc.ABC):\n    @abc.abstractmethod\n    def read(self) -> bytes: ...",
    "an abstract class by name": "from abc import ABC\nclass Files(ABC):\n    def read(self) -> bytes: ...",
    "an abstract metaclass": "from abc import ABCMeta\nclass Files(metaclass=ABCMeta):\n    pass",
    "an abstract method": "from abc import abstractmethod\nclass Files:\n    @abstractmethod\n    def read(self): ...",
    "a function that is kept": (
        "from collections.abc import Callable\nclass Machine:\n"
        "    def __init__(self, write: Callable[[bytes], None]) -> None:\n        self._write = write"
    ),
    "a function in a field": "from collections.abc import Callable\nclass Machine:\n    write: Callable[[bytes], None]",
    "a function in an attribute": (
        "from collections.abc import Callable\nclass Machine:\n"
        "    def __init__(self, shell) -> None:\n        self._write: Callable[[bytes], None] = shell.write"
    ),
    "a function by another name": (
        "from collections.abc import Callable\nWrite = Callable[[bytes], None]\nclass Machine:\n"
        "    def handle(self, event: object, *, write: Write | None = None) -> None: ..."
    ),
    "a function by a name of another module": (
        "from rove.data.log.segments.carrier import Read as Look\nclass Machine:\n"
        "    def handle(self, event: object, look: Look) -> None: ..."
    ),
    "the disk": "from rove.data.log.segments.commands import Disk\nclass Machine:\n    disk: Disk",
    "disk work": "from rove.data.log.segments.disk_work import commit",
    "disk work by name": "from rove.data.log.segments.disk_work.commit import open_partition",
}


@pytest.mark.parametrize("plant", PORT_PLANTS)
def test_a_port_is_caught(plant: str) -> None:
    assert port_violations("data/planted.py", PORT_PLANTS[plant])


@pytest.mark.parametrize("layer", [*CORE, "runtime"])
def test_a_device_needs_only_its_four_packages(layer: str) -> None:
    for path in modules(layer):
        foreign = packages(name_of(path), path.read_text()) - set(sys.stdlib_module_names) - {"rove"}
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

"""Functions as users write them, good and bad. Their processes import this module by its name."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Batches = Iterator[pa.RecordBatch]
kept: list[bytearray | pa.Buffer] = []


class Unusual(BaseException):
    """Not one of the errors that programs catch."""


def same(batches: Batches) -> Batches:
    yield from batches


def chosen(batches: Batches) -> Batches:
    """Gives rows in the way that the text of the first row says."""
    for batch in batches:
        match batch["text"][0].as_py():
            case "some":
                yield batch.filter(pc.greater(batch["n"], 1))
            case "twice":
                yield batch
                yield batch
            case "all":
                yield batch


def faulty(batches: Batches) -> Any:
    """Has the fault that the text of the first row names."""
    batch = next(batches)
    match batch["text"][0].as_py():
        case "numbers":
            return [1, 2]
        case "nothing":
            return None
        case "a table":
            return [pa.table({"n": [1]})]
        case "other columns":
            return [pa.record_batch({"m": [1]})]
        case "a dictionary":
            return [pa.record_batch({"n": pa.array(["a"]).dictionary_encode(), "text": ["a"]})]
        case "raises":
            raise ValueError("no such sensor")
        case "raises late":
            return raises_after(batch)
        case "exits":
            sys.exit(3)
        case "interrupts":
            raise KeyboardInterrupt("stop")
        case "unusual":
            raise Unusual("what")


def raises_after(batch: pa.RecordBatch) -> Batches:
    yield batch
    raise KeyError("coach")


def bad(batches: Batches) -> Batches:
    """Does what the text of the first row says."""
    for batch in batches:
        misbehave(batch["text"][0].as_py())
        yield batch


def misbehave(how: str) -> None:
    match how:
        case "exit":
            os._exit(3)
        case "crash":
            ctypes.string_at(0)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "loop":
            while True:
                pass
        case "eat":
            while True:
                kept.append(bytearray(10_000_000))
        case "eat with Arrow":
            kept.extend(pa.allocate_buffer(1_000_000) for _ in range(400))
        case "leak":
            kept.append(bytearray(30_000_000))
        case "print":
            for n in range(50_000):
                print(f"{n} says a lot")
            os.write(1, b"x" * 100_000)
        case "read":
            assert sys.stdin.read() == ""
            input()
        case "fork":
            os.fork()
        case "leave a child":
            if os.fork() == 0:
                time.sleep(300)
            os._exit(4)
        case "start a program":
            subprocess.Popen(["sleep", "300"])
            while True:
                time.sleep(1)
        case "write":
            for descriptor in range(3, 100):
                try:
                    os.write(descriptor, b"here are some bytes that are no frame at all")
                except OSError:
                    continue
        case "close":
            os.closerange(3, 100)
            time.sleep(300)

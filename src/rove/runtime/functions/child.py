"""The process of one function: reads the function, then calls it with each batch that its node sends.

Law: nothing but frames goes through the pipes to the node. What the function prints goes to the node's log, and its
standard input is empty. The process ends when its node does.

    python -m rove.runtime.functions.child READS WRITES NODE      two descriptors, and the process id of the node
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute  # now, and not within the time of the first call

from rove.data.operators.map import called, name_of
from rove.model.errors import PlanError, UdfError
from rove.plan.user_functions import Function, by_value
from rove.runtime.functions.frames import (
    FRAME_BYTES_MAX,
    TEXT_CHARS_MAX,
    Call,
    EndOfPipe,
    Failed,
    Load,
    Pipe,
    Ready,
    Results,
    from_bytes,
    to_bytes,
)

OUT_OF_MEMORY = 71  # the exit code if a batch does not fit into the memory, not even before the call
FIRST_TO_KILL = "500"  # when the machine has no memory left, the system ends this process and not the node

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def main(reads: int, writes: int, node: int) -> NoReturn:
    """Answer frames until the node ends."""
    _end_with(node)
    for descriptor in (reads, writes):
        os.set_inheritable(descriptor, False)  # programs that the function starts
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    pa.array([0])  # the first array imports pandas, if it is installed, which takes seconds
    try:
        _serve(Pipe(reads, writes))
    except EndOfPipe:
        os._exit(0)  # threads of the function are not waited for
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _serve(pipe: Pipe) -> NoReturn:
    function: Function | None = None
    while True:
        head, rows = pipe.receive()
        match head:
            case Load():
                _bound_memory(head.memory_bytes)
                try:
                    function = by_value(head.word)
                    pipe.send(Ready(name_of(function)))
                except PlanError as error:
                    memory = isinstance(error.__cause__, MemoryError)
                    pipe.send(Failed(str(error)[:TEXT_CHARS_MAX], memory))
            case Call() if function is not None:
                _answer(pipe, function, rows, head.alarm_s)


def _answer(pipe: Pipe, function: Function, rows: memoryview, alarm_s: int) -> None:
    """Call the function. Whatever it raises is its own fault."""
    this = os.getpid()
    signal.alarm(alarm_s)
    try:
        found = [to_bytes(each) for each in called(function, from_bytes(rows))]
        size = sum(len(each) for each in found)
        if size > FRAME_BYTES_MAX:
            raise UdfError(
                f"mapInArrow function `{name_of(function)}` gave {size:,} bytes for one batch; the most is "
                f"{FRAME_BYTES_MAX:,}. Let it give less"
            )
        head: Results | Failed = Results(tuple(len(each) for each in found))
    except BaseException as error:
        found, memory = [], isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError)
        text = (
            str(error) if isinstance(error, UdfError) else f"mapInArrow function `{name_of(function)}` raised {error!r}"
        )
        head = Failed(text[:TEXT_CHARS_MAX], memory)
    signal.alarm(0)
    if os.getpid() != this:
        os._exit(0)  # a process that the function has forked came back from the call as well
    pipe.send(head, found)


def _end_with(node: int) -> None:
    """End when the node does, whatever the function is doing. Elsewhere than on Linux the end of the pipe and the alarm
    have to do."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != node:  # the node ended before
        os._exit(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_KILL)


def _bound_memory(more: int) -> None:
    """Bound the memory that this process may take from now on. Only Linux counts what is really taken."""
    if not more or not sys.platform.startswith("linux"):
        return
    status = Path("/proc/self/status").read_text()
    now = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (now + more, now + more))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))

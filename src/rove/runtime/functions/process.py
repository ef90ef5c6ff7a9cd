"""A user's function that runs in a process of its own, beside its node.

Law: whatever the function does, the call ends within its bound, and the node goes on. A process that passed a bound or
died is ended, and the next call starts another one. A function that fails so twice in a row rests: its batches are at
fault without a call, for as long as the failure took, and for twice as long each further time. A result resets that.
"""

from __future__ import annotations

import fcntl
import math
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from subprocess import DEVNULL

import pyarrow as pa

from rove.model.errors import FunctionFailed, PlanError, UdfError
from rove.plan import wire
from rove.runtime.functions.child import OUT_OF_MEMORY
from rove.runtime.functions.frames import (
    FRAME_BYTES_MAX,
    BadFrame,
    Call,
    EndOfPipe,
    Failed,
    Head,
    Load,
    Pipe,
    Ready,
    Results,
    TimeUp,
    from_bytes,
    to_bytes,
)

START_S_MAX = 30.0  # until a process has imported what its function needs
PIPE_BYTES = 1024 * 1024  # what Linux allows without a privilege; a larger pipe needs fewer turns for a batch
REST_S_MAX = 300.0  # of a function that fails again and again
TRY_S_MAX = 0.02  # a function that raised after a longer call is not called for parts of its batch
ALARM_S = 5  # after the bound of a call, when the process ends itself
ENDING_S_MAX = 1.0  # from the end of the pipe to the end of the process
ALLOCATOR = "system"  # Arrow's own one reserves a GiB at once, which would count as taken

_STANDARD_ERROR = 2


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of each call of a function, and of its process."""

    call_s: float = 10.0
    memory_bytes: int = 1024 * 1024 * 1024  # more than at the start of the process; 0 is no bound


class FunctionProcess:
    """The function, to be called as if it were here. Its process ends with `close`, or when nothing refers to it any
    more. Another call starts another one."""

    def __init__(self, word: wire.Function, bounds: Bounds) -> None:
        self.__name__ = word.name
        self._word, self._bounds = word, bounds
        self._child: _Child | None = None
        self._failures, self._rests_until_s = 0, 0.0
        self._last = ""
        self.needed_s = 0.0  # when a query needed it last
        self._start()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for data in batches:
            yield from self._call(data)

    @property
    def pid(self) -> int | None:
        """The process that runs now, if there is one."""
        return None if self._child is None else self._child.pid

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _call(self, data: pa.RecordBatch) -> list[pa.RecordBatch]:
        began_s = time.monotonic()
        if began_s < self._rests_until_s:
            raise FunctionFailed(
                f"{self._who} is not called for another {self._rests_until_s - began_s:.1f} s, because it failed "
                f"{self._failures} times in a row; the last time it {self._last}"
            )
        rows = to_bytes(data)
        if len(rows) > FRAME_BYTES_MAX:
            raise FunctionFailed(f"{self._who} got a batch of {len(rows):,} bytes; the most is {FRAME_BYTES_MAX:,}")
        try:
            child = self._child or self._start()
        except PlanError as error:
            raise self._failed(began_s, f"could not be started again: {error}") from error
        call_s = self._bounds.call_s
        try:
            head, found = child.ask(Call(math.ceil(call_s) + ALARM_S), [rows], call_s)
            results = _batches(head, found)
        except TimeUp as error:
            advice = "let it do less for a batch, or raise the setting function_ms"
            raise self._failed(began_s, f"took longer than {call_s:g} s and was ended; {advice}") from error
        except EndOfPipe as error:
            raise self._failed(began_s, self._ended(child.code())) from error
        except BadFrame as error:
            what = f"wrote into the pipe to its node ({error}); let it leave open files alone that are not its own"
            raise self._failed(began_s, what) from error
        if isinstance(results, Failed) and results.memory:
            raise self._failed(began_s, self._too_much)
        self._failures = 0
        if isinstance(results, Failed):
            slow = time.monotonic() - began_s > TRY_S_MAX
            raise FunctionFailed(results.text) if slow else UdfError(results.text)
        return results

    def _start(self) -> _Child:
        """Start the process and let it read the function. Refused for the reasons that reading has."""
        child = _Child()
        try:
            head, _ = child.ask(Load(self._word, self._bounds.memory_bytes), [], START_S_MAX)
        except TimeUp as error:
            child.end()
            raise PlanError(
                f"the function `{self._word.name}` could not be read within {START_S_MAX:g} s: let its module do less "
                "when it is imported"
            ) from error
        except (EndOfPipe, BadFrame) as error:
            what = self._ended(child.code())
            raise PlanError(f"the function `{self._word.name}` cannot be read: its module {what}") from error
        if not isinstance(head, Ready):
            child.end()
            text = head.text if isinstance(head, Failed) else "its process answered something else"
            raise PlanError(f"{text}; it {self._too_much}" if isinstance(head, Failed) and head.memory else text)
        self.__name__, self._child = head.name, child
        return child

    def _failed(self, began_s: float, what: str) -> FunctionFailed:
        """The process did not survive the call. End what is left of it."""
        self.close()
        now_s = time.monotonic()
        self._failures, self._last = self._failures + 1, what
        if self._failures > 1:
            self._rests_until_s = now_s + min(REST_S_MAX, (now_s - began_s) * 2 ** (self._failures - 2))
        return FunctionFailed(f"{self._who} {what}")

    @property
    def _who(self) -> str:
        return f"mapInArrow function `{self.__name__}`"

    @property
    def _too_much(self) -> str:
        size = self._bounds.memory_bytes / 2**20
        return (
            f"took more than {size:,.0f} MiB of memory; let it hold less at a time, or raise the setting "
            "function_memory_bytes"
        )

    def _ended(self, code: int | None) -> str:
        if code is None:
            return "closed the pipe to its node; let it close only what it has opened"
        if code == OUT_OF_MEMORY:
            return self._too_much
        if code == -signal.SIGKILL:
            return "was killed (SIGKILL), as the system does when no memory is left; let it hold less at a time"
        if code < 0:
            return f"crashed its process ({signal.Signals(-code).name}); look for a fault in a library that it uses"
        return f"ended its process with exit code {code}; let it raise an error instead"


class _Child:
    """One process, from its start to its end. It ends with this object at the latest."""

    def __init__(self) -> None:
        reads, its_writes = os.pipe()
        its_reads, writes = os.pipe()
        for descriptor in (reads, writes):
            with suppress(AttributeError, OSError):  # only Linux has it, and bounds the sum for each user
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        numbers = map(str, (its_reads, its_writes, os.getpid()))
        command = [sys.executable, "-m", "rove.runtime.functions.child", *numbers]
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)  # what the node can import
        try:
            process = subprocess.Popen(
                command,
                stdin=DEVNULL,
                stdout=_STANDARD_ERROR,
                pass_fds=(its_reads, its_writes),
                env={**os.environ, "PYTHONPATH": path, "ARROW_DEFAULT_MEMORY_POOL": ALLOCATOR},
                start_new_session=True,  # signals of the terminal are for the node
            )
        except OSError as error:
            os.close(reads)
            os.close(writes)
            raise PlanError(f"no process for functions can be started: {error.strerror}; free some memory") from error
        finally:
            os.close(its_reads)
            os.close(its_writes)
        self.pid = process.pid
        self._pipe = Pipe(reads, writes, partial(_lives, process.pid))
        self._end = weakref.finalize(self, _end, process, self._pipe)

    def ask(self, head: Head, rows: list[pa.Buffer], within_s: float) -> tuple[Head, memoryview]:
        deadline_s = time.monotonic() + within_s
        self._pipe.send(head, rows, deadline_s)
        return self._pipe.receive(deadline_s)

    def code(self) -> int | None:
        """The exit code of a process that has ended, or is about to. None if it still runs."""
        until_s = time.monotonic() + ENDING_S_MAX
        while _lives(self.pid):
            if time.monotonic() >= until_s:
                return None
            time.sleep(0.01)
        return self.end()

    def end(self) -> int | None:
        """End it. Returns its exit code the first time."""
        return self._end()


def _lives(pid: int) -> bool:
    """Whether a process of ours still runs. One that has ended keeps its number until it is ended here."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _end(process: subprocess.Popen[bytes], pipe: Pipe) -> int:
    """Kill a process and all processes that it has started. Returns its exit code."""
    pipe.close()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _batches(head: Head, rows: memoryview) -> list[pa.RecordBatch] | Failed:
    """The batches of an answer, or what went wrong."""
    if isinstance(head, Failed):
        return head
    if not isinstance(head, Results) or sum(head.sizes) != len(rows):
        raise BadFrame("this is no answer")
    found, at = [], 0
    for size in head.sizes:
        found.append(from_bytes(rows[at : at + size]))
        at += size
    return found

"""What a node and a function's process say to each other, over two pipes.

Law: one side asks, the other answers, and each frame is read whole before the next one is written; so large rows both
ways cannot block each other. The node waits no longer than its deadline. The function's process waits for ever; it
ends when the pipe closes, which happens when the node ends.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TypeAlias

import msgspec
import pyarrow as pa

from rove.plan import wire

FRAME_BYTES_MAX = 256 * 1024 * 1024  # of a frame's rows: four times what a link carries
TEXT_CHARS_MAX = 2_000  # of an error's text
LOOK_MS = 100  # how often a node that waits looks whether the process still lives

_SIZES = Struct("<IQ")  # the bytes of a head, and of the rows after it


class Load(msgspec.Struct, frozen=True, tag=True):
    """Read this function. Take at most so much memory more than now. 0 is no bound."""

    word: wire.Function
    memory_bytes: int


class Call(msgspec.Struct, frozen=True, tag=True):
    """Call the function with the batch that follows. End after `alarm_s`, in case the node has died and cannot end the
    process."""

    alarm_s: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The function is read. `name` is its own name."""

    name: str


class Results(msgspec.Struct, frozen=True, tag=True):
    """The batches that follow, by their bytes, are what the function gave."""

    sizes: tuple[int, ...]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The function cannot be read, or is at fault. With `memory`, it wanted more than its bound."""

    text: str
    memory: bool = False


Head: TypeAlias = Load | Call | Ready | Results | Failed

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Head] = msgspec.msgpack.Decoder(Head)


class EndOfPipe(Exception):
    """The other side has ended."""


class TimeUp(Exception):
    """The other side did not answer before the deadline."""


class BadFrame(Exception):
    """The other side wrote bytes that are no frame."""


class Pipe:
    """One end to read from the other side, and one to write to it. A side with deadlines gives `lives`, which says
    whether the other side still lives: a process that it has forked may hold its ends open."""

    def __init__(self, reads: int, writes: int, lives: Callable[[], bool] | None = None) -> None:
        self._reads, self._writes, self._lives = reads, writes, lives
        for descriptor in (reads, writes):
            os.set_blocking(descriptor, lives is None)

    def send(self, head: Head, rows: Sequence[pa.Buffer] = (), deadline_s: float = 0) -> None:
        """Write a frame. `deadline_s` is on the monotonic clock, and only for a side with deadlines."""
        said = _encoder.encode(head)
        parts = [_SIZES.pack(len(said), sum(len(each) for each in rows)) + said, *rows]
        for part in parts:
            left = memoryview(part).cast("B")
            while left:
                self._wait(self._writes, select.POLLOUT, deadline_s)
                try:
                    left = left[os.write(self._writes, left) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError as error:
                    raise EndOfPipe from error

    def receive(self, deadline_s: float = 0) -> tuple[Head, memoryview]:
        """Read a frame: its head and its rows."""
        size, rows = _SIZES.unpack(self._read(_SIZES.size, deadline_s))
        if max(size, rows) > FRAME_BYTES_MAX:
            raise BadFrame(f"a frame of {size + rows} bytes; the most is {FRAME_BYTES_MAX}")
        try:
            head = _decoder.decode(self._read(size, deadline_s))
        except msgspec.MsgspecError as error:
            raise BadFrame(str(error)) from error
        return head, self._read(rows, deadline_s)

    def close(self) -> None:
        os.close(self._reads)
        os.close(self._writes)

    def _read(self, size: int, deadline_s: float) -> memoryview:
        found = memoryview(bytearray(size))
        left = found
        while left:
            self._wait(self._reads, select.POLLIN, deadline_s)
            try:
                count = os.readv(self._reads, [left])
            except BlockingIOError:
                continue
            if not count:
                raise EndOfPipe
            left = left[count:]
        return found

    def _wait(self, descriptor: int, event: int, deadline_s: float) -> None:
        """Wait until a pipe can be used. A side without deadlines waits in the read or write itself."""
        if self._lives is None:
            return
        poller = select.poll()
        poller.register(descriptor, event)
        while (left_s := deadline_s - time.monotonic()) > 0:
            if poller.poll(min(LOOK_MS, left_s * 1_000)):
                return
            if not self._lives():
                raise EndOfPipe
        raise TimeUp


def to_bytes(batch: pa.RecordBatch) -> pa.Buffer:
    """A batch as an Arrow stream, with its schema and its dictionaries."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return stream.getvalue()


def from_bytes(rows: memoryview) -> pa.RecordBatch:
    """The batch that `to_bytes` wrote. Its columns are slices of the bytes."""
    try:
        batch = pa.ipc.open_stream(pa.py_buffer(rows)).read_next_batch()
        batch.validate(full=True)
    except Exception as error:  # Arrow and Python each have their own errors for bad bytes
        raise BadFrame(str(error)) from error
    return batch

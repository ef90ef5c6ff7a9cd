"""Checkpoints of the operators on a node with a disk, so that a restart computes only the input since the last one.

Law: a checkpoint holds what the operators of a query know after the input before one position. It is written when all
that they gave out before is safe: on the disk of an output, or acked by the next node. Until then the input before it
would still be needed, to give that out again. Nothing stops meanwhile.

A checkpoint is due when the input since the last one is some times as large as the state, and not before some bytes of
input and some time. So checkpoints write no more than a part of what the input takes, and a restart reads no more than
that and the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import pyarrow as pa

from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.ends.pending_input import PendingBatch
from rove.data.events import Note
from rove.data.fragment.deployment.fragments import Fragments
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.log.segments.checkpoint import Checkpoint
from rove.data.log.segments.commands import START, Position
from rove.data.settings import WorkerSettings
from rove.data.store.store import Store
from rove.data.turn import Turn
from rove.model.errors import StateError
from rove.model.ids import QueryId

TIMES = 4  # how often the state fits into the input since the last checkpoint, when the next one is due
ENTRY_BYTES = 256  # the bytes counted for an entry of the input besides its rows


@dataclass(frozen=True, slots=True)
class _Taken:
    """A checkpoint that waits until what was given out before it is safe: batches up to `order` in the store, and the
    folders of outputs as far as they were `reached`."""

    position: Position
    body: bytes
    order: int
    reached: dict[str, Position]
    recounts: int


@dataclass(slots=True)
class _Progress:
    """How far a query has computed its input, and how many bytes of it since the last checkpoint."""

    position: Position = START
    since_bytes: int = 0
    state_bytes: int = 0  # of the last checkpoint
    due_us: int = 0  # when the next one may be taken
    taken: _Taken | None = None


_Body: TypeAlias = tuple[dict[str, bytes], bytes]
_BODY = msgspec.msgpack.Decoder(_Body)


def body_of(folders: Mapping[str, pa.Schema], operators: bytes) -> bytes:
    """A checkpoint as bytes: the folders of outputs, which the next start has to open, and what the operators know."""
    return msgspec.msgpack.encode(({name: bytes(schema.serialize()) for name, schema in folders.items()}, operators))


def read_body(body: bytes) -> tuple[dict[str, pa.Schema], bytes]:
    """The inverse of `body_of`, for bytes whose checksum is right."""
    try:
        folders, operators = _BODY.decode(body)
        return {name: pa.ipc.read_schema(pa.py_buffer(data)) for name, data in folders.items()}, operators
    except (msgspec.DecodeError, pa.ArrowException) as error:
        raise StateError(f"this is no checkpoint: {error}") from error


class Checkpoints:
    """For all queries of one node."""

    def __init__(
        self,
        turn: Turn,
        fragments: Fragments,
        store: Store,
        output: Output,
        input_log: InputLog,
        settings: WorkerSettings,
    ) -> None:
        self._turn, self._fragments, self._store = turn, fragments, store
        self._output, self._input_log = output, input_log
        self._least_bytes, self._least_us = settings.checkpoint_bytes, settings.checkpoint_us
        self._progress: dict[QueryId, _Progress] = {}

    def restore(self, running: RunningFragment) -> Position:
        """Let operators go on from the checkpoint on the disk, if there is one. Returns the position of the first input
        that they have not taken. Their input log was just opened."""
        query = running.fragment.query
        found = self._input_log.checkpoint(query) or Checkpoint(START, b"")
        if found.body:
            folders, operators = read_body(found.body)
            running.restore(operators)
            self._output.open_again(query, folders)
        self._progress[query] = _Progress(found.position, state_bytes=len(found.body))
        return found.position

    def computed(self, batch: PendingBatch) -> None:
        """A batch of the input log was computed. O(1)."""
        progress = self._progress.get(batch.query)
        if progress is not None:
            progress.position = Position(batch.position + 1)
            progress.since_bytes += ENTRY_BYTES + (0 if batch.payload is None else len(batch.payload))

    def forget(self, query: QueryId) -> None:
        """The node has left or stopped a query."""
        self._progress.pop(query, None)

    def advance(self) -> None:
        """Take the checkpoints that are due, and write those that wait if they may be written. O(queries with an input
        log, and the state of those that are due)."""
        for query, progress in self._progress.items():
            running = self._fragments.running.get(query)
            if running is None:
                continue
            if progress.taken is not None:
                self._write(running, progress, progress.taken)
            elif self._turn.now >= progress.due_us and progress.since_bytes >= self._due_bytes(progress):
                self._take(running, progress)

    def _due_bytes(self, progress: _Progress) -> int:
        return max(self._least_bytes, TIMES * progress.state_bytes)

    def _take(self, running: RunningFragment, progress: _Progress) -> None:
        query = running.fragment.query
        if self._input_log.is_keeping(query) or any(s.kind == "discard" for s in running.fragment.sinks.values()):
            return  # what is discarded is counted in memory only
        reached = self._output.reached(query)
        operators = None if reached is None else running.save()
        if reached is None or operators is None:
            return
        body, recounts = body_of(self._output.columns(query), operators), running.pipeline.recounts
        progress.taken = _Taken(progress.position, body, self._store.order, reached, recounts)
        progress.since_bytes, progress.state_bytes = 0, len(body)
        progress.due_us = self._turn.now + self._least_us

    def _write(self, running: RunningFragment, progress: _Progress, taken: _Taken) -> None:
        query = running.fragment.query
        if running.pipeline.recounts != taken.recounts:  # its counts are not those that a restart would have
            progress.taken = None
        elif self._has_left(query, taken.order) and self._output.is_safe(taken.reached):
            progress.taken = None
            if not self._input_log.keep(query, taken.position, taken.body):
                text = f"the operators of query `{query}` hold {len(taken.body):,} bytes, too many for a checkpoint"
                self._turn.commands.append(Note(f"{text}; a restart computes the input since the last one again"))

    def _has_left(self, query: QueryId, order: int) -> bool:
        """Whether the next node has acked what this node answers for, up to an order in the store. O(batches of the
        query that others answer for)."""
        own = (entry for entry in self._store.of(query) if entry.receipt is None and entry.original is None)
        return all(entry.order > order for entry in own)

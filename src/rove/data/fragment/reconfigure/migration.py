"""A migration: the state of one operator on its way to another node.

Law: the old node stops taking rows before it sends the first piece. The first piece has the frontier: which batches of
each origin the state holds. The new node takes the batches beyond the frontier, and no others. So every batch is in the
state once, whichever way it comes. The old node keeps the state until the coordinator says that it has arrived.

The pieces are batches of an origin of their own. They pass links, stores, disks and input logs like any other batch.
The watermark of a piece says up to which time all windows are complete with it; the operator waits for it as for the
watermark of any other origin. So a window waits for its own state, and never for the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

import msgspec
import pyarrow as pa

from rove.data.fragment.build import Step
from rove.data.fragment.intake import Intake
from rove.data.fragment.reconfigure.pace import Pace
from rove.data.operators.logic import Logic
from rove.data.operators.open_rows import Closing
from rove.data.operators.pieces import UNTIL, WHOLE
from rove.data.rows import encode_rows
from rove.model.batch import Batch, Header, without_rows
from rove.model.clock import END, MICROS_MIN
from rove.model.errors import ProtocolError, StateError
from rove.model.ids import Origin
from rove.model.lifecycle import Machine, Table
from rove.model.messages import ROWS_BYTES_MAX
from rove.model.spans import Spans
from rove.model.state import Snapshot, decode, encode

PIECE = "piece"
PIECE_BYTES = 4_096  # what a piece adds to the rows in it, at most
STATE_SCHEMA = pa.schema([(PIECE, pa.binary())])


class ArrivalState(Enum):
    """How much of an operator's state has arrived."""

    WAITS = "waits"  # nothing: batches are held until the frontier says where the state ends
    MERGES = "merges"  # the frontier: rows are taken, and windows close as far as their state is there
    WHOLE = "whole"


class ArrivalEvent(Enum):
    FRONTIER = "frontier"
    PIECE = "piece"
    LAST = "last piece"
    GIVEN_UP = "given up"  # the rest of the state is lost


_S, _E = ArrivalState, ArrivalEvent
ARRIVAL: Table[ArrivalState, ArrivalEvent] = {
    _S.WAITS: {_E.FRONTIER: _S.MERGES, _E.GIVEN_UP: _S.WHOLE},
    _S.MERGES: {_E.PIECE: _S.MERGES, _E.LAST: _S.WHOLE, _E.GIVEN_UP: _S.WHOLE},
    _S.WHOLE: {},
}


class OpenBatches(msgspec.Struct, frozen=True, array_like=True):
    """Batches of an origin with rows in windows that close at certain watermarks."""

    origin: Origin
    closing: tuple[Closing, ...]


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """The batches of an origin that an operator has taken: from `begin` up to `next`, without it and without gaps that
    were `skipped`. An origin that is `gone` sends no more. One that begins `anywhere` was forgotten by a node without a
    disk."""

    origin: Origin
    begin: int
    next: int
    gone: bool
    anywhere: bool
    mark: int | None  # its watermark
    skipped: Spans = ()
    released: bool = False  # whether its later batches are taken elsewhere


class StateFrontier(msgspec.Struct, frozen=True, array_like=True):
    """Where a state ends: the batches that it holds, and the watermark up to which its windows are closed. A node
    without a disk `forgets`: an earlier start of it may have taken batches of any origin."""

    taken: tuple[Taken, ...]
    low: int
    open: tuple[OpenBatches, ...]
    forgets: bool


class EarlyBatch(msgspec.Struct, frozen=True, array_like=True):
    """A batch that came too early for the operator, with its `name` there."""

    name: Origin
    header: Header
    rows: bytes | None


class PieceBody(msgspec.Struct, frozen=True, array_like=True):
    """The content of one piece. The first piece has the frontier. A piece with an early batch has no state."""

    state: bytes
    frontier: StateFrontier | None = None
    last: bool = False
    early: EarlyBatch | None = None


_DECODER = msgspec.msgpack.Decoder(PieceBody)


def read_piece(batch: Batch, schemas: Mapping[str, pa.Schema]) -> tuple[PieceBody, Snapshot | None]:
    """The content of a piece of a state with these tables. Bytes that are no piece raise a ProtocolError."""
    try:
        if batch.data is None:
            raise StateError("its rows are lost")
        body = _DECODER.decode(batch.data.column(0)[0].as_py())
        return body, None if body.early is not None else decode(body.state, schemas)
    except (msgspec.DecodeError, StateError, pa.ArrowException, ValueError, IndexError, TypeError) as error:
        raise ProtocolError("malformed", f"piece {batch.header.seq} of `{batch.header.origin}`: {error}") from error


class Leaving:
    """The state of an operator that has ended here. It is kept until it has arrived, and its batches count as held here
    until then. If its new node is outside the route of the rows, the `early` batches go with it, because rows do not
    pass that node."""

    def __init__(
        self,
        step: Step,
        logic: Logic,
        intake: Intake,
        origin: Origin,
        taken: list[tuple[str, Origin, Spans]],
        early: list[tuple[Origin, Batch]] | None = None,
    ) -> None:
        self.stage, self.origin = step.stage, origin
        self.early = early or []
        self.origins = frozenset(name.unsided for name in intake.known())
        self.open, self.taken = step.open, taken
        self._logic, self._intake = logic, intake
        self._frontier = frontier_of(step, intake)
        self._pieces, self.pace = self._batches(), Pace()
        self.sent = False  # whether all pieces were passed on

    def again(self, origin: Origin) -> None:
        """Send everything again under another name, because the node that took it has lost it."""
        self.origin, self._pieces, self.pace, self.sent = origin, self._batches(), Pace(), False

    def next(self) -> Batch | None:
        """The next piece; None if there are no more."""
        found = next(self._pieces, None)
        self.sent = found is None
        return found

    def took(self, origin: Origin, seq: int) -> bool:
        """Whether the state holds a batch."""
        return any(self._intake.took(name, seq) for name in self._intake.table() if name.unsided == origin)

    def _batches(self) -> Iterator[Batch]:
        begins = self._logic.beginning()
        until, last = begins.facts.get(UNTIL, WHOLE), len(self.early)
        yield self._batch(0, until, PieceBody(encode(begins), self._frontier, until == WHOLE and not self.early))
        for seq, (name, batch) in enumerate(self.early, 1):
            yield self._batch(seq, until, PieceBody(b"", None, until == WHOLE and seq == last, _early(name, batch)))
        for seq, piece in enumerate(self._logic.pieces(), 1 + len(self.early)):
            yield self._batch(seq, piece.until, PieceBody(encode(piece.state), None, piece.until == WHOLE))

    def _batch(self, seq: int, until: int, body: PieceBody) -> Batch:
        data = pa.RecordBatch.from_arrays([pa.array([msgspec.msgpack.encode(body)], pa.binary())], schema=STATE_SCHEMA)
        mark = self._logic.complete_until(until)
        return Batch(
            Header(origin=self.origin, seq=seq, through=seq, watermark=mark, stage=self.stage, rows=1, state=True),
            data,
        )


def _early(name: Origin, batch: Batch) -> EarlyBatch:
    header, rows = batch.header, encode_rows(batch.data)
    if rows is not None and len(rows) > ROWS_BYTES_MAX - PIECE_BYTES:  # too large for a link
        return EarlyBatch(name, without_rows(header), None)
    return EarlyBatch(name, header, None if rows is None else bytes(rows))


class Arriving:
    """The arrived part of a state whose operator goes on here: `at_once`, or when all of it is here. Its tables have
    these `schemas`. The state may arrive `again`, after it was lost here."""

    def __init__(
        self, origin: Origin, schemas: Mapping[str, pa.Schema], at_once: bool = True, again: bool = False
    ) -> None:
        self.origin, self.schemas, self.at_once, self.again = origin, schemas, at_once, again
        self.machine = Machine(ARRIVAL, ArrivalState.WAITS, f"the arrival of `{origin}`")
        self.open: tuple[OpenBatches, ...] = ()  # those of the frontier
        self.complete_until = MICROS_MIN  # windows that close up to this watermark have their whole state
        self._pieces = Intake([origin])

    @property
    def has_frontier(self) -> bool:
        return self.machine.state is not ArrivalState.WAITS

    def incomplete(self) -> Iterator[tuple[Origin, list[Closing]]]:
        """The rows of the frontier whose windows have not got their whole state. O(open windows × origins)."""
        for each in self.open:
            yield each.origin, [closing for closing in each.closing if closing[0] > self.complete_until]

    def in_order(self, piece: Batch) -> list[Batch]:
        """The pieces that are next, after this one has arrived. A piece that arrived before is dropped."""
        return self._pieces.offer(self.origin, piece)


def frontier_of(step: Step, intake: Intake) -> StateFrontier:
    """The frontier of a step that takes no more rows."""
    marks = {} if step.waits is None else step.waits.everything()
    taken = tuple(
        Taken(*each[:5], marks.get(each[0]), each[5], each[0] in intake.released) for each in intake.everything()
    )
    opened = tuple(OpenBatches(*each) for each in step.open.everything().items())
    return StateFrontier(taken, END if step.waits is None else step.waits.low, opened, intake.forgets)


def take_frontier(step: Step, intake: Intake, frontier: StateFrontier) -> dict[Origin, int]:
    """Let a step begin at a frontier. Returns the rows that are open with it, by origin."""
    intake.take_over(
        (each.origin, each.begin, each.next, each.gone, each.anywhere, each.skipped) for each in frontier.taken
    )
    intake.released |= {each.origin for each in frontier.taken if each.released}
    if frontier.forgets:
        intake.begin_anywhere()
    if step.waits is not None:
        step.waits.take_over({each.origin: each.mark for each in frontier.taken if each.mark is not None}, frontier.low)
    for each in frontier.open:
        step.open.put(each.origin, each.closing)
    return step.open.rows()

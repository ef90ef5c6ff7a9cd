"""The entrance to a node's fragments, for batches of links and of the node's own sources.

Law: a batch of a query that is unknown here waits, and its sender keeps it. A batch that cannot be taken is refused and
counted as lost, once; it does not hold up the batches behind it. Rows that only pass by are not decoded. `pipeline`
knows which operators a batch still lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from rove.data.accounts import Accounts
from rove.data.ends.exits import Exits
from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.fragment.deployment.fragments import Fragments
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.parking import Parked, Parking
from rove.data.link.receipts import FrameReceipt
from rove.data.link.unheard import Confirmation, Unheard
from rove.data.sources.sources import Sources
from rove.data.turn import Turn
from rove.model.batch import Batch, Header, without_rows
from rove.model.errors import ProtocolError, RoveError
from rove.model.events import Conn, Payload, Send
from rove.model.ids import QueryId, Stage
from rove.model.messages import Refused


@dataclass(slots=True, kw_only=True, eq=False)
class Entrance:
    """For all queries of one node."""

    turn: Turn
    fragments: Fragments
    parking: Parking
    unheard: Unheard
    sources: Sources
    output: Output
    input_log: InputLog
    exits: Exits
    accounts: Accounts

    def take(self, header: Header, payload: Payload | None, receipt: FrameReceipt, conn: Conn) -> None:
        """Take a batch of a peer."""
        query = QueryId(header.query)
        running = self.fragments.running.get(query)
        if running is None:
            if query in self.fragments.stopped:
                self.accounts.refuse("stopped")
                receipt.release()
                return
            self.parking.put(query, Parked(header, payload, receipt))
            return
        if running.came_behind(header):  # it is not acked, because its sender takes it back
            self.accounts.refuse("behind a state")
            return
        self.accounts.found(query, header)
        try:
            self._advance(running, header, payload, receipt, conn)
        except RoveError as error:
            why = error.why if isinstance(error, ProtocolError) else type(error).__name__
            self.refuse(conn, why, str(error))
            self.accounts.write_off(query, header)
            running.lost(error)
        finally:  # a frame that cannot be taken must not hold up the frames behind it
            receipt.release()

    def refuse(self, conn: Conn, why: str, text: str) -> None:
        """Count a refused batch, and tell its sender."""
        self.accounts.refuse(why)
        self.turn.commands.append(Send(conn, Refused(why, text)))

    def feed(self, running: RunningFragment, stream: str, batch: Batch) -> None:
        """Give a batch of one of this node's sources to a query that may read its stream."""
        stage = running.sources.get(stream)
        if stage is None:
            return
        query, header = running.fragment.query, batch.header
        rows = header.born * running.ends[stage]
        counts, gets = self.sources.gives(query, header, rows, running.forks(header.origin))
        if counts:
            self.accounts.produced(query, header, rows)
        if not gets:
            return
        if running.remembers and self.output.durable:
            header = replace(header, query=query, stage=stage)
            self.input_log.append(running, header, self.turn.shared.encoded(batch.data), None)
            return
        self.run(running, stage, batch, None, None)

    def run(
        self,
        running: RunningFragment,
        stage: Stage,
        batch: Batch,
        payload: Payload | None,
        receipt: FrameReceipt | None,
    ) -> None:
        """Process a batch here, and pass the output on. A stateful operator that has not written it to a disk waits
        until its sender has heard the ack."""
        confirmation = Confirmation(running.fragment.query, receipt) if receipt and running.remembers else None
        before = running.pipeline.duplicates
        emitted = running.process(stage, batch, confirmation)
        if confirmation is not None and receipt is not None:
            self.unheard.wait(receipt, confirmation)
            if running.pipeline.duplicates > before:
                self.exits.came_again(running, batch.header, receipt)
        self.exits.emit(running, emitted, batch, payload, receipt)

    def _state(
        self, running: RunningFragment, header: Header, payload: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Take a piece of state if its operator runs here. Otherwise pass it on; so is a piece that has a route of its
        own."""
        led = header.origin in running.fragment.leads
        if led or not running.pipeline.moves.takes(Stage(header.stage)):
            self._pass_on(running, header, payload, receipt)
        elif running.remembers and self.output.durable:
            self.input_log.append(running, header, payload, receipt)
        else:
            self.merge(running, header, payload)

    def merge(self, running: RunningFragment, header: Header, payload: Payload | None) -> None:
        """Merge a piece of state into its operator here, and pass on what this causes. If the operator has left in the
        meantime, the piece follows it."""
        stage = Stage(header.stage)
        if running.pipeline.moves.takes(stage):
            self.exits.emit(running, running.pipeline.moves.take(stage, running.read(header, payload), running.read))
        else:
            self._pass_on(running, header, payload, None)

    def _pass_on(
        self, running: RunningFragment, header: Header, payload: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Pass a piece on. A piece that reaches the end of its query belongs to a state that has arrived or was given
        up, and is refused."""
        if running.way(header) is None:
            self.accounts.refuse("an old piece")
        else:
            self.exits.forward(running, header, payload, receipt)

    def hear(self) -> None:
        """Compute batches whose senders have heard the ack since."""
        for confirmation in self.unheard.settled(self.turn.now):
            running = self.fragments.running.get(confirmation.query)
            if running is not None:
                try:
                    self.exits.emit(running, running.pipeline.confirmed(confirmation))
                except RoveError as error:
                    self.accounts.refuse(type(error).__name__)
                    running.lost(error)

    def _advance(
        self, running: RunningFragment, header: Header, payload: Payload | None, receipt: FrameReceipt, conn: Conn
    ) -> None:
        """Apply this node's operators to one batch. If its rows cannot be read they are lost, and its name goes on, so
        that no operator waits for it."""
        running.check(header)
        if header.state:
            self._state(running, header, payload, receipt)
            return
        try:
            header, payload = running.opened(header, payload)
            batch = running.read(header, payload) if running.touches(header.stage) and not header.late else None
        except ProtocolError as error:
            if header.late:
                raise
            self.refuse(conn, error.why, str(error))
            running.lost(error)
            header = without_rows(header)
            payload, batch = None, Batch(header) if running.touches(header.stage) else None
        if header.late:
            if running.fragment.sinks:
                running.read(header, payload)
            self.exits.late(running, header, payload, receipt)
            return
        if batch is None:
            self.exits.forward(running, header, payload, receipt)
        elif running.remembers and self.output.durable:
            self.input_log.append(running, header, payload, receipt)
        else:
            self.run(running, Stage(header.stage), batch, payload, receipt)

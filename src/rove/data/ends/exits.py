"""The exits of a node: output of operators, and batches that pass by, go to a sink here or to the next node.

Law: the sender of a batch keeps it until its results are safe. A batch for the next node is in the store until it is
acked. If there is no room for it, retention decides what is evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from rove.data.ends.output import Output
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.receipts import FrameReceipt, Receipts
from rove.data.link.routes import Routes
from rove.data.sources.sources import Sources
from rove.data.store.retention import Retention
from rove.data.store.store import Store
from rove.data.turn import Turn
from rove.model.batch import Batch, Header
from rove.model.errors import ProtocolError, UnknownOrigin
from rove.model.events import Payload
from rove.model.ids import QueryId
from rove.model.messages import ROWS_BYTES_MAX


class Exits:
    """The output, store, routes and sources of one node, for its queries. `count` counts batches that could not be
    passed on."""

    def __init__(
        self,
        turn: Turn,
        store: Store,
        output: Output,
        retention: Retention,
        routes: Routes,
        sources: Sources,
        queries: Mapping[QueryId, RunningFragment],
        count: Callable[[str], None],
    ) -> None:
        self._turn, self._store, self._output, self._retention = turn, store, output, retention
        self._routes, self._sources, self._queries, self._count = routes, sources, queries, count

    def emit(
        self,
        running: RunningFragment,
        emitted: list[Emitted],
        batch: Batch | None = None,
        payload: Payload | None = None,
        receipt: FrameReceipt | None = None,
    ) -> None:
        """Pass output on, with the received batch that it came from, if any. Unchanged rows are not encoded again."""
        for each in emitted:
            if each.fault is not None:
                self._count(type(each.fault).__name__)
                if each.batch.data is None:  # a window
                    running.lost(each.fault)
                    continue
            same = batch is not None and each.batch.data is batch.data
            header = replace(each.batch.header, query=running.fragment.query, stage=each.stage)
            rows = payload if same and payload is not None else self._turn.shared.encoded(each.batch.data)
            if rows is not None and len(rows) > ROWS_BYTES_MAX:  # too large for a link, so only its header goes on
                self._count("oversize")
                header, rows = replace(header, rows=0, born=0, lost=header.lost + header.born), None
            if each.late:
                self.late(running, header, rows, receipt)
            else:
                self._out(running, each, header, rows, receipt, made=rows is not payload)

    def _out(
        self,
        running: RunningFragment,
        each: Emitted,
        header: Header,
        rows: Payload | None,
        receipt: FrameReceipt | None,
        made: bool,
    ) -> None:
        sink = running.fragment.sinks.get(each.stage)
        if sink is not None:
            self._output.take(running, each.stage, sink, header, rows, receipt)
        if each.passes and running.route is None:
            raise UnknownOrigin(
                f"no operator here waits for origin `{header.origin}`; deploy its query with this origin"
            )
        if running.leaves(each.stage) or each.passes:
            self.forward(running, header, rows, receipt, made)

    def late(
        self, running: RunningFragment, header: Header, rows: Payload | None, receipt: FrameReceipt | None
    ) -> None:
        """Pass late rows on to the end of their query."""
        if running.fragment.sinks:
            self._output.take_late(running, header, rows, receipt)
        else:
            self.forward(running, header, rows, receipt)

    def forward(
        self,
        running: RunningFragment,
        header: Header,
        rows: Payload | None,
        receipt: FrameReceipt | None,
        made: bool = False,
    ) -> None:
        """Pass a batch on to the next node. Its sender keeps it until the next node has acked it. Its rows were `made`
        here, or came as they are."""
        if running.way(header) is None:
            raise ProtocolError("unexpected", f"query `{header.query}` has no next node here for stage {header.stage}")
        again = running.replays or self._sources.sent_before(header)
        if receipt is not None:
            receipt.hold()
        entry = self._store.put(header, rows, receipt, self._turn.now, alone=again)
        self._turn.commands += self._routes.send(running, entry, self._turn.now, running.fragment.overtakes)
        if not entry.number:
            self._turn.commands += self._retention.waits(entry, running, self._turn.now, made)
        if self._store.room < 0:
            self._make_room(QueryId(header.query))

    def came_again(self, running: RunningFragment, header: Header, receipt: FrameReceipt) -> None:
        """A batch came again, and an operator dropped it. What was made of it before may still be on its way, with the
        receipt of a frame that its sender has back. So the new frame waits for that too. O(origins with batches)."""
        for entry in self._store.newest_of(running.fragment.query, header):
            if entry.receipt is not None:  # otherwise this node answers for it
                receipt.hold()
                entry.receipt = Receipts(entry.receipt, receipt)

    def _make_room(self, query: QueryId) -> None:
        for evicted in self._retention.make_room(query, self._queries):
            self._turn.commands.append(evicted)
            running = self._queries.get(evicted.query)
            if running is not None:
                self._routes.sweep(running)

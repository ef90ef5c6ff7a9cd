"""The states that leave a node, for all its queries.

Law: an operator ends here at one point of its input: at once, or where its input log says so. What comes after that
point goes on to the node that has the operator. Pieces are passed on at a pace that leaves room for rows. A state has
left when all its pieces, and everything that this node has acked and computed before, are acked by the next node.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from rove.data.ends.exits import Exits
from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.ends.pending_input import PendingInput
from rove.data.fragment.deployment.fragments import Fragments
from rove.data.fragment.reconfigure.migration import Leaving
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.rows import encode_rows
from rove.data.store.store import Store
from rove.model.ids import Origin, QueryId
from rove.model.messages import Released


@dataclass(slots=True, eq=False)
class LeavingStates:
    """For all queries of one node."""

    fragments: Fragments
    store: Store
    output: Output
    input_log: InputLog
    exits: Exits
    pending: PendingInput

    def begin(self, running: RunningFragment) -> RunningFragment:
        """Operators end here, and their states begin to leave. Returns the fragment that goes on. O(open windows ×
        origins)."""
        running, early = running.send_states()
        self.fragments.running[running.fragment.query] = running
        for leaving in running.pipeline.moves.leaving.values():
            self._pass_on(running, leaving)  # the frontier
        self.exits.emit(running, early)
        return running

    def pump(self, now: int) -> None:
        """Pass pieces on, while there is room here and on the way. O(states that leave, and pieces)."""
        for query, running in self.fragments.running.items():
            for leaving in running.pipeline.moves.leaving.values():
                while (
                    not leaving.sent
                    and self.store.room > self.output.pending_bytes + self.input_log.pending_bytes
                    and leaving.pace.has_room(self.store.pieces_of(query, leaving.origin), now)
                ):
                    leaving.pace.sent(now)
                    self._pass_on(running, leaving)

    def moved(self) -> tuple[tuple[QueryId, Origin], ...]:
        """The states that have left or reached this node completely. O(states, and batches of their queries)."""
        return tuple(
            (query, origin)
            for query, running in self.fragments.running.items()
            for origin in (*self._left(running), *running.arrived())
        )

    def released(self) -> tuple[Released, ...]:
        """The origins that operators here have let go, and of which nothing is left here but what is in their windows.
        O(these origins, and batches of their queries)."""
        return tuple(
            Released(query, origin, begin)
            for query, running in self.fragments.running.items()
            for devices in [{o.node for each in running.fragment.releases.values() for o in each}]
            for origin, begin in running.pipeline.shares.released.items()
            if origin.node in devices and not running.replays and not self._answers_for(running, origin)
        )

    def _answers_for(self, running: RunningFragment, origin: Origin) -> bool:
        """Whether this node keeps batches of an origin's device that nobody below has any more, or the last ones of
        operators that all have left."""
        own = (e for e in self.store.of(running.fragment.query) if e.receipt is None and e.original is None)
        return any(running.pipeline.shares.deserted() or e.header.origin.node == origin.node for e in own)

    def _left(self, running: RunningFragment) -> list[Origin]:
        query, leaving = running.fragment.query, running.pipeline.moves.leaving.values()
        if not leaving or running.replays or self.pending.has(query) or self.input_log.is_writing(query):
            return []
        if any(entry.receipt is None and entry.original is None for entry in self.store.of(query)):
            return []
        return [each.origin for each in leaving if each.sent]

    def _pass_on(self, running: RunningFragment, leaving: Leaving) -> None:
        if (batch := leaving.next()) is not None:
            header = replace(batch.header, query=running.fragment.query)
            self.exits.forward(running, header, encode_rows(batch.data), None)

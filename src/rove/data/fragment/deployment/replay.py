"""Feeds stateful operators from their input log: batches that have just become safe, and after a restart all earlier
input.

Law: batches are computed in order, and only while there is room for their output. A query waits for input that cannot
be read now, and goes on without input that is gone, which is counted and named.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from rove.data.accounts import Accounts
from rove.data.ends.exits import Exits
from rove.data.ends.input_log import InputLog
from rove.data.ends.output import Output
from rove.data.ends.pending_input import PendingBatch, PendingInput
from rove.data.ends.wait_changes import apply_change
from rove.data.events import LogRead
from rove.data.fragment.deployment.checkpoints import Checkpoints
from rove.data.fragment.deployment.fragments import Fragments
from rove.data.fragment.entrance import Entrance
from rove.data.fragment.lifecycle import FragmentEvent
from rove.data.fragment.reconfigure.leaving_states import LeavingStates
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.sources.sources import Sources
from rove.data.store.store import Store
from rove.data.turn import Turn
from rove.model.batch import Header, HeaderKind, empty
from rove.model.clock import MICROS_MIN
from rove.model.disk_folders import InputFolder, read_folder
from rove.model.errors import BrokenInvariant, DiskError, RoveError
from rove.model.events import Payload
from rove.model.ids import Stage


@dataclass(slots=True, kw_only=True, eq=False)
class Replay:
    """For all queries of one node. `pending` holds the input that is still to be computed."""

    turn: Turn
    fragments: Fragments
    store: Store
    output: Output
    input_log: InputLog
    entrance: Entrance
    exits: Exits
    accounts: Accounts
    leaving_states: LeavingStates
    pending: PendingInput
    sources: Sources
    checkpoints: Checkpoints

    def became_safe(self, batches: list[PendingBatch]) -> None:
        """These batches are on the disk now."""
        if batches:
            self.pending.in_memory(batches)
        self.catch_up()

    def read(self, event: LogRead) -> None:
        """A part of a query's earlier input was read back."""
        folder = read_folder(event.folder)
        if not isinstance(folder, InputFolder):
            raise BrokenInvariant(f"`{event.folder}` was read back, and is no folder of input")
        query = folder.query
        for why in event.unread:
            self.accounts.refuse("damaged")
            if (running := self.fragments.running.get(query)) is not None:
                running.lost(DiskError(f"in {event.folder}, {why}"))
        self.pending.read(event, self.turn.now)
        self.catch_up()

    def catch_up(self) -> None:
        """Compute safe input in order, while there is room for the output, and request more. Input that is on no disk
        is safe to compute when its ack was heard."""
        self.entrance.hear()
        while self.store.room > self.output.pending_bytes + self.input_log.pending_bytes:
            found = self.pending.next()
            if found is None:
                break
            if isinstance(found, PendingBatch):
                self._again(found)
                self.checkpoints.computed(found)
            elif (running := self.fragments.running.get(found.query)) is not None:
                running.machine.step(FragmentEvent.CAUGHT_UP)
                self._close_gaps(running)
        self.turn.commands += self.pending.ask(self.turn.now)

    def _close_gaps(self, running: RunningFragment) -> None:
        """A source here does not make batches again that were on the disk. If the disk has lost some of them, operators
        would wait for these for ever: they go on without, and the loss is named. O(sources, and batches held)."""
        query = running.fragment.query
        for origin in running.fragment.feeds:
            for first, last in running.pipeline.gaps(origin, self.sources.first_unsafe(query, origin)):
                self.accounts.refuse("damaged")
                gone = f"{last - first + 1} batches of {origin} from number {first} on"
                running.lost(
                    DiskError(f"in {self.input_log.folder(query)}, {gone} are gone, although the disk had them")
                )
                stage = running.sources[origin.name]
                self.entrance.run(running, stage, empty(origin, first, last, MICROS_MIN), None, None)

    def _again(self, found: PendingBatch) -> None:
        """A batch, or a change of who is waited for."""
        running, header = self.fragments.running.get(found.query), found.header
        if running is None:
            return
        if header.kind in (HeaderKind.INPUT, HeaderKind.STATE):
            self._compute(running, replace(header, kind=HeaderKind.BATCH), found.payload)
        elif header.kind is HeaderKind.SEND_STATE:
            self.leaving_states.begin(running)
        else:
            self.exits.emit(running, apply_change(running, header))
            self.output.wait(running)

    def _compute(self, running: RunningFragment, header: Header, payload: Payload | None) -> None:
        try:
            if header.state:
                self.entrance.merge(running, header, payload)
                return
            if running.came_behind(header):
                self.accounts.refuse("behind a state")
                return
            batch = running.read(header, payload)
            self.entrance.run(running, Stage(header.stage), batch, payload, None)
        except RoveError as error:  # it is on the disk, and every start counts it as lost again
            self.accounts.refuse(type(error).__name__)
            running.lost(error)
            count = running.pipeline.count(header.origin)
            count.lost += header.born + header.lost
            count.evicted += header.evicted
            count.faulted += header.faulted
            count.late += header.belated
            count.saw(header)

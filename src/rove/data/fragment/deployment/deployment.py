"""Deploys, leaves and stops fragments on a node, by the coordinator's orders.

Law: a fragment is replaced only by a newer version, which takes over the state of the older one. Batches that waited
for it, on a route or parked, go on with it. If a version cannot run here, the node reports why, and the older version
runs on. A fragment whose folders are not open yet waits for them (`opening`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from rove.data.accounts import Accounts
from rove.data.ends.exits import Exits
from rove.data.ends.input_log import INPUT_SETTINGS, NO_COLUMNS, InputLog
from rove.data.ends.output import Output
from rove.data.fragment.deployment.fragments import Fragments
from rove.data.fragment.deployment.opening import OpeningFragment, Openings
from rove.data.fragment.deployment.replay import Replay
from rove.data.fragment.entrance import Entrance
from rove.data.fragment.lifecycle import FragmentEvent
from rove.data.fragment.reconfigure.leaving_states import LeavingStates
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.link.neighbours import Neighbours
from rove.data.link.parking import Parking
from rove.data.link.queue import Queue
from rove.data.link.routes import Routes
from rove.data.log.folders import Folders
from rove.data.sources.sources import Sources
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.retention import Retention
from rove.data.store.store import Store
from rove.data.turn import Turn
from rove.model.batch import Batch, Header
from rove.model.disk_folders import InputFolder
from rove.model.errors import MissingFunction, PlanError, RoveError
from rove.model.ids import Origin, QueryId
from rove.model.messages import Counted, Fragment, TroubleHere, check_fragment
from rove.plan.codec import decode
from rove.plan.stages import ordered
from rove.plan.user_functions import Reader, unread


@dataclass(slots=True, kw_only=True, eq=False)
class Deployment:
    """For all queries of one node. `read` reads the users' functions that run here."""

    read: Reader
    turn: Turn
    fragments: Fragments
    sources: Sources
    store: Store
    folders: Folders
    openings: Openings
    output: Output
    input_log: InputLog
    retention: Retention
    neighbours: Neighbours
    routes: Routes
    parking: Parking
    entrance: Entrance
    exits: Exits
    replay: Replay
    accounts: Accounts
    leaving_states: LeavingStates

    def resume(self, fragment: Fragment, plans: Mapping[str, bytes]) -> bool:
        """Resume a fragment of the last start. If its sources are new origins and order matters, the nodes above must
        be told of them before their rows come; until then the rows are kept. Returns whether its route has changed."""
        today = self.sources.renamed(fragment)
        return self.deploy(today, plans, resumes=not all(map(self.sources.goes_on, today.feeds)))

    def deploy(
        self, fragment: Fragment, plans: Mapping[str, bytes], resumes: bool = False, counted: Counted = ()
    ) -> bool:
        """Run a fragment, new or in a newer version, at once or when its folders are open. Its plan came with it, or is
        known. An earlier start has `counted` these batches. Returns whether its route has changed."""
        query = fragment.query
        known, waits = self.fragments.running.get(query), self.openings.get(query)
        if any(each is not None and each.fragment.version >= fragment.version for each in (known, waits)):
            return False
        try:
            check_fragment(fragment)
            plan = plans.get(fragment.plan) or self.fragments.plans.get(fragment.plan)
            if plan is None:
                raise PlanError(f"the plan of `{query}` has not come yet")
            opening = OpeningFragment(fragment, plan, resumes)
            if known is None:
                opening.running = self._running(fragment, plan)
                opening.running.pipeline.skip(counted)
                heard = () if waits is None else waits.fragment.feeds
                opening.early = [] if waits is None else waits.early
                opening.early += self._missed(query, [o for o in fragment.feeds if o not in heard])
        except RoveError as error:
            self._refuse(fragment, error)
            return False
        self.openings.take(query)
        return self.go_on(opening)

    def _running(self, fragment: Fragment, plan: bytes) -> RunningFragment:
        return RunningFragment(fragment, plan, not self.output.durable, self.read, shared=self.turn.shared)

    def go_on(self, opening: OpeningFragment) -> bool:
        """Begin a fragment if its folders are open; if not, wait for them. Returns whether its route has changed."""
        fragment = opening.fragment
        try:
            needs = self._needs(opening)
            opening.folders = tuple(needs)
            self.fragments.plans[fragment.plan] = opening.plan
            memory = str(InputFolder(fragment.query, fragment.anew))
            own = {memory: INPUT_SETTINGS}
            if [name for name, schema in needs.items() if self.folders.want(name, schema, own.get(name)) is None]:
                self.fragments.stopped.pop(fragment.query, None)
                self.openings.wait(opening)
                return False
            return self._begin(opening)
        except RoveError as error:
            self._refuse(fragment, error)
            return False

    def _missed(self, query: QueryId, origins: Collection[Origin]) -> list[tuple[str, Batch]]:
        """Headers for the batches that these sources made before the query began. Where the query begins is stored
        before they are sent: a later start must give it the same batches."""
        missed = list(self.sources.missed(query, origins))
        self.turn.commands += self.sources.positions()
        return missed

    def _refuse(self, fragment: Fragment, error: RoveError) -> None:
        self.accounts.refuse(type(error).__name__)
        lacks = error.function if isinstance(error, MissingFunction) else ""
        self.fragments.troubles[fragment.query] = TroubleHere(str(error), final=True, lacks=lacks)

    def _needs(self, opening: OpeningFragment) -> dict[str, pa.Schema]:
        """The folders that a fragment needs, with the columns of each."""
        fragment = opening.fragment
        shape = opening.running or self.fragments.running.get(fragment.query)
        if shape is not None and shape.fragment.plan == fragment.plan:
            stages = shape.stages
        else:
            stages = decode(opening.plan, unread)
        needs = self.output.needs(fragment, stages)
        here = (*fragment.runs, *fragment.ends, *fragment.lifts)
        if self.output.durable and any(ordered(stages.operators[n]) for n in here):
            needs[str(InputFolder(fragment.query, fragment.anew))] = NO_COLUMNS
        return needs

    def _begin(self, opening: OpeningFragment) -> bool:
        fragment = opening.fragment
        query, known = fragment.query, self.fragments.running.get(fragment.query)
        route, routes = (None, ()) if known is None else (known.route, known.routes)
        leads = {} if known is None else known.fragment.leads
        early: Iterable[tuple[str, Batch]] = opening.early
        above = 0 if known is None else known.fragment.above
        if known is not None:
            before = known.fragment.feeds
            if known.goes_on_with(fragment, opening.plan):
                self.exits.emit(known, known.pipeline.end((*fragment.runs, *fragment.ends)))
            early = self._missed(query, [o for o in fragment.feeds if o not in before])
            running = known.update(fragment, opening.plan)
        elif opening.running is not None:
            running = opening.running
        else:  # the version that it should replace has left since
            running = self._running(fragment, opening.plan)
            early = self._missed(query, fragment.feeds)
        running.pipeline.moves.forget(fragment.sends)
        self.output.begin(running)
        self.fragments.running[query] = running
        self.sources.learn(running.columns())
        self.fragments.stopped.pop(query, None)
        self.fragments.troubles.pop(query, None)
        running.machine.step(FragmentEvent.DEPLOYED)
        if self.input_log.begin(query, memory := str(InputFolder(query, fragment.anew))):
            running.machine.step(FragmentEvent.OPENED)
            begin = self.replay.checkpoints.restore(running)
            self.output.wait(running)
            self.replay.pending.on_disk(query, memory, self.folders.upto(memory), begin)
        if fragment.feeds and (fragment.holds or (opening.resumes and not fragment.overtakes)):
            running.machine.step(FragmentEvent.RESUMED)
        self.turn.commands += self.routes.turned(query, route, running, self.turn.now)
        self.turn.commands += self.routes.left(query, routes, running, self.turn.now)
        self.turn.commands += self.routes.led(query, leads, running, self.turn.now)
        kept, running.kept = running.kept, Queue()
        self._send(running, kept)
        running = self._expect(running)
        self._catch_up(running, early)
        if known is not None and above != fragment.above:
            self._tell_ended(running)
        return route != running.route

    def _tell_ended(self, running: RunningFragment) -> None:
        """A node above has started again and has forgotten which sources have ended, so it is told. A source with
        batches on their way tells it with the last of them. O(sources, and batches of the query)."""
        query = running.fragment.query
        waiting = {entry.header.origin.unsided for entry in self.store.of(query)}
        feeds = [origin for origin in running.fragment.feeds if origin not in waiting]
        for stream, batch in self.sources.ended(feeds):
            if (stage := running.sources.get(stream)) is not None:
                self.entrance.run(running, stage, batch, None, None)

    def _expect(self, running: RunningFragment) -> RunningFragment:
        """Send the states that leave, and wait for the origins that the fragment names. Output that this causes is
        passed on. Returns the fragment that goes on."""
        if running.remembers and self.output.durable:
            self.input_log.expect(running)
        else:
            if running.fragment.sends:
                running = self.leaving_states.begin(running)
            emitted = running.share()
            emitted += running.rename()  # before an operator goes on without its state, and emits output
            emitted += running.await_states()
            emitted += running.expect(running.fragment.waits)
            emitted += running.begin()
            emitted += running.pipeline.gone(running.unheard(running.pipeline.origins()))
            self.exits.emit(running, emitted)
            self.output.wait(running)
        return running

    def _catch_up(self, running: RunningFragment, early: Iterable[tuple[str, Batch]]) -> None:
        """Process what its sources made before it ran, frames that were parked, and batches that an earlier start
        kept."""
        fragment = running.fragment
        for stream, batch in early:
            self.entrance.feed(running, stream, batch)
        for header, payload, receipt in self.parking.take(fragment.query):
            self.entrance.take(header, payload, receipt, b"")
        self.turn.commands += self.routes.changed([(fragment.query, running)], self.turn.now)
        self.pick_up(running)

    def pick_up(self, running: RunningFragment) -> None:
        """Send the batches that an earlier start kept of a query, as far as they are known."""
        for entry in self.retention.pick_up(running, self.turn.now, self.sources.replays):
            way = running.way(entry.header)
            if way is not None:
                self.turn.commands += self.neighbours.link(way).offer(entry, self.turn.now)

    def _send(self, running: RunningFragment, entries: Iterable[KeptBatch]) -> None:
        for entry in entries:
            self.turn.commands += self.routes.send(running, entry, self.turn.now)

    def stop(self, query: QueryId) -> None:
        """Stop a query. Its batches that no other node can have are lost. The coordinator works out other losses from
        what has arrived."""
        self.fragments.stopped[query] = None
        for _, _, receipt in self.parking.take(query):
            receipt.release()
        for header in self._end(query):
            self.accounts.lose(query, header, "stopped")

    def leave(self, query: QueryId) -> bool:
        """Stop running a query that goes on elsewhere. Returns whether a link needs a new session, because frames of
        the query were sent and not acked."""
        self._end(query)
        return self.neighbours.give_up(query, self.turn.now)

    def _end(self, query: QueryId) -> list[Header]:
        """Stop running a query. Returns the headers of kept batches that no other node can have. Frames that are parked
        for it are not acked, because no other node has them. They stay until the query is deployed here again or
        stopped, or until their sender begins a new session: then the sender sends them over another route, or has left
        the query too."""
        running = self.fragments.running.pop(query, None)
        self.fragments.troubles.pop(query, None)
        opening = self.openings.take(query)
        for name in () if opening is None else opening.folders:
            self.folders.forget(name)
        dropped: list[Header] = []
        if running is not None:
            running.machine.step(FragmentEvent.ENDED)
            self.accounts.stopped(running, self.output)
            self.output.close(query)
            self.input_log.close(query)
            self.replay.checkpoints.forget(query)
            self.replay.pending.forget(
                query
            )  # it is on the disk, and is read from there if the query is deployed again
            dropped += self.routes.forget(running)
        dropped += self.neighbours.forget(query)
        self.retention.forget(query)
        self.sources.left(query)
        self.parking.forget_stale(query)
        return dropped

"""What a node does when the coordinator orders it to run a fragment, to leave a query to others, or to stop one.

Law: a fragment is replaced by a newer version only, which goes on with all that the older one remembers. Batches that
waited for it, on a route or parked, go on with it. A query that cannot run here says why, and what ran before runs on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rove.data.accounts import Accounts
from rove.data.ends.exits import Exits
from rove.data.ends.output import Sinks
from rove.data.fragment.entrance import Entrance
from rove.data.fragment.fragments import Fragments
from rove.data.fragment.replay import Replay
from rove.data.fragment.running_fragment import RunningFragment
from rove.data.fragment.states import FragmentEvent
from rove.data.link.neighbours import Neighbours
from rove.data.link.parking import Parking
from rove.data.link.queue import Queue
from rove.data.link.routes import Routes
from rove.data.sources.sources import Sources
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.retention import Retention
from rove.data.turn import Turn
from rove.model.batch import Header
from rove.model.errors import PlanError, RoveError
from rove.model.ids import Origin, QueryId
from rove.model.messages import Fragment
from rove.plan.user_functions import reader


@dataclass(slots=True, kw_only=True, eq=False)
class Deployment:
    """For all queries of one node. A node that `trusts` reads users' functions that come by value."""

    trusts: bool
    turn: Turn
    fragments: Fragments
    sources: Sources
    sinks: Sinks
    retention: Retention
    neighbours: Neighbours
    routes: Routes
    parking: Parking
    entrance: Entrance
    exits: Exits
    replay: Replay
    accounts: Accounts

    def resume(self, fragment: Fragment, plans: Mapping[str, bytes]) -> bool:
        """Go on with a fragment of the last start, whose sources are others now. Where their order matters, those above
        have to be told of them before their rows come: until then these are kept. Whether its route is another."""
        turned = self.deploy(self.sources.renamed(fragment), plans)
        if fragment.feeds and not fragment.overtakes and fragment.query in self.fragments.running:
            self.fragments.running[fragment.query].machine.step(FragmentEvent.RESUMED)
        return turned

    def deploy(self, fragment: Fragment, plans: Mapping[str, bytes]) -> bool:
        """Run a fragment, new or in a newer version; its plan came with it, or was here before. Whether its route is
        another than before."""
        known = self.fragments.running.get(fragment.query)
        if known is not None and known.fragment.version >= fragment.version:
            return False
        before = () if known is None else known.fragment.feeds
        route = None if known is None else known.route
        try:
            plan = plans.get(fragment.plan) or self.fragments.plans.get(fragment.plan)
            if plan is None:
                raise PlanError(f"the plan of `{fragment.query}` has not come yet")
            read, forgets = reader(self.trusts), not self.sinks.durable
            running = RunningFragment(fragment, plan, forgets, read) if known is None else known.update(fragment, plan)
            replays = self.sinks.open(running)
        except RoveError as error:
            self.accounts.refuse(type(error).__name__)
            self.fragments.troubles[fragment.query] = str(error)
            return False
        self.fragments.running[fragment.query] = running
        self.fragments.plans[fragment.plan] = plan
        self.sources.learn(running.columns())
        self.fragments.stopped.pop(fragment.query, None)
        self.fragments.troubles.pop(fragment.query, None)
        running.machine.step(FragmentEvent.DEPLOYED)
        if replays is not None:
            running.machine.step(FragmentEvent.OPENED)
            self.replay.pending.on_disk(fragment.query, replays)
        turned = route != running.route
        self.turn.commands += self.routes.turned(fragment.query, route, running, self.turn.now)
        kept, running.kept = running.kept, Queue()
        self._send(running, kept)
        self._expect(running)
        self._catch_up(running, before)
        return turned

    def _expect(self, running: RunningFragment) -> None:
        """Wait for the origins that the fragment names. What this gives goes out."""
        if running.remembers and self.sinks.durable:
            self.sinks.expect(running)
        else:
            unheard = running.unheard(batch.header.origin for batch in running.pipeline.held())
            emitted = running.expect(running.fragment.waits) + running.pipeline.gone(unheard)
            self.exits.emit(running, emitted)

    def _catch_up(self, running: RunningFragment, before: tuple[Origin, ...]) -> None:
        """What its sources made before it was here, what was parked for it, and what an earlier start kept of it."""
        fragment = running.fragment
        for stream, missed in self.sources.missed([o for o in fragment.feeds if o not in before]):
            self.entrance.feed(running, stream, missed)
        for header, payload, receipt in self.parking.take(fragment.query):
            self.entrance.take(header, payload, receipt, b"")
        self.turn.commands += self.routes.changed([(fragment.query, running)], self.turn.now)
        self._send(running, self.retention.pick_up(running, self.turn.now))

    def _send(self, running: RunningFragment, entries: Iterable[KeptBatch]) -> None:
        for entry in entries:
            self.turn.commands += self.routes.send(running, entry, self.turn.now)

    def stop(self, query: QueryId) -> None:
        """A query is over, and what nobody else can have is lost. What else had not arrived the coordinator knows: it
        knows what has."""
        self.fragments.stopped[query] = None
        for header in self.leave(query):
            self.accounts.lose(query, header, "stopped")

    def leave(self, query: QueryId) -> list[Header]:
        """Run a query no longer; what was kept of it that nobody else can have."""
        running = self.fragments.running.pop(query, None)
        self.fragments.troubles.pop(query, None)
        dropped: list[Header] = []
        if running is not None:
            running.machine.step(FragmentEvent.ENDED)
            self.sinks.close(running)
            self.replay.pending.forget(query)  # it is on the disk, and read from there if the query comes again
            self.accounts.stopped(query, running.counts())
            dropped += self.routes.forget(running)
        dropped += self.neighbours.forget(query)
        self.retention.forget(query)
        for _, _, receipt in self.parking.take(query):
            receipt.release()
        return dropped

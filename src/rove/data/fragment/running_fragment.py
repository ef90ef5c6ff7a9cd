"""A running fragment: the part of one query on one node.

Law: it has the whole query's plan, and applies to a batch the operators that run here and are still missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from rove.data.counts import Count
from rove.data.fragment.build import ends
from rove.data.fragment.emitted import Emitted
from rove.data.fragment.lifecycle import FRAGMENT, HOLDS, REPLAYS, FragmentState
from rove.data.fragment.pipeline import Pipeline
from rove.data.fragment.reconfigure.migration import STATE_SCHEMA
from rove.data.fragment.saved import SavedPipeline
from rove.data.link.queue import Queue
from rove.data.link.unheard import Confirmation
from rove.data.operators.faulted import fault_schema
from rove.data.operators.folded import folded_schema, folds_into, window_at
from rove.data.operators.shared_results import SharedResults
from rove.data.rows import decode_rows, unpack_rows
from rove.model.batch import Batch, Header
from rove.model.errors import PlanError, ProtocolError, StateError, must
from rove.model.events import Payload
from rove.model.ids import NodeId, Origin, Stage
from rove.model.lifecycle import Machine
from rove.model.messages import Fragment
from rove.model.schema import schema_text
from rove.plan.codec import decode
from rove.plan.operators import Source
from rove.plan.rules.amend import misfit
from rove.plan.stages import Stages, ordered
from rove.plan.user_functions import Reader, by_name, later, unread

_SAVED = msgspec.msgpack.Decoder(SavedPipeline)


class RunningFragment:
    """One query here. Rows are decoded only if an operator here needs them, and users' functions are read only where
    they run. It `remembers` if a stateful operator runs here."""

    remembers: bool
    _touched: list[bool]
    _left: list[bool]

    def __init__(
        self,
        fragment: Fragment,
        plan: bytes,
        forgets: bool = False,
        read: Reader = by_name,
        sent: bool = False,
        names: Mapping[Stage, Origin] = MappingProxyType({}),
        shared: SharedResults | None = None,
    ) -> None:
        self.fragment, self._plan, self._forgets, self._read, self._shared = fragment, plan, forgets, read, shared
        self.stages: Stages = decode(plan, read, fragment.loads, later(read))
        self._check()
        # `expect` sets the origins to wait for: on a node with a disk this change is an entry in the input log, between
        # batches. The same holds for new names of operators (`rename`): running ones keep their `names` until then.
        goes_on = fragment.next is not None
        self.runs = frozenset(fragment.runs if sent else (*fragment.runs, *fragment.ends))  # the operators that run now
        makes = {**fragment.makes, **names}
        self.lifts = frozenset(fragment.lifts)
        self.pipeline = Pipeline(self.stages, {}, makes, self.runs, forgets, goes_on, shared, fragment.lifts)
        self.route = fragment.next  # the route that is used now
        self.machine = Machine(FRAGMENT, FragmentState.RUNNING, f"the fragment of query `{fragment.query}`")
        self.fault = ""  # why rows were lost here for the first time
        self.kept = Queue()  # output that is kept until the nodes above know its origins
        self.ends = ends(self.stages)
        self.sources = _sources(self.stages)
        self._settle()

    def update(self, fragment: Fragment, plan: bytes) -> RunningFragment:
        """A newer version of this fragment. Operators that stay keep their state."""
        old, sent = self.fragment, self.sends_state
        runs = frozenset(fragment.runs if sent else (*fragment.runs, *fragment.ends))
        same = (self.runs, self.lifts, old.plan, old.next is None)
        if (runs, frozenset(fragment.lifts), fragment.plan, fragment.next is None) == same:
            self.fragment, self.route = fragment, fragment.next
            self._settle()
            return self
        alike = self.goes_on_with(fragment, plan)
        names = self.pipeline.names() if alike else {}
        new = RunningFragment(fragment, plan, self._forgets, self._read, sent, names, self._shared)
        new.pipeline.adopt(self.pipeline, alike)
        new.pipeline.know(fragment.knows, fragment.anywhere)
        new.pipeline.shares.set_elsewhere(fragment.elsewhere)
        new.machine, new.kept = self.machine, self.kept
        if fragment.plan == old.plan:
            new.fault, new.pipeline.fault = self.fault, self.pipeline.fault
        return new

    def save(self) -> bytes | None:
        """Everything that its operators know, as bytes; None while a state of one of them is on its way, or output is
        kept. O(state)."""
        if self.kept or self.machine.state is not FragmentState.RUNNING or not self.pipeline.saving.is_settled:
            return None
        return msgspec.msgpack.encode(self.pipeline.saving.save())

    def restore(self, body: bytes) -> None:
        """Let operators, which have taken nothing yet, go on as they were when this was saved. Bytes that were not
        saved by an operator of this query raise a StateError."""
        try:
            found = _SAVED.decode(body)
        except msgspec.DecodeError as error:
            raise StateError(f"this is no checkpoint of query `{self.fragment.query}`: {error}") from error
        makes, lifts = {**self.fragment.makes, **found.names}, self.fragment.lifts
        goes_on, before = self.fragment.next is not None, self.pipeline
        self.pipeline = Pipeline(self.stages, {}, makes, self.runs, self._forgets, goes_on, self._shared, lifts)
        self.pipeline.skip_as(before)
        self._settle()
        self.pipeline.saving.restore(found, self.read)

    def goes_on_with(self, fragment: Fragment, plan: bytes) -> bool:
        """Whether operators go on as they are in a newer version: its plan is the same, or was amended."""
        return fragment.plan == self.fragment.plan or not misfit(decode(self._plan, unread), decode(plan, unread))

    @property
    def sends_state(self) -> bool:
        """Whether states of operators leave, or have left, in the version that runs."""
        return bool(self.pipeline.moves.leaving)

    def send_states(self) -> tuple[RunningFragment, list[Emitted]]:
        """Operators of this fragment end here, and their states are ready to leave. Returns the fragment without these
        operators, and the batches that came too early for them."""
        inputs = self.stages.inputs
        sends = self.fragment.sends
        early = [
            Emitted(inputs[stage][side if len(inputs[stage]) > 1 else 0], batch, passes=True)
            for stage in sorted(sends)
            for side, batch in self.pipeline.moves.send({stage: sends[stage]}, self.fragment.leads)
        ]
        return self.update(self.fragment, self._plan), early

    def rename(self) -> list[Emitted]:
        """Give operators the names that the fragment has for them. Returns the output that this causes."""
        makes = self.fragment.makes.items()
        return [each for stage, origin in makes for each in self.pipeline.moves.rename(stage, origin)]

    def share(self) -> list[Emitted]:
        """Let origins go, and take others batch by batch, as the fragment says. Returns the output that this causes."""
        emitted: list[Emitted] = []
        fragment, shares = self.fragment, self.pipeline.shares
        for stage, origins in sorted(fragment.releases.items()):
            for origin in origins:
                emitted += shares.release(stage, origin)
        for stage, origins in sorted(fragment.lifts.items()):
            for origin in origins:
                shares.lift(stage, origin)
        return emitted

    def begin(self) -> list[Emitted]:
        """Take origins batch by batch from where they begin. Returns the output that this causes."""
        shares = self.pipeline.shares
        return [each for origin, begin in self.fragment.begins.items() for each in shares.begin(origin, begin)]

    def await_states(self) -> list[Emitted]:
        """Wait for the states that the fragment names, and for no others. Returns the output that this causes."""
        emitted: list[Emitted] = []
        moves, awaits = self.pipeline.moves, self.fragment.awaits
        for stage in self.runs:
            if (origin := moves.awaited(stage)) is not None and awaits.get(stage) != origin:
                emitted += moves.give_up(stage, origin)
        for stage, origin in awaits.items():
            moves.wait(stage, origin, self.fragment.whole, stage in self.fragment.lost)
        return emitted

    def arrived(self) -> list[Origin]:
        """The states that this fragment waited for, and that have arrived completely."""
        awaits = self.fragment.awaits.items()
        return [origin for stage, origin in awaits if self.pipeline.moves.has_come(stage, origin)]

    @property
    def state(self) -> FragmentState:
        return self.machine.state

    @property
    def replays(self) -> bool:
        """Whether its output may have been emitted by an earlier start."""
        return self.machine.state in REPLAYS

    @property
    def holds(self) -> bool:
        """Whether its output is kept until the nodes above know its origins."""
        return self.machine.state in HOLDS

    @property
    def routes(self) -> tuple[NodeId, ...]:
        """The nodes that rows may go to from here, the best first."""
        return () if self.fragment.next is None else (self.fragment.next, *self.fragment.others)

    def way(self, header: Header) -> NodeId | None:
        """The node that a batch goes to from here: rows take the route, a state may take another route. None at the
        end."""
        return self.fragment.leads.get(header.origin, self.route) if header.state else self.route

    def came_behind(self, header: Header) -> bool:
        """Whether a batch arrives after its operator moved to a node outside the route. All senders were given a new
        route first, so the sender of this batch has it too, and sends it over the new route."""
        leads, leaving = self.fragment.leads, self.pipeline.moves.leaving
        if not leads or not leaving or header.state:
            return False
        return any(each.origin in leads and header.origin.unsided in each.origins for each in leaving.values())

    def expect(self, waits: Mapping[Stage, Iterable[Origin]]) -> list[Emitted]:
        """Wait for exactly these origins from now on. Returns the output that this causes."""
        before = self.pipeline.waited()
        emitted = self.pipeline.expect(waits)
        for stage, origins in before.items():
            wanted = set(waits.get(stage, ()))
            emitted += self.pipeline.leave(stage, [origin for origin in origins if origin not in wanted])
        return emitted

    def forks(self, origin: Origin) -> bool:
        """Whether a batch of a source may leave this node more than once, for several operators."""
        stage = self.sources.get(origin.name)
        return stage is not None and self.ends[stage] > 1

    def columns(self) -> dict[str, str]:
        """The columns of the streams that it reads."""
        return {stream: schema_text(self.stages.operators[stage].schema) for stream, stage in self.sources.items()}

    def unheard(self, names: Iterable[Origin]) -> set[Origin]:
        """Those of these origins that are no longer waited for or known here."""
        fragment = self.fragment
        heard = {o for book in (fragment.waits, fragment.knows) for origins in book.values() for o in origins}
        heard |= set(fragment.awaits.values())
        return {name.unsided for name in names} - heard - set(fragment.makes.values()) - set(fragment.feeds)

    def touches(self, stage: int) -> bool:
        """Whether an operator here applies to a batch at this stage."""
        return self._touched[stage]

    def leaves(self, stage: Stage) -> bool:
        """Whether batches of this stage go on to another node."""
        return self._left[stage]

    def check(self, header: Header) -> None:
        """Refuse a batch of an unknown stage, or folded rows that no window takes."""
        if not 0 <= header.stage < len(self.stages.operators):
            raise ProtocolError("malformed", f"query `{header.query}` has no stage {header.stage}")
        if header.folded:
            self._folded_schema(header)

    def schema_of(self, header: Header) -> pa.Schema:
        """The columns of a batch: the output columns of its stage. Rows that were late for an operator have its input
        columns, rows at fault the reason too, and folded rows have the columns of its states."""
        if header.state:
            return STATE_SCHEMA
        if header.folded:
            return self._folded_schema(header)
        inputs = self.stages.inputs[header.stage]
        if not header.late or not inputs:
            return self.stages.operators[header.stage].schema
        side = header.origin.side[-1] if header.origin.side and len(inputs) > 1 else 0
        schema = self.stages.operators[inputs[side]].schema
        return fault_schema(schema) if header.at_fault else schema

    def _folded_schema(self, header: Header) -> pa.Schema:
        stage = Stage(header.stage)
        window = window_at(self.stages, stage) if header.late else folds_into(self.stages, stage)
        if window is None:
            raise ProtocolError("malformed", f"rows of `{header.origin}` are folded, but no window takes folded rows")
        return folded_schema(window)

    def read(self, header: Header, payload: Payload | None) -> Batch:
        """Decode a batch that came over a link. Rows that do not fit the stage's columns are refused."""
        if payload is None:
            return Batch(header)
        try:
            return Batch(header, decode_rows(payload, self.schema_of(header), header.rows))
        except ProtocolError as error:
            raise ProtocolError(error.why, f"rows of `{header.origin}` {header.seq} do not fit: {error}") from error

    def opened(self, header: Header, payload: Payload | None) -> tuple[Header, Payload | None]:
        """Unpack a batch if its rows are needed here. A batch that only passes by stays packed."""
        looks = self.touches(header.stage) or (header.late and bool(self.fragment.sinks))
        if not header.packed or not looks:
            return header, payload
        if payload is None:
            return replace(header, packed=0), None
        rows = unpack_rows(payload, self.schema_of(header), header.rows, header.packed)
        return replace(header, packed=0), rows

    def process(self, stage: Stage, batch: Batch, confirmation: Confirmation | None = None) -> list[Emitted]:
        return self.pipeline.process(stage, batch, confirmation)

    def lost(self, why: Exception) -> None:
        """Rows were lost here. The first reason is kept."""
        self.fault = self.fault or str(why)

    def counts(self) -> dict[Origin, Count]:
        return self.pipeline.counts

    def validate(self) -> None:
        """Raise unless its state fits the output that it keeps and its route. O(what its pipeline holds, and what it
        keeps)."""
        who, route, routes = self.machine.who, self.route, self.routes
        must(self.state is not FragmentState.ENDED, "a fragment that has ended does not run", who)
        must(not self.kept or self.holds, "output is kept only until the nodes above are told of it", who)
        known = route in routes or (route is None and not routes)
        must(known, "a fragment takes a route that it was told of", who, route, routes)
        self.pipeline.validate()

    def _settle(self) -> None:
        """Work out once what is done here at each stage."""
        runs, sinks = self.runs | self.lifts, self.fragment.sinks
        self.pipeline.know(self.fragment.knows, self.fragment.anywhere)
        self.pipeline.shares.set_elsewhere(self.fragment.elsewhere)
        self.pipeline.shares.know(self.fragment.lifts)
        self.remembers = any(ordered(self.stages.operators[n]) for n in runs)
        outputs = {stage for _, stage in self.stages.outputs}
        self._touched, self._left = [], []
        for n, readers in enumerate(self.stages.readers):
            stage = Stage(n)
            self._touched.append(stage in sinks or any(r in runs for r in readers))
            ends_elsewhere = stage in outputs and stage not in sinks
            on = self.fragment.next is not None and (ends_elsewhere or any(r not in runs for r in readers))
            self._left.append(on)

    def _check(self) -> None:
        numbers = range(len(self.stages.operators))
        fragment = self.fragment
        named = (*fragment.runs, *fragment.ends, *fragment.makes, *fragment.waits, *fragment.sinks, *fragment.awaits)
        named = (*named, *fragment.lifts, *fragment.releases)
        if any(n not in numbers for n in named):
            raise PlanError(
                f"fragment {self.fragment.query} v{self.fragment.version} names stages that its plan does not have"
            )


def _sources(stages: Stages) -> dict[str, Stage]:
    """The stages of the streams a query reads."""
    found = {}
    for stage in stages.sources():
        operator = stages.operators[stage]
        if isinstance(operator, Source):
            found[operator.stream] = stage
    return found

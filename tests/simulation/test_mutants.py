"""The checkers catch machines that are broken on purpose in one place, and name the law of a machine that is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rove.data.ends.output import Output
from rove.data.events import Opened, OpenFailed
from rove.data.fragment.frontier import Frontier
from rove.data.fragment.intake import Intake
from rove.data.fragment.pipeline import Count
from rove.data.fragment.states import FRAGMENT, FragmentEvent, FragmentState
from rove.data.fragment.watermarks import Watermarks
from rove.data.link.credit import Credit
from rove.data.link.link import Link
from rove.data.link.receipts import FrameReceipt
from rove.data.link.states import LINK, LinkEvent, LinkState
from rove.data.store.kept_batch import KeptBatch
from rove.data.store.store import Store
from rove.data.worker import Worker
from rove.model.batch import Batch, Header
from rove.model.events import Conn, Send
from rove.model.ids import Origin
from rove.model.messages import Message
from rove.sim.scenario import run_seed

SEEDS = 200
NODES = 12


def a_frontier_that_takes_everything(patch: pytest.MonkeyPatch) -> None:
    def take(self: Frontier[Any], origin: Any, first: int, through: int) -> list[tuple[int, int]]:
        return [(first, through)]

    patch.setattr(Frontier, "take", take)


def counts_without_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Count, "saw", lambda self, header: None)


def a_duplicate_that_is_counted(patch: pytest.MonkeyPatch) -> None:
    append = Output._append

    def twice(self: Output, name: str, header: Header, rows: Any, receipt: Any) -> None:
        append(self, name, header, rows, receipt)
        if header.born and name in self._watermarks and header.seq % 7 == 3:
            self.counts.setdefault((self._ends[name].query, header.origin.unsided), Count()).take(header)

    patch.setattr(Output, "_append", twice)


def an_ack_before_the_disk_has_it(patch: pytest.MonkeyPatch) -> None:
    def hold(self: FrameReceipt) -> None:
        self._open += 1
        self.release()

    def release(self: FrameReceipt) -> None:
        self._link.took(self._number, self._session)

    patch.setattr(FrameReceipt, "hold", hold)
    patch.setattr(FrameReceipt, "release", release)


def a_watermark_of_the_fastest(patch: pytest.MonkeyPatch) -> None:
    def heard(self: Watermarks, origin: Origin, mark: int) -> bool:
        if origin not in self._marks:
            return False
        self._marks[origin] = max(mark, self._marks[origin])
        rose, self.low = self._marks[origin] > self.low, max(self.low, self._marks[origin])
        return rose

    patch.setattr(Watermarks, "heard", heard)


def parked_batches_forgotten_when_an_open_fails(patch: pytest.MonkeyPatch) -> None:
    opened = Worker._opened

    def forgets(self: Worker, event: Opened | OpenFailed) -> None:
        if isinstance(event, OpenFailed):
            for query in self._parking.queries():
                for frame in self._parking.take(query):
                    frame.receipt.release()
        opened(self, event)

    patch.setattr(Worker, "_opened", forgets)


def a_store_that_forgets_to_count_what_it_drops(patch: pytest.MonkeyPatch) -> None:
    count = Store._account

    def account(self: Store, entry: KeptBatch, sign: int) -> None:
        if sign > 0 or self.holds(entry):
            count(self, entry, sign)

    patch.setattr(Store, "_account", account)


def a_list_that_is_not_closed_behind_what_leaves_it(patch: pytest.MonkeyPatch) -> None:
    unlink = Store._unlink

    def forgets(self: Store, entry: KeptBatch) -> None:
        after = entry.after
        unlink(self, entry)
        if after is not None:
            after.before = entry

    patch.setattr(Store, "_unlink", forgets)


def an_ack_that_leaves_the_batch_in_the_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Link, "heard", _without_drops(Link.heard))


def _without_drops(heard: Callable[..., list[Send]]) -> Callable[..., list[Send]]:
    def keeps(self: Link, message: Message, conn: Conn, now: int) -> list[Send]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._store, "drop", lambda entry: None)
            return heard(self, message, conn, now)

    return keeps


def a_link_that_counts_a_frame_too_many(patch: pytest.MonkeyPatch) -> None:
    def pump(self: Link, now: int, sent: Callable[[Link, int], list[Send]] = Link._pump) -> list[Send]:
        sends = sent(self, now)
        self._numbered += len(sends) > 1
        return sends

    patch.setattr(Link, "_pump", pump)


def a_link_that_sends_nothing_until_it_is_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Link, "offer", lambda self, entry, now, overtakes=False: self._backlog.add(entry, False) or [])


def a_credit_that_counts_only_what_it_adds(patch: pytest.MonkeyPatch) -> None:
    def count(self: Credit, link: Link) -> None:
        self._promised += link.outstanding
        self._promises[link.peer] = link.outstanding

    patch.setattr(Credit, "_count", count)


def a_watermark_that_waits_for_the_next_promise(patch: pytest.MonkeyPatch) -> None:
    def heard(self: Watermarks, origin: str, mark: int) -> bool:
        rose = origin in self._marks and self._settle()
        if origin in self._marks:
            self._marks[origin] = max(mark, self._marks[origin])
        return rose

    patch.setattr(Watermarks, "heard", heard)


def an_intake_that_holds_what_is_next(patch: pytest.MonkeyPatch) -> None:
    def offer(self: Intake, origin: str, batch: Batch) -> list[Batch]:
        self._held.setdefault(origin, {})[batch.header.seq] = batch
        return []

    patch.setattr(Intake, "offer", offer)


def a_listener_that_dials_when_its_peer_has_left(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(LINK[LinkState.UP], LinkEvent.LEFT, LinkState.DIALLING)


def a_dialler_that_expects_no_answer(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(LINK[LinkState.DIALLING], LinkEvent.WELCOME)


def a_link_that_cannot_begin_anew(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(LINK[LinkState.UP], LinkEvent.RENEW)


def a_fragment_that_does_not_know_when_it_has_caught_up(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(FRAGMENT[FragmentState.REPLAYING], FragmentEvent.CAUGHT_UP)


def a_fragment_that_runs_before_those_above_are_told(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(FRAGMENT[FragmentState.RESUMING], FragmentEvent.CAUGHT_UP, FragmentState.RUNNING)


@pytest.mark.parametrize(
    "broken",
    [
        a_frontier_that_takes_everything,
        pytest.param(an_ack_before_the_disk_has_it, marks=pytest.mark.slow),
        pytest.param(a_watermark_of_the_fastest, marks=pytest.mark.slow),
        pytest.param(parked_batches_forgotten_when_an_open_fails, marks=pytest.mark.slow),
    ],
)
def test_a_broken_machine_is_caught(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert any(run_seed(seed, NODES).trouble for seed in range(SEEDS))


@pytest.mark.parametrize(
    ("broken", "law", "first"),
    [
        (a_store_that_forgets_to_count_what_it_drops, "the bytes of a store are those of its batches", 0),
        (a_list_that_is_not_closed_behind_what_leaves_it, "a list goes both ways", 0),
        (an_ack_that_leaves_the_batch_in_the_store, "a batch that is kept is on its way", 0),
        (a_link_that_counts_a_frame_too_many, "sent frames are numbered without gaps", 0),
        (a_link_that_sends_nothing_until_it_is_asked, "nothing waits while there is credit", 0),
        (a_credit_that_counts_only_what_it_adds, "promised credit adds up", 0),
        (a_watermark_that_waits_for_the_next_promise, "the low watermark has followed the lowest promise", 0),
        (an_intake_that_holds_what_is_next, "what is held is beyond what is next", 0),
        (a_listener_that_dials_when_its_peer_has_left, "who dials is known", 0),
        (a_dialler_that_expects_no_answer, "is `dialling`, where `welcome` cannot happen", 0),
        (counts_without_names, "does not add up", 0),
        (a_duplicate_that_is_counted, "does not add up", 0),
        (a_link_that_cannot_begin_anew, "is `up`, where `renew` cannot happen", 12),
        (a_fragment_that_does_not_know_when_it_has_caught_up, "is `replaying`, where `caught up` cannot happen", 0),
        (a_fragment_that_runs_before_those_above_are_told, "what is given is kept only until those above are told", 32),
    ],
)
def test_a_machine_that_breaks_its_own_law_is_caught_and_the_law_is_named(
    broken: Callable[[pytest.MonkeyPatch], None], law: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a `first` seed on, so that what is rare is found soon."""
    broken(monkeypatch)
    trouble = next(found for seed in range(first, first + SEEDS) if (found := run_seed(seed, NODES).trouble))
    assert law in trouble

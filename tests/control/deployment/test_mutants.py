"""Deployments, rollouts and reports that are broken on purpose in one place are caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from rove.control.deployment.deployment import Deployment
from rove.control.deployment.rollout import Rollout
from rove.control.deployment.tables.journal import Journal
from rove.control.deployment.tables.meetings import Meetings
from rove.control.deployment.tables.tree import Tree
from rove.control.members.membership import Membership
from rove.model.errors import BrokenInvariant, RoveError
from tests.control import test_coordinator as coordinator
from tests.control.deployment import test_reroute as reroute
from tests.data import test_reports as reports

Patch = pytest.MonkeyPatch


def a_tree_that_counts_what_has_left(patch: Patch) -> None:
    def detach(self: Tree, node: Any, part: Any, touched: Any) -> None:
        if self._attached(node):
            self._journal.pop(self.children[part.next], node)

    patch.setattr(Tree, "_detach", detach)


def a_tree_that_forgets_those_below(patch: Patch) -> None:
    patch.setattr(Tree, "below", lambda self, starts: (node for node in starts if node in self.parts))


def a_journal_that_takes_nothing_back(patch: Patch) -> None:
    patch.setattr(Journal, "roll_back", lambda self, position=0: self.commit())


def meetings_that_do_not_see_who_is_reached(patch: Patch) -> None:
    take = Meetings._take
    patch.setattr(Meetings, "_take", lambda self, *args: take(self, *args) and {})


def meetings_that_keep_makers_that_are_gone(patch: Patch) -> None:
    patch.setattr(Meetings, "_makes", lambda self, maker: True)


def a_deployment_that_forgets_whom_to_tell(patch: Patch) -> None:
    patch.setattr(Meetings, "changed", lambda self, journal, absent: {})


def a_deployment_that_books_nothing(patch: Patch) -> None:
    patch.setattr(Deployment, "_account", lambda self, node, old, new: None)


def absence_that_stops_at_the_first_reader(patch: Patch) -> None:
    def above(self: Meetings, makers: Any) -> dict[Any, None]:
        return dict.fromkeys(node for maker in makers for _, node in self.readers.get(maker, ()))

    patch.setattr(Meetings, "_above", above)


def all_seeds() -> None:
    for seed in range(120):
        reroute.test_sources_that_come_go_and_are_absent_leave_what_the_whole_placement_says(seed)
        reroute.test_whatever_breaks_nobody_passes_by_what_remembers_and_nobody_else_is_disturbed(seed)


@pytest.mark.parametrize(
    "broken",
    [
        a_tree_that_counts_what_has_left,
        a_tree_that_forgets_those_below,
        a_journal_that_takes_nothing_back,
        meetings_that_keep_makers_that_are_gone,
        a_deployment_that_forgets_whom_to_tell,
        a_deployment_that_books_nothing,
    ],
)
def test_a_broken_deployment_differs_from_its_twin(broken: Callable[[Patch], None], monkeypatch: Patch) -> None:
    broken(monkeypatch)
    with pytest.raises((AssertionError, BrokenInvariant, RoveError, KeyError)):
        all_seeds()


def a_rollout_that_tells_everybody_at_once(patch: Patch) -> None:
    patch.setattr(Rollout, "_blocker", lambda self, node, fragment, fragments: None)


def a_rollout_that_lets_everybody_leave(patch: Patch) -> None:
    patch.setattr(Rollout, "may_leave", lambda self, node, deployment: True)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (
            meetings_that_do_not_see_who_is_reached,
            reroute.test_an_operator_that_no_rows_reach_any_more_is_left_out_until_they_do,
        ),
        (
            absence_that_stops_at_the_first_reader,
            reroute.test_who_is_absent_is_followed_up_to_those_who_wait_for_it_indirectly,
        ),
        (
            a_rollout_that_tells_everybody_at_once,
            coordinator.test_a_route_of_relays_is_told_all_at_once_and_who_waits_for_rows_before_it,
        ),
        (
            a_rollout_that_lets_everybody_leave,
            coordinator.test_a_device_that_is_back_at_another_parent_is_led_there_before_the_old_one_lets_go,
        ),
    ],
)
def test_a_broken_machine_is_seen(
    broken: Callable[[Patch], None], test: Callable[[], None], monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    with pytest.raises((AssertionError, BrokenInvariant, RoveError)):
        test()


def test_a_listener_that_takes_reports_after_a_gap_is_seen(monkeypatch: Patch) -> None:
    heard = Membership.heard

    def careless(self: Membership, report: Any, conn: Any, now: int) -> Any:
        member = self.members.get(report.node)
        if member is not None:
            member.number = report.number - 1
        return heard(self, report, conn, now)

    monkeypatch.setattr(Membership, "heard", careless)
    test = reports.test_whoever_hears_all_reports_has_the_whole_picture_and_who_misses_one_asks_for_it
    seen = settings(phases=[Phase.generate], report_multiple_bugs=False)(test.hypothesis.inner_test)
    with pytest.raises(AssertionError):
        given(reports.HISTORIES)(seen)()  # the first history that shows the bug will do, however long it is

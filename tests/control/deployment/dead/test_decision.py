"""What becomes of the operators of a silent node."""

from __future__ import annotations

from typing import Any

import pytest

from rove.control.deployment.dead.decision import Decision, Facts, Patience, decide

SECOND_US = 1_000_000
WAIT, REPLACE, CANNOT = Decision.WAIT, Decision.REPLACE, Decision.CANNOT


@pytest.mark.parametrize(
    ("known", "decision", "why"),
    [
        ({}, REPLACE, "its operators start on another node"),
        ({"silent_us": 30 * SECOND_US}, WAIT, "its state is gone; its operators start on another node after 30 s"),
        ({"silent_us": 0, "durable": True}, WAIT, "its state is on its disk"),
        ({"patience_us": None}, WAIT, "its operators wait for it, however long"),
        ({"reached_by": "tram"}, WAIT, "`tram` does"),
        ({"obstacle": "`tram` has no other way"}, CANNOT, "`tram` has no other way"),
        ({"obstacle": "`tram` has no other way", "silent_us": 0}, WAIT, "after 30 s"),
        ({"obstacle": "`tram` has no other way", "reached_by": "tram"}, WAIT, "`tram` does"),
    ],
)
def test_a_decision_follows_from_what_was_observed_and_says_why(
    known: dict[str, Any], decision: Decision, why: str
) -> None:
    silent = Facts(**{"silent_us": 40 * SECOND_US, "patience_us": 30 * SECOND_US, "durable": False, **known})
    verdict = decide(silent)
    assert verdict.decision is decision
    assert why in verdict.why


def test_a_node_with_a_disk_is_waited_for_longer() -> None:
    patience = Patience()
    assert patience.of(durable=False) == 30 * SECOND_US
    assert patience.of(durable=True) == 600 * SECOND_US

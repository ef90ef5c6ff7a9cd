"""The benchmark of a city on one coordinator."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.city import SMOKE, City
from rove.model.ids import NodeId
from tests.bench.smoke import smoke


@pytest.mark.slow
def test_its_smoke_form_computes_every_check(tmp_path: Path) -> None:
    values = smoke("city", tmp_path)
    assert set(values) == {"changes_completed", "cost_per_change_growth"}
    assert values["changes_completed"] == 1
    assert values["cost_per_change_growth"] > 0


def test_a_change_that_nobody_was_told_of_is_not_complete() -> None:
    city = City(SMOKE, 10)
    device = city.read[0]
    old = city.nodes[device].reaches[0]
    assert city.is_complete(device, old)
    node = city.nodes[device]
    node.reaches = (next(parent for parent in node.facts.parents if parent != old),)
    assert not city.is_complete(device, old), "the coordinator does not know"
    node.reaches = (old,)
    city.move(device)
    assert city.is_complete(device, old)
    query = next(iter(city.machine.deployments.live(device)))
    city.nodes[NodeId(device)].running.pop(query.id)
    assert not city.is_complete(device, old), "the device does not run its part"

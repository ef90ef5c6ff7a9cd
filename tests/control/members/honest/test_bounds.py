"""Counts of rows that no node can have."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rove.control.members.honest.bounds import possible
from rove.model.foreign.checks import SUM_MAX
from rove.model.ids import Origin, QueryId
from rove.model.messages import Tally

TALLY = Tally(query=QueryId("q"), origin=Origin("s", "d"), watermark=0, held=(0, 1))
COUNTS = [name for name in Tally.__struct_fields__ if name != "watermark" and isinstance(getattr(TALLY, name), int)]


@pytest.mark.parametrize("bad", [-7, SUM_MAX + 1, 2**63])
@pytest.mark.parametrize("field", COUNTS)
def test_a_count_below_zero_or_beyond_all_sums_cannot_be(field: str, bad: int) -> None:
    assert possible(replace(TALLY, **{field: SUM_MAX}))
    assert not possible(replace(TALLY, **{field: bad}))


@pytest.mark.parametrize("watermark", [2**63, -(2**63)])
def test_a_watermark_beyond_all_times_cannot_be(watermark: int) -> None:
    assert not possible(replace(TALLY, watermark=watermark))

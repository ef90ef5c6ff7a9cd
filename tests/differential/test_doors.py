"""Every verb reads the entries of the corpus's select lists as PySpark's verb does, or refuses them by name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.differential.statements.doors import doors
from tests.differential.statements.inside import made_inside
from tests.differential.statements.verdicts import Judge

pytestmark = pytest.mark.slow  # it asks Spark more than two thousand questions; `.ci/run` runs it
ROWS = 200  # so many of them with their rows


def test_a_verb_reads_all_of_an_entry_or_refuses_it(spark: Any) -> None:
    asked = doors()
    found = dict(zip(asked, Judge(spark).verdicts(asked, all_of_them=False, rows_max=ROWS), strict=True))
    bugs = [f"{v.kind}: {d.text}\n    {v.why[:300]}" for d, v in found.items() if v.kind in ("different", "accepted")]
    assert not bugs, "\n".join(bugs)
    assert not (shown := made_inside({d.text: v.said for d, v in found.items()})), "\n".join(shown)
    kinds = Counter(v.kind for v in found.values())
    assert kinds["equal"] > 500, kinds

"""Functions that cannot be used on a stream say what to use instead."""

from __future__ import annotations

import pytest

from rove import functions as F


@pytest.mark.parametrize(
    ("name", "says"),
    [("udf", "mapInArrow"), ("row_number", "streaming Spark has no OVER"), ("nope", r"F\.expr\(\"nope\(…\)\"\)")],
)
def test_a_function_that_is_not_there_says_what_to_use(name: str, says: str) -> None:
    with pytest.raises(AttributeError, match=f"no `{name}`; .*{says}"):
        getattr(F, name)

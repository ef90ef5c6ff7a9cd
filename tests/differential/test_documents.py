"""`docs/expressions.md` says what the edge computes, as the edge itself says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.plan.expressions.bind import bind
from rove.plan.expressions.tree import refusal_of
from tests.differential.forms import FORMS, Form
from tests.differential.strategies import schema_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "expressions.md"
SUPPORTED_FORMS_LEAST = 150
_HEAD = """# What the edge computes

This file is written by `pytest tests/differential/test_documents.py --rewrite-docs`; do not edit it by hand.

An expression is Spark SQL. The edge runs it with Arrow kernels and gives, row for row, what Spark 4.3 gives
with ANSI on and the session's time zone at UTC: the same value, the same type, the same error. What Arrow
cannot do exactly is left to Spark: the plan says so before anything runs. Every form marked *edge* below is
compared with a real Spark by `tests/differential/test_forms.py`, on corner values of its types and on
random rows, and inside other forms by `tests/differential/test_compositions.py`. *edge, {ulps} ulp* marks
functions whose last digits come from the C library at the edge and from Java's in Spark; see [decision
2](decisions/0002-expressions.md).

{supported} forms are computed at the edge, {refused} of those tried are left to Spark.
"""


def _status(form: Form) -> str:
    reason = refusal_of(bind(form.sql, schema_of(form.columns)))
    if reason:
        return f"Spark: {reason}"
    return f"edge, {form.ulps} ulp" if form.ulps else "edge"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "\\n").replace("\x0b", "\\v")


def document() -> str:
    statuses = {form: _status(form) for form in FORMS}
    refused = sum(status.startswith("Spark") for status in statuses.values())
    parts = [_HEAD.format(supported=len(FORMS) - refused, refused=refused, ulps=2)]
    for family in dict.fromkeys(form.family for form in FORMS):
        parts.append(f"\n## {family.capitalize()}\n\n| form | columns | computed by |\n|---|---|---|\n")
        rows = (f for f in FORMS if f.family == family)
        parts += [f"| ``{_cell(f.sql)}`` | {_cell(f.columns)} | {_cell(statuses[f])} |\n" for f in rows]
    return "".join(parts)


def test_the_list_of_forms_is_what_the_edge_says(pytestconfig: pytest.Config) -> None:
    text = document()
    if pytestconfig.getoption("--rewrite-docs"):
        DOCUMENT.write_text(text)
    assert DOCUMENT.exists(), "run with --rewrite-docs first"
    assert DOCUMENT.read_text() == text, "the edge computes other forms than the document says; run with --rewrite-docs"


def test_no_form_stands_twice() -> None:
    assert len({(f.sql, f.columns) for f in FORMS}) == len(FORMS)


def test_the_edge_computes_at_least_as_much_as_promised() -> None:
    supported = [f for f in FORMS if not refusal_of(bind(f.sql, schema_of(f.columns)))]
    assert len(supported) >= SUPPORTED_FORMS_LEAST

"""The forms, a family a file, in the order in which the document lists them."""

# ruff: noqa: I001 (the order of the imports is the order of the document)
from __future__ import annotations

from tests.differential.forms.form import FORMS, Form
from tests.differential.forms import logic
from tests.differential.forms import comparison
from tests.differential.forms import arithmetic
from tests.differential.forms import mathematics
from tests.differential.forms import number_casts
from tests.differential.forms import text_casts
from tests.differential.forms import strings
from tests.differential.forms import patterns
from tests.differential.forms import times
from tests.differential.forms import conditions
from tests.differential.forms import nested
from tests.differential.forms import literals
from tests.differential.forms import scalars

FAMILIES = (
    logic,
    comparison,
    arithmetic,
    mathematics,
    number_casts,
    text_casts,
    strings,
    patterns,
    times,
    conditions,
    nested,
    literals,
    scalars,
)

__all__ = ["FAMILIES", "FORMS", "Form"]

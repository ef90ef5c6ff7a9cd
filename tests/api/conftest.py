"""Sessions that find their coordinator in this process."""

from __future__ import annotations

import pytest

from rove.api import session
from tests.api.desk import Desk


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A coordinator that knows a gateway, an edge and a tram."""
    found = Desk()
    found.line_up()
    monkeypatch.setattr(session, "_dialled", lambda url, keys: found)
    return found

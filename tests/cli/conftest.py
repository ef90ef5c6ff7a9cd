"""The `rove` command in this process, with a coordinator beside it. It is fast, and everything but the network is
real."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rove.api import session
from rove.cli import main
from tests.api.desk import Desk


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said, and how it ended."""

    out: str
    error: str
    code: int


Rove = Callable[..., Said]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A coordinator that knows a gateway, an edge and a tram."""
    found = Desk()
    found.line_up()
    monkeypatch.setattr(session, "_dialled", lambda url, keys: found)
    return found


@pytest.fixture
def rove(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rove:
    """Type a command."""

    monkeypatch.setenv("COLUMNS", "200")  # the width of a terminal, wherever the tests run

    def typed(*args: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["rove", *args])
        capsys.readouterr()
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        out, error = capsys.readouterr()
        if isinstance(code, str):  # as the interpreter would print it
            code, error = 1, f"{error}{code}\n"
        return Said(out, error, int(str(code or 0)))

    return typed

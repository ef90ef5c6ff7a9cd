"""Processes of functions start as on a device: without pandas, which takes seconds to import."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_pandas(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = tmp_path_factory.mktemp("no_pandas")
    (folder / "pandas.py").write_text("raise ImportError('a device has no pandas')\n")
    monkeypatch.syspath_prepend(folder)

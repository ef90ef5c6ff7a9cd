"""Which whole runs everybody runs, and which only those who ask."""

from __future__ import annotations

from pathlib import Path

import pytest

BY_OPTION = {"test_cloud_kills.py": "--all-kills", "test_cellular.py": "--cellular"}  # minutes each


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    option = BY_OPTION.get(collection_path.name)
    return True if option is not None and not config.getoption(option) else None

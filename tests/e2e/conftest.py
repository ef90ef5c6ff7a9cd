"""Which end-to-end tests run by default and which need a flag; and the processes of a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster

BY_OPTION = {"test_cloud_kills.py": "--all-kills", "test_cellular.py": "--cellular"}  # minutes each


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    option = BY_OPTION.get(collection_path.name)
    return True if option is not None and not config.getoption(option) else None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    yield found
    found.destroy()

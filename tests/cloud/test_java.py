"""Java is found, or asked for in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rove.cloud.start import java
from rove.model.errors import SetupError


def fake(home: Path, version: str) -> Path:
    """A Java home whose java says it is of a version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_PLACES", ())
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("nothing_installed", "processes")
def test_java_home_is_taken_if_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "jdk", "21.0.1")))
    assert java.ensure_java() == tmp_path / "jdk"


@pytest.mark.usefixtures("nothing_installed", "processes")
def test_an_old_java_is_passed_over_for_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "old", "11.0.2")))
    newer = fake(tmp_path / "jvm" / "java-17", "17.0.9")
    monkeypatch.setattr(java, "_PLACES", (f"{tmp_path}/jvm/*/bin/java",))
    assert java.find_java() == newer


@pytest.mark.usefixtures("nothing_installed")
def test_without_java_and_without_rights_the_error_is_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(java.os, "geteuid", lambda: 1000)
    with pytest.raises(
        SetupError, match="Type: sudo apt-get install -y --no-install-recommends openjdk-17-jre-headless"
    ):
        java.ensure_java()


@pytest.mark.usefixtures("nothing_installed")
def test_without_a_package_manager_the_error_says_what_is_needed() -> None:
    with pytest.raises(SetupError, match="needs Java 17 or newer"):
        java.ensure_java()

"""A file source goes on where it was: through restarts, and never unasked from its first row again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rove.data.sources.positions import Fed, SourceAt
from rove.model.errors import SetupError
from rove.model.ids import Origin
from rove.runtime.adapters.places import Places
from rove.runtime.adapters.sources import SourceSpec, read_spec
from rove.runtime.disk.shelf import DiskShelf
from rove.runtime.network.bell import Bell

AT = SourceAt(Origin("s", "dev", 7), 5, {"q": Fed(1, 3, 20)}, 6)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[DiskShelf]:
    found = DiskShelf(tmp_path / "dev", Bell())
    yield found
    found.close()


def spec_of(path: Path, rows: int = 10) -> SourceSpec:
    return read_spec(f"s=file:{path},rows={rows}", "n int", "dev")


@pytest.fixture
def file(tmp_path: Path, shelf: DiskShelf) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("n\n1\n2\n")
    places = Places(shelf)
    assert places.of(spec_of(path)) is None
    places.keep([AT], [spec_of(path)])
    return path


def test_a_kept_place_is_found_by_the_next_start(shelf: DiskShelf, file: Path) -> None:
    assert Places(shelf).of(spec_of(file)) == AT


def test_from_start_forgets_it_for_good(shelf: DiskShelf, file: Path) -> None:
    assert Places(shelf, again=True).of(spec_of(file)) is None
    assert Places(shelf).of(spec_of(file)) is None


def test_another_file_is_begun_and_what_may_be_missing_of_the_first_is_said(
    shelf: DiskShelf, file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("n\n1\n")
    assert Places(shelf).of(spec_of(other)) is None
    assert "2 batches of" in caplog.text


@pytest.mark.parametrize("changed", ["n\n1\n2\n3\n", "n\n9\n2\n"])
def test_a_file_that_has_changed_is_refused(shelf: DiskShelf, file: Path, changed: str) -> None:
    file.write_text(changed)
    with pytest.raises(SetupError, match=r"has changed since source `s` began to read it; .*--from start"):
        Places(shelf).of(spec_of(file))


def test_batches_of_another_size_are_refused(shelf: DiskShelf, file: Path) -> None:
    with pytest.raises(SetupError, match="in batches of 10 rows, not 20; write rows=10, or"):
        Places(shelf).of(spec_of(file, 20))


def test_a_damaged_file_of_places_does_not_begin_anew_unasked(tmp_path: Path, shelf: DiskShelf, file: Path) -> None:
    kept = tmp_path / "dev" / "places"
    kept.write_bytes(kept.read_bytes()[:-1] + b"\x00")
    for _ in range(2):
        with pytest.raises(SetupError, match=r"places.damaged is damaged; .*--from start"):
            Places(shelf).of(spec_of(file))
    assert Places(shelf, again=True).of(spec_of(file)) is None

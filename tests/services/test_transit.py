"""The ring line: which cell serves which place, and how trains move."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rove.model.errors import SetupError
from rove.model.events import COORDINATOR
from rove.services.transit import passengers, timetable
from rove.services.transit.journeys import Journeys
from rove.services.transit.ring import COVERED, SHAPE, STATIONS, TOWERS, Ring, apart, drawn_ring, real_ring


class Ether:
    """Who is cut off from whom."""

    def __init__(self) -> None:
        self.cuts: set[tuple[str, str]] = set()

    def cut(self, a: str, b: str) -> None:
        assert (a, b) not in self.cuts, "cut twice"
        self.cuts.add((a, b))

    def mend(self, a: str, b: str) -> None:
        self.cuts.remove((a, b))


def test_every_place_hears_one_cell_at_most_and_the_covered_part_is_what_it_should_be() -> None:
    ring = drawn_ring()
    places = [n / 10_000 for n in range(10_000)]
    heard = [ring.serving(place) for place in places]
    assert {cell.name for cell in ring.cells} == {name for name in heard if name is not None}
    assert sum(name is not None for name in heard) / len(heard) == pytest.approx(COVERED, abs=0.01)
    assert all(name in (None, ring.nearest(place)) for name, place in zip(heard, places, strict=True))


def test_a_train_goes_the_shorter_way_from_call_to_call() -> None:
    calls = [timetable.Call(n, f"s{n}", place) for n, place in enumerate((0.8, 0.9, 0.1))]
    found = [timetable.place_at(calls, progress) for progress in (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)]
    assert found == pytest.approx([0.8, 0.85, 0.9, 0.0, 0.1, 0.1])


def test_a_train_reaches_the_cell_it_hears_and_nobody_else() -> None:
    ring = drawn_ring()
    calls = timetable.drawn(ring, 5, 60)
    ether = Ether()
    journeys = Journeys(ether, ring, calls)
    names = {cell.name for cell in ring.cells}
    for step in range(200):
        journeys.go(step / 200)
        for train, here in journeys.cells.items():
            reached = {name for name in (*names, COORDINATOR) if (train, name) not in ether.cuts}
            assert reached == (set() if here is None else {here, COORDINATOR})
    assert journeys.moves >= 10
    journeys.arrive()
    assert None not in journeys.cells.values()


def test_calls_of_a_train_are_so_far_apart_that_no_count_is_late() -> None:
    calls = timetable.drawn(drawn_ring(), 3, 40)
    for batches in passengers.counted(calls, 1).values():
        for before, after in pairwise(batches):
            assert max(before["ts"].to_pylist()) < min(after["ts"].to_pylist())


def write(file: Path, rows: list[dict[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def small_ring(folder: Path) -> Ring:
    """A square for a shape, a station at each corner, and a tower at three of them."""
    corners = [(52.50, 13.30), (52.54, 13.30), (52.54, 13.40), (52.50, 13.40), (52.50, 13.30)]
    write(folder / SHAPE, [{"lat": a, "lon": b, "dist_m": n * 1_000.0} for n, (a, b) in enumerate(corners)])
    write(folder / STATIONS, [{"station": f"s{n}", "lat": a, "lon": b} for n, (a, b) in enumerate(corners[:4])])
    towers = [{"area": 1, "cell": n, "lat": a - 0.001, "lon": b + 0.001} for n, (a, b) in enumerate(corners[1:3])]
    far = {"area": 1, "cell": 9, "lat": 52.52, "lon": 13.35}
    (folder / TOWERS).parent.mkdir()
    pq.write_table(pa.Table.from_pylist([*towers, far]), folder / TOWERS)
    return real_ring(folder)


def test_the_real_ring_has_stations_and_towers_where_its_shape_passes_them(tmp_path: Path) -> None:
    ring = small_ring(tmp_path)
    assert list(ring.stations.values()) == [0.0, 0.25, 0.5, 0.75]
    assert {(cell.name, cell.place) for cell in ring.cells} == {("cell-0", 0.25), ("cell-1", 0.5)}
    row = {"line": "S41", "train_no": 7, "cancelled": "", "planned_arr": "", "actual_dep": "", "planned_dep": ""}
    at = [("s0", "2510140800"), ("s1", "2510140800"), ("s2", "2510140803"), ("nowhere", "2510140804")]
    write(tmp_path / timetable.STOP_EVENTS, [{**row, "station": s, "actual_arr": a} for s, a in at])
    (calls,) = timetable.real(ring, tmp_path, 3, 60).values()
    assert [(c.station, c.place) for c in calls] == [("s0", 0.0), ("s1", 0.25), ("s2", 0.5)]
    assert calls[1].at_us - calls[0].at_us == timetable.CALL_S * 1_000_000


def test_a_folder_without_a_ring_says_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no ring line"):
        real_ring(tmp_path)
    with pytest.raises(SetupError, match="no timetable"):
        timetable.real(drawn_ring(), tmp_path, 1, 1)


def test_places_are_apart_by_the_shorter_way_round() -> None:
    assert apart(0.1, 0.9) == pytest.approx(0.2)

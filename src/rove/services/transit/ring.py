"""A ring line and the radio cells along it: made up, or the Berlin ring with its real shape and towers.

Law: a place on the ring is a number from 0 to 1. The cell that serves a place depends on the place only. Between two
cells there is a stretch without a cell.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rove.model.errors import SetupError

CELLS = ("north", "east", "south", "west")
CELLS_REAL = 5
COVERED = 0.85  # the share of the ring that cells cover
NEAR_M = 500.0  # towers farther from the ring are ignored
METRES_LAT, METRES_LON = 111_200.0, 67_700.0  # the length of one degree, at Berlin
SHAPE, STATIONS, TOWERS = "ringbahn/shape_S41_clockwise.csv", "ringbahn/stations.csv", "towers/germany.parquet"


@dataclass(frozen=True, slots=True)
class Cell:
    """A tower, and its place on the ring."""

    name: str
    place: float


@dataclass(frozen=True, slots=True)
class Ring:
    """The cells, and the stations by name with their places."""

    cells: tuple[Cell, ...]
    stations: dict[str, float]

    def serving(self, place: float) -> str | None:
        """The cell that serves a place; None where no cell does."""
        half = COVERED / (2 * len(self.cells))
        near = min(self.cells, key=lambda cell: apart(cell.place, place))
        return near.name if apart(near.place, place) <= half else None

    def nearest(self, place: float) -> str:
        return min(self.cells, key=lambda cell: apart(cell.place, place)).name


def apart(a: float, b: float) -> float:
    """The distance between two places, the shorter way round."""
    gap = abs(a - b) % 1.0
    return min(gap, 1.0 - gap)


def drawn_ring(stations: int = 27) -> Ring:
    """Evenly spaced stations and cells."""
    cells = tuple(Cell(f"cell-{name}", n / len(CELLS)) for n, name in enumerate(CELLS))
    return Ring(cells, {f"station {n + 1}": n / stations for n in range(stations)})


def real_ring(folder: Path) -> Ring:
    """The Berlin ring: its stations at their real places, and some of the towers beside it, well apart."""
    try:
        shape = _shape(folder / SHAPE)
        with open(folder / STATIONS, newline="") as file:
            stations = {r["station"]: _along(shape, float(r["lat"]), float(r["lon"]))[0] for r in csv.DictReader(file)}
        towers = _towers(folder / TOWERS, shape)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise SetupError(f"{folder} has no ring line in it: {error}; leave out --data to have one drawn") from error
    wanted = (n / CELLS_REAL for n in range(CELLS_REAL))
    chosen = dict.fromkeys(min(towers, key=lambda cell: (apart(cell.place, at), cell.name)) for at in wanted)
    return Ring(tuple(chosen), stations)


Point = tuple[float, float, float]  # latitude, longitude, place


def _shape(file: Path) -> list[Point]:
    with open(file, newline="") as opened:
        rows = [(float(r["lat"]), float(r["lon"]), float(r["dist_m"])) for r in csv.DictReader(opened)]
    length = rows[-1][2]
    return [(lat, lon, metres / length) for lat, lon, metres in rows]


def _along(shape: Sequence[Point], lat: float, lon: float) -> tuple[float, float]:
    """The place on the ring nearest to a point, and how many metres away it is."""
    squares = [((a - lat) * METRES_LAT) ** 2 + ((b - lon) * METRES_LON) ** 2 for a, b, _ in shape]
    nearest = min(range(len(shape)), key=squares.__getitem__)
    return shape[nearest][2] % 1.0, squares[nearest] ** 0.5


def _towers(file: Path, shape: Sequence[Point]) -> list[Cell]:
    """Towers beside the ring."""
    table = pq.read_table(file, columns=["area", "cell", "lat", "lon"])
    lats, lons = [p[0] for p in shape], [p[1] for p in shape]
    inside = pc.and_(_within(table["lat"], lats, NEAR_M / METRES_LAT), _within(table["lon"], lons, NEAR_M / METRES_LON))
    found = []
    for row in table.filter(inside).to_pylist():
        place, metres = _along(shape, row["lat"], row["lon"])
        if metres <= NEAR_M:
            found.append(Cell(f"cell-{row['cell']}", place))
    if not found:
        raise ValueError("no towers beside the ring")
    return found


def _within(column: pa.ChunkedArray, around: Sequence[float], margin: float) -> pa.ChunkedArray:
    return pc.and_(pc.greater(column, min(around) - margin), pc.less(column, max(around) + margin))

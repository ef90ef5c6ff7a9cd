"""When trains of the ring call at which station: drawn from a seed, or as they really ran on a day in Berlin.

Law: the same seed, or the same files, give the same calls.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rove.model.errors import SetupError

START_US = 1_760_428_800_000_000  # 2025-10-14 08:00 UTC
STATIONS, STOP_EVERY_S, CELLS = 27, 130, 3
STOP_EVENTS, STATION_FILE = "ringbahn/stop_events_S41_S42.csv", "ringbahn/stations.csv"


@dataclass(frozen=True, slots=True)
class Call:
    """A train at a station. `cell` is the part of the ring that the station is in."""

    at_us: int
    station: str
    cell: int


Timetable = dict[str, list[Call]]


def drawn(trains: int, minutes: int) -> Timetable:
    """Trains one behind the other around a ring of evenly spaced stations."""
    stops = minutes * 60 // STOP_EVERY_S
    return {
        f"S41-{number:02}": [
            Call(
                START_US + (stop * STOP_EVERY_S + number * 7) * 1_000_000,
                f"station {(number * 2 + stop) % STATIONS + 1}",
                (number * 2 + stop) % STATIONS * CELLS // STATIONS,
            )
            for stop in range(stops)
        ]
        for number in range(trains)
    }


def real(folder: Path, trains: int, minutes: int) -> Timetable:
    """The trains with the most calls in the first minutes from 08:00 of the day on record."""
    try:
        cells = _cells(folder / STATION_FILE)
        with open(folder / STOP_EVENTS, newline="") as file:
            rows = [row for row in csv.DictReader(file) if not row["cancelled"]]
    except (OSError, KeyError) as error:
        raise SetupError(f"{folder} has no ring line in it: {error}; leave out --data to have one drawn") from error
    found: dict[str, list[Call]] = defaultdict(list)
    for row in rows:
        moment = row["actual_arr"] or row["planned_arr"] or row["actual_dep"] or row["planned_dep"]
        at = int(datetime.strptime(moment, "%y%m%d%H%M").replace(tzinfo=UTC).timestamp()) * 1_000_000
        if START_US <= at < START_US + minutes * 60_000_000 and row["station"] in cells:
            found[f"{row['line']}-{row['train_no']}"].append(Call(at, row["station"], cells[row["station"]]))
    chosen = sorted(found, key=lambda name: (-len(found[name]), name))[:trains]
    return {name: sorted(found[name], key=lambda call: call.at_us) for name in sorted(chosen)}


def _cells(file: Path) -> dict[str, int]:
    """Stations by the part of the ring they are in: thirds, from west to east."""
    with open(file, newline="") as opened:
        rows = sorted(csv.DictReader(opened), key=lambda row: float(row["lon"]))
    return {row["station"]: number * CELLS // len(rows) for number, row in enumerate(rows)}

"""When each train calls at which station: made up from a seed, or as on a real day in Berlin.

Law: the same seed, or the same files, give the same calls.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rove.model.errors import SetupError
from rove.services.transit.ring import Ring

START_US = 1_760_428_800_000_000  # 2025-10-14 08:00 UTC
STOP_EVERY_S = 130
CALL_S = 40  # the least time from one call to the next
STOP_EVENTS = "ringbahn/stop_events_S41_S42.csv"


@dataclass(frozen=True, slots=True)
class Call:
    """A train's stop at a station, with the station's place on the ring."""

    at_us: int
    station: str
    place: float


Timetable = dict[str, list[Call]]


def drawn(ring: Ring, trains: int, minutes: int) -> Timetable:
    """Made-up trains, evenly spread around the ring."""
    stations = list(ring.stations.items())
    found: Timetable = {}
    for number in range(trains):
        first = number * len(stations) // trains
        found[f"S41-{number:02}"] = [
            Call(START_US + (stop * STOP_EVERY_S + number * 7) * 1_000_000, *stations[(first + stop) % len(stations)])
            for stop in range(minutes * 60 // STOP_EVERY_S)
        ]
    return found


def real(ring: Ring, folder: Path, trains: int, minutes: int) -> Timetable:
    """The trains with the most calls in the first minutes after 08:00 of the recorded day."""
    try:
        with open(folder / STOP_EVENTS, newline="") as file:
            rows = [row for row in csv.DictReader(file) if not row["cancelled"]]
    except (OSError, KeyError) as error:
        raise SetupError(f"{folder} has no timetable in it: {error}; leave out --data to have one drawn") from error
    found: dict[str, list[Call]] = defaultdict(list)
    for row in rows:
        moment = row["actual_arr"] or row["planned_arr"] or row["actual_dep"] or row["planned_dep"]
        at = int(datetime.strptime(moment, "%y%m%d%H%M").replace(tzinfo=UTC).timestamp()) * 1_000_000
        if START_US <= at < START_US + minutes * 60_000_000 and row["station"] in ring.stations:
            call = Call(at, row["station"], ring.stations[row["station"]])
            found[f"{row['line']}-{row['train_no']}"].append(call)
    chosen = sorted(found, key=lambda name: (-len(found[name]), name))[:trains]
    return {name: _apart(sorted(found[name], key=lambda call: call.at_us)) for name in sorted(chosen)}


def _apart(calls: list[Call]) -> list[Call]:
    """Recorded times are whole minutes. Calls within one minute are spread out, one after the other."""
    found: list[Call] = []
    for call in calls:
        earliest = found[-1].at_us + CALL_S * 1_000_000 if found else call.at_us
        found.append(replace(call, at_us=max(call.at_us, earliest)))
    return found


def place_at(calls: Sequence[Call], progress: float) -> float:
    """The place of a train at a progress from 0 to 1 of its calls. Between two calls it goes the shorter way."""
    at = min(max(progress, 0.0), 1.0) * (len(calls) - 1)
    here, there = calls[int(at)].place, calls[min(int(at) + 1, len(calls) - 1)].place
    step = (there - here + 0.5) % 1.0 - 0.5
    return (here + step * (at - int(at))) % 1.0

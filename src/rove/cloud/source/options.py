"""The options of the data source.

Law: an unknown option or a bad value is refused before anything is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rove.model.clock import parse_duration
from rove.model.disk_folders import FAULT, LATE, LOG
from rove.model.errors import DiskError, PlanError, nearest
from rove.model.ids import checked_name

ASIDE = (LATE, FAULT)  # folders with rows that were set aside are read only if named
MILLISECOND_US = 1_000

# As users write them. Spark ignores their case.
KNOWN = (
    "path", "query", "stream", "output", "columns", "time", "delay", "span", "heartbeat", "metadata",
    "maxRowsPerTrigger", "maxBytesPerTrigger", "onDamage", "consumer", "parallelism",
)  # fmt: skip
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*[^`,\s]))\s*(?:,|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked options."""

    roots: tuple[str, ...]
    query: str
    output: str | None = None
    columns: tuple[str, ...] | None = None
    time: str | None = None
    delay_us: int = 0
    span_us: int = 0
    heartbeat: bool = False
    metadata: bool = False
    rows_max: int | None = None
    bytes_max: int | None = None
    skip_damage: bool = False
    consumer: str | None = None
    parallelism: int = 1


def parse_options(given: Mapping[str, str]) -> Options:
    """Check Spark's options and convert them to ours."""
    _refuse_unknown(given)
    options = {name.lower(): value for name, value in given.items()}
    roots = tuple(root for part in options.get("path", "").split(",") if (root := part.strip()))
    if not roots:
        raise PlanError("option `path` is missing; give the folder that holds `log`, or several with commas between")
    time = options.get("time")
    heartbeat = _flag(options, "heartbeat")
    if time is None and (lost := [n for n in ("delay", "span", "heartbeat") if n in options and options[n] != "false"]):
        raise PlanError(f"option `{lost[0]}` is about event time; name the event-time column in option `time`")
    # Spark keeps delays in whole milliseconds. A longer delay here would let Spark's watermark pass ours.
    delay_us = parse_duration(options.get("delay", "0 seconds"), "option `delay`") // MILLISECOND_US * MILLISECOND_US
    return Options(
        roots=roots,
        query=_query(options),
        output=_name(options, "output"),
        columns=_columns(options["columns"]) if "columns" in options else None,
        time=time,
        delay_us=delay_us,
        span_us=parse_duration(options.get("span", "0 seconds"), "option `span`"),
        heartbeat=heartbeat,
        metadata=_flag(options, "metadata"),
        rows_max=_count(options, "maxRowsPerTrigger"),
        bytes_max=_count(options, "maxBytesPerTrigger"),
        skip_damage=_choice(options, "onDamage", ("stop", "skip")) == "skip",
        consumer=_name(options, "consumer"),
        parallelism=_count(options, "parallelism") or os.cpu_count() or 1,
    )


def find_folders(options: Options) -> tuple[Path, ...]:
    """The log folder of each gateway, which must exist."""
    found = []
    for root in options.roots:
        query = Path(os.path.abspath(root)) / LOG / options.query
        if not query.is_dir():
            there = sorted(p.name for p in query.parent.iterdir()) if query.parent.is_dir() else []
            raise DiskError(f"{query} is not there; {nearest(query.name, there)}")
        found.append(query / (options.output or _only_output(query)))
        if not found[-1].is_dir():
            there = sorted(p.name for p in query.iterdir() if p.is_dir())
            raise DiskError(f"{found[-1]} is not there; {nearest(found[-1].name, there)}")
    if len(set(found)) < len(found):
        raise PlanError(f"option `path` names a folder twice: {', '.join(options.roots)}")
    return tuple(found)


def _only_output(query: Path) -> str:
    outputs = sorted(p.name for p in query.iterdir() if p.is_dir() and not p.name.startswith(ASIDE))
    if len(outputs) != 1:
        raise PlanError(f"{query} has {len(outputs)} outputs ({', '.join(outputs)}); name one in option `output`")
    return outputs[0]


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower() for name in KNOWN}
    for name in given:
        # Spark and tools around it add options of their own, with dots or a leading underscore.
        if name.lower() not in known and "." not in name and not name.startswith("_"):
            raise PlanError(f"no option `{name}`; {nearest(name, KNOWN)}")


def _query(options: Mapping[str, str]) -> str:
    named = {name for key in ("query", "stream") if (name := _name(options, key)) is not None}
    if len(named) != 1:
        what = "differ; give one of them" if named else "are missing; one of them names the folder under `log`"
        raise PlanError(f"options `query` and `stream` {what}")
    return named.pop()


def _name(options: Mapping[str, str], option: str) -> str | None:
    name = options.get(option)
    return None if name is None else checked_name(name, f"a folder (option `{option}`)")


def _columns(text: str) -> tuple[str, ...]:
    names, at = [], 0
    while at < len(text):
        match = _COLUMN.match(text, at)
        if match is None:
            raise PlanError(f"option `columns` is `{text}`; write names with commas between, odd ones in backticks")
        names.append(match[1].replace("``", "`") if match[1] else match[2])
        at = match.end()
    if len(set(names)) < len(names):
        raise PlanError(f"option `columns` names a column twice: {text}")
    return tuple(names)


def _flag(options: Mapping[str, str], option: str) -> bool:
    return _choice(options, option, ("false", "true")) == "true"


def _choice(options: Mapping[str, str], option: str, choices: tuple[str, ...]) -> str:
    said = options.get(option.lower(), choices[0]).strip().lower()
    if said not in choices:
        raise PlanError(f"option `{option}` is `{said}`; it is one of: {', '.join(choices)}")
    return said


def _count(options: Mapping[str, str], option: str) -> int | None:
    said = options.get(option.lower())
    if said is None:
        return None
    if not said.strip().isdecimal() or int(said) < 1:
        raise PlanError(f"option `{option}` is `{said}`; it is a whole number above 0")
    return int(said)

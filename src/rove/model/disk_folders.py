"""The folders below a node's own folder, as values. Their names are made and read here, and nowhere else.

Law: every part of a path is a checked name, so no path leads out of the node's folder, or into a folder of another
query. Two folders never have the same path. After a restart a path is read back into the same value.

    log/busy/out                  OutputFolder: the rows of an output
    log/busy/late-2               AsideFolder: late rows of stage 2; late-2-folded if they are folded
    log/busy/fault-2              AsideFolder: rows that stage 2 could not compute
    memory/busy, memory-7/busy    InputFolder: the input of stateful operators, which began anew in version 7
    retention/17/busy, retention/17-sent/busy    WaitingFolder: batches that wait since start 17, or may have arrived
    alerts/today                  the folder of a file sink: any other path
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rove.model.errors import BadName
from rove.model.ids import NAME_BYTES_MAX, QueryId, checked_name

LOG, MEMORY, RETENTION = "log", "memory", "retention"  # folders of the node itself
LATE, FAULT = "late-", "fault-"  # prefixes of folders with late rows, and with rows at fault
FOLDED = "-folded"  # the suffix of a folder with late rows that are folded
SENT = "-sent"  # the suffix of a start's folder for batches that may have arrived
READER = "reader-"  # the prefix of a file in which a reader says what it no longer needs
# Files in the folder of a node, and in that of a log. No folder of a user has such a name.
FILES = ("catalog.sqlite", "commit", "consumers", "lock", "places", "remembered", "starts")
FILE_ENDINGS = (".arrows", ".damaged", ".index", ".new")
PARTS_MAX = 8  # folders in the path of a sink
READ_MAX = 4_096  # paths that are remembered as read


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """The rows of one output of a query."""

    query: QueryId
    output: str

    def __str__(self) -> str:
        return f"{LOG}/{self.query}/{self.output}"


@dataclass(frozen=True, slots=True)
class AsideFolder:
    """Rows of a query that were set aside: late ones, or those at fault. `of` is a stage, or the name of an output."""

    query: QueryId
    of: str
    fault: bool = False
    folded: bool = False

    @property
    def name(self) -> str:
        """The name of the folder in that of its query."""
        return f"{FAULT if self.fault else LATE}{self.of}{FOLDED if self.folded else ''}"

    def __str__(self) -> str:
        return f"{LOG}/{self.query}/{self.name}"


@dataclass(frozen=True, slots=True)
class InputFolder:
    """The input of a query's stateful operators. Operators that began `anew` have a folder of their own: earlier input
    is of operators whose rows others have counted as lost."""

    query: QueryId
    anew: int = 0  # the version in which they began; 0 if they never did

    def __str__(self) -> str:
        return f"{MEMORY}-{self.anew}/{self.query}" if self.anew else f"{MEMORY}/{self.query}"


@dataclass(frozen=True, slots=True)
class WaitingFolder:
    """Batches of a query that a start of the node kept, because they wait. Those that were `sent` may have arrived."""

    query: QueryId
    start: int
    sent: bool = False

    def __str__(self) -> str:
        return f"{RETENTION}/{self.start}{SENT if self.sent else ''}/{self.query}"


NodeFolder = OutputFolder | AsideFolder | InputFolder | WaitingFolder


@lru_cache(READ_MAX)
def read_folder(path: str) -> NodeFolder | None:
    """The folder of a path; None if it is not one of the node itself."""
    found = _read(path.split("/"))
    return found if str(found) == path else None


def _read(parts: list[str]) -> NodeFolder | None:
    match parts:
        case ["log", query, name]:
            return _in_log(QueryId(query), name)
        case ["retention", start, query] if _is_number(start.removesuffix(SENT)):
            return WaitingFolder(QueryId(query), int(start.removesuffix(SENT)), start.endswith(SENT))
        case ["memory", query]:
            return InputFolder(QueryId(query))
        case [anew, query] if anew.startswith(f"{MEMORY}-") and _is_number(anew.removeprefix(f"{MEMORY}-")):
            return InputFolder(QueryId(query), int(anew.removeprefix(f"{MEMORY}-")))
    return None


def _in_log(query: QueryId, name: str) -> NodeFolder:
    for prefix in (LATE, FAULT):
        if name.startswith(prefix):
            of = name.removeprefix(prefix)
            return AsideFolder(query, of.removesuffix(FOLDED), prefix == FAULT, of.endswith(FOLDED))
    return OutputFolder(query, name)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def checked_output(name: str) -> str:
    """Check the name of a query's output, which becomes a folder beside those of rows that were set aside, and return
    it."""
    checked_name(name, "an output")
    if name.startswith((LATE, FAULT)) or name.endswith(FOLDED) or name[0].isdecimal():
        raise BadName(
            f"`{name}` cannot name an output: names that begin with `{LATE}`, `{FAULT}` or a digit, or end with "
            f"`{FOLDED}`, are of folders with rows that were set aside; choose another name"
        )
    return name


def checked_sink(path: str) -> str:
    """Check the path of a file sink, which leads from the node's own folder to the sink's, and return it."""
    shown = path if len(path) <= NAME_BYTES_MAX else f"{path[:NAME_BYTES_MAX]}…"
    parts = path.split("/")
    if len(parts) > PARTS_MAX:
        raise BadName(f"the path `{shown}` of a sink has {len(parts)} folders; it has at most {PARTS_MAX}")
    for part in parts:
        checked_name(part, f"a folder of the sink `{shown}`, which is below its node's own folder, like alerts/today")
        if part in FILES or part.endswith(FILE_ENDINGS) or part.startswith(READER):
            raise BadName(f"`{part}` in the sink `{shown}` is the name of a file of the node itself; choose another")
    if parts[0] in (LOG, MEMORY, RETENTION) or parts[0].startswith(f"{MEMORY}-"):
        raise BadName(f"`{shown}` is a folder of the node itself; choose another path for the sink")
    return path


def check_parts(path: str) -> None:
    """Refuse a path below a node's folder if one of its parts could lead elsewhere."""
    for part in path.split("/"):
        checked_name(part, f"a folder in `{path[:NAME_BYTES_MAX]}`")

"""Where the files of a node's sources go on after a restart: kept in the folder of the node, beside waiting batches.

Law: batch n of a file is the same rows in every start. A file that is not what it was when it was begun, or that is cut
into other batches, is refused by name. A node that cannot tell how far a file was read does not read it again unasked.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from rove.data.sources.positions import SourceAt
from rove.model.errors import SetupError
from rove.runtime.adapters.sources import SourceSpec
from rove.runtime.disk.shelf import DiskShelf

log = logging.getLogger("rove")

HEAD_BYTES = 65_536  # of a file, by which it is known again
AGAIN = "to read it again from its first row, give the flag --from start"


class Place(msgspec.Struct, frozen=True, array_like=True):
    """How far a file was read, by which source, in batches of how many rows. `size` and `head` tell whether it is the
    same file."""

    stream: str
    file: str
    rows: int
    size: int
    head: bytes
    at: SourceAt


class Places:
    """The places of one node. With `again`, files are read from their first row."""

    def __init__(self, shelf: DiskShelf, again: bool = False) -> None:
        self._shelf = shelf
        found, self._damaged = shelf.places()
        self._kept: dict[str, Place] = {}
        try:
            for place in msgspec.msgpack.decode(found, type=tuple[Place, ...]) if found is not None else ():
                self._kept[place.stream] = place
        except msgspec.MsgspecError as error:
            self._damaged = f"is not of this version of rove ({error})"
        if again:
            self._kept, self._damaged = {}, ""
            shelf.forget_places()

    def of(self, spec: SourceSpec) -> SourceAt | None:
        """Where a source goes on; None if it has not begun yet."""
        if self._damaged:
            raise SetupError(f"how far {spec.file} was read is not known: {self._damaged}; {AGAIN}")
        place = self._kept.get(spec.stream)
        if place is None or not place.at.reached:
            return None
        file = os.path.abspath(spec.file)
        if place.file != file:
            if place.at.next < place.at.reached:
                number = place.at.reached - place.at.next
                log.warning("source %s reads %s from now on; %d batches of %s may not have arrived", spec.stream, file,
                            number, place.file)  # fmt: skip
            return None
        if place.rows != spec.rows:
            raise SetupError(
                f"source `{spec.stream}` has begun {spec.file} in batches of {place.rows} rows, not {spec.rows}; write "
                f"rows={place.rows}, or {AGAIN}"
            )
        if (place.size, place.head) != _known_by(file):
            raise SetupError(f"{spec.file} has changed since source `{spec.stream}` began to read it; {AGAIN}")
        return place.at

    def keep(self, positions: Iterable[SourceAt], specs: Iterable[SourceSpec]) -> None:
        """Store the positions. They are on the disk when this returns, unless the shelf has trouble."""
        by_stream = {spec.stream: spec for spec in specs}
        for at in positions:
            known, spec = self._kept.get(at.origin.name), by_stream[at.origin.name]
            if known is not None and known.at.reached and known.at.origin == at.origin:
                self._kept[spec.stream] = msgspec.structs.replace(known, at=at)
            else:
                file = os.path.abspath(spec.file)
                self._kept[spec.stream] = Place(spec.stream, file, spec.rows, *_known_by(file), at)
        self._shelf.keep_places(msgspec.msgpack.encode(tuple(self._kept.values())))


def _known_by(file: str) -> tuple[int, bytes]:
    """The size of a file, and a checksum of its beginning; nothing if it is not there yet."""
    try:
        with open(file, "rb") as opened:
            return os.fstat(opened.fileno()).st_size, sha256(opened.read(HEAD_BYTES)).digest()
    except OSError:
        return 0, b""

"""What the machines of a node ask of its disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from rove.data.log.segments.commands import Position
from rove.data.log.segments.partition import Partition
from rove.data.log.segments.settings import LogSettings
from rove.data.log.segments.stored import Stored
from rove.model.batch import Header
from rove.model.events import Payload


class Shelf(Protocol):
    """The partitions of a node's disk, by folder."""

    def open(self, folder: str, schema: pa.Schema, settings: LogSettings | None = None) -> Partition:
        """A partition as it is on the disk, all of it committed; a new one if there is none."""

    def entries(self, folder: str) -> Iterable[tuple[Header, Payload | None]]:
        """Everything that was in a folder when it was opened, in order."""

    def readers(self, folder: str) -> Mapping[str, int]:
        """Who reads a folder from outside, by name, and the first position that each still needs."""

    def folders(self, prefix: str) -> list[str]:
        """The folders with a partition below one, in any order."""

    def lying(self, folder: str) -> Iterator[tuple[Position, Header, Stored]]:
        """What has become safe in a folder since the last call, and where its rows lie."""

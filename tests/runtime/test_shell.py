"""The coordinator's shell while its disk is full."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import pytest

from rove.control.coordinator import Coordinator
from rove.model.events import Arrived, Conn, Payload
from rove.model.ids import NodeId
from rove.model.messages import PROTOCOL, Facts, Message, Peer, Report
from rove.runtime.disk.catalog import Catalog
from rove.runtime.shell import CoordinatorShell


class Wire:
    """A transport that remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(self, conn: Conn, message: Message, payload: Payload | None = None) -> bool:
        self.sent.append(message)
        return True

    def dial(self, name: str, address: str, key: str = "") -> None: ...

    def hang_up(self, conn: Conn) -> None: ...

    def allow(self, peers: Iterable[Peer]) -> None: ...


def report(slots: int) -> Arrived:
    """A node that starts again each time, so that there is a new record of it."""
    facts = Facts(kind="edge", address="tcp://there", parents=(), slots=slots, memory_bytes=1, sources=())
    found = Report(protocol=PROTOCOL, node=NodeId("edge"), start=slots, number=1, whole=True, facts=facts)
    return Arrived(b"edge", found)


def test_while_the_disk_is_full_trouble_is_logged_once_and_no_more_is_kept_than_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog, wire = Catalog(tmp_path / "catalog.sqlite"), Wire()
    shell = CoordinatorShell(Coordinator(), wire, catalog)
    shell.start()
    (pages,) = catalog._base.execute("PRAGMA page_count").fetchone()
    catalog.keep([("filler", "", bytes(3_000))])
    catalog._base.execute(f"PRAGMA max_page_count = {pages + 1}")
    shell._unkept["large", "one"] = bytes(100_000)
    with caplog.at_level(logging.ERROR):
        for slots in range(1, 100):
            shell.round([report(slots)])
    assert [record.getMessage() for record in caplog.records] == [
        f"catalog {tmp_path / 'catalog.sqlite'} cannot be written: database or disk is full; make room on the disk"
    ]
    assert wire.sent == [], "nothing is said that is not stored"
    nodes = [name for kind, name in shell._unkept if kind == "node"]
    assert nodes == ["edge"]
    catalog._base.execute("PRAGMA max_page_count = 100000")
    shell.round([report(100)])
    assert ("node", "edge") in [(kind, name) for kind, name, _ in catalog.records()]
    shell.stop()

"""A node that is told to hold keeps its rows, and sends them when it is told to go on."""

from __future__ import annotations

from msgspec.structs import replace

from rove.data.events import Produced
from rove.model.events import Arrived, Tick
from rove.model.ids import NodeId, Version
from rove.model.messages import PROTOCOL, Peer, Welcome
from tests.data.test_worker import ORIGIN, alone, fragment, orders, rows
from tests.lines import lines

WEST = NodeId("west")


def test_a_node_that_holds_keeps_its_rows_until_the_next_version() -> None:
    device = alone()
    device.handle(Tick(), 1)
    device.handle(Arrived("west", Welcome(PROTOCOL, WEST, 7, 1, 0, 10**6)), 2)
    assert lines(device.handle(Produced(ORIGIN, rows(), 0), 3)) == [f"to west: Data 1: q {ORIGIN} 0, 2 rows"]
    first, peers = fragment(WEST, (ORIGIN,)), (Peer(node=WEST, address="there"),)
    holding, after = (replace(first, version=Version(v), holds=v == 2) for v in (2, 3))

    device.handle(orders(holding, peers=peers), 4)
    for n in (1, 2):
        assert lines(device.handle(Produced(ORIGIN, rows(), n), 4 + n)) == []
    assert len(device.store) == 3, "all are there, the first not acked"
    device.validate()

    said = lines(device.handle(orders(after, peers=peers), 8))
    assert [line for line in said if "Data" in line] == [
        f"to west: Data 2: q {ORIGIN} 1, 2 rows",
        f"to west: Data 3: q {ORIGIN} 2, 2 rows",
    ]
    device.validate()

"""The forwarding queries of NebulaStream-MSS (section 3.3), on our coordinator and our workers: the baseline.

When a device comes back at another parent, its query is redeployed. Operators that were already applied to its buffered
batches would be applied again. So the coordinator makes one forwarding query for each path, up to the replication
factor, and deploys it on all nodes of the path. The device sends all buffered batches over each path. Rove needs no
forwarding queries, because a batch carries its stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

import rove
from bench import football
from bench.ways import DEVICE, GATEWAY, HUB, ORIGIN, QUERY, SECOND, Ways
from rove.control.asks.requests import Submit
from rove.control.commands import Command
from rove.control.coordinator import Coordinator
from rove.control.deployment.query import QueryRecord
from rove.control.placement import Placement, SourceAt
from rove.data.store.store import KeptBatch
from rove.model.events import COORDINATOR
from rove.model.ids import NodeId, QueryId, Stage
from rove.model.messages import Sink
from rove.plan import codec
from rove.plan.optimizer import optimize
from rove.plan.stages import Stages
from rove.runtime.clock import now_us
from rove.runtime.disk.catalog import Catalog
from rove.runtime.local import LocalNet, LocalWires
from rove.runtime.shell import CoordinatorShell


class ForwardingCoordinator(Coordinator):
    """A coordinator that deploys forwarding queries when it is told to."""

    def forward(self, paths: Sequence[Sequence[NodeId]]) -> list[Command]:
        """One query for each path, from a device's buffer past the second filter to the sink. Returns the nodes to
        tell."""
        self._commands, self._orders = [], {}
        stream = rove.Session.local().stream("buffered", schema=football.COLUMNS)
        plan = codec.encode(Stages.of({"out": optimize(stream.where(SECOND).plan)}))
        for n, path in enumerate(paths):
            asked = Submit(name=forwarding(n), plan=plan, sink=Sink(kind="discard", node=path[-1]))
            query = self.deployments.new(QueryRecord.of(asked), plan)
            placement = Placement(
                hosts={Stage(0): (DEVICE,), Stage(1): (HUB,)},
                spark=frozenset(),
                routes={**dict(pairwise(path)), path[-1]: None},
                why={},
                slots={},
                memory_bytes={},
            )
            request = query.request(GATEWAY, {Stage(0): (SourceAt(ORIGIN, DEVICE),)}, lambda _: ())
            change = self.deployments.put_down(query, request, placement)
            self.deployments.add(query)
            self.roll_out(query, change)
        self._say_orders()
        return self._commands


class ForwardingNet(LocalNet):
    """Nodes in one process with such a coordinator."""

    def start_coordinator(self) -> None:
        wires = self._wires[COORDINATOR] = LocalWires(self, COORDINATOR)
        shell = CoordinatorShell(ForwardingCoordinator(), wires, Catalog(self.folder / "catalog.sqlite"))
        shell.start()
        self._shells[COORDINATOR] = shell


def forwarding(n: int) -> QueryId:
    return QueryId(f"{QUERY}-forwarding-{n}")


def buffer_of(ways: Ways) -> list[KeptBatch]:
    """Take the device's kept batches off its old route. They wait for forwarding queries."""
    route = ways.worker.running()[QUERY].route
    return [] if route is None else ways.worker.links()[route].take_back(QUERY)


def deploy(ways: Ways, replication: int) -> None:
    """Make and deploy the forwarding queries. Returns when the device runs them."""
    first = ways.at or 0
    order = [*ways.ways[first:], *ways.ways[:first]]
    paths = [[DEVICE, *way, HUB, GATEWAY] for way in order[:replication]]
    if isinstance(ways.machine, ForwardingCoordinator):
        ways.coordinator._obey(ways.machine.forward(paths))
    ways.wait(lambda: all(forwarding(n) in ways.worker.running() for n in range(replication)))


def send(ways: Ways, buffer: list[KeptBatch], replication: int) -> None:
    """Send all buffered batches over every path. Returns when every batch has arrived over one of them."""
    worker = ways.worker
    worker._turn.begin(now_us())
    for entry in buffer:
        for n in range(replication):
            header = replace(entry.header, query=forwarding(n), stage=0)
            running = worker.running()[forwarding(n)]
            worker._exits.forward(running, header, entry.in_memory, None)
        worker.store.drop(entry)
    ways.shell._obey(worker._turn.commands)
    rows = sum(entry.header.born for entry in buffer)
    ways.wait(lambda: any(ways.delivered(forwarding(n)) >= rows for n in range(replication)))

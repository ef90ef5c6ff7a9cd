"""Routes over mobile networks: TCP proxies that are as fast, as slow and as dead as measured links were.

Each connection has a link of its own, in turns. Bytes wait while there is no rate; after a long outage the connection
is gone, as behind a mobile operator's gateway.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pyarrow.parquet as pq

FILE = "links/cellular.parquet"
CHUNK_BYTES, WAITING_MAX = 4_096, 16
OUTAGE_MIN_S, OUTAGE_MAX_S = 5.0, 60.0
BEFORE_S = 30.0  # of good service, before the first outage
BREAKS_S = 8.0  # an outage after which a connection is gone


@dataclass(frozen=True)
class Trace:
    """Rates over time, again and again: from each moment on so many bytes a second."""

    moments_s: tuple[float, ...]
    rates: tuple[float, ...]
    latency_s: float

    def sent_at(self, size: int, now: float) -> float:
        """When so many bytes are through that begin now."""
        whole = self.moments_s[-1]
        left = float(size)
        while True:
            at = bisect_right(self.moments_s, now % whole) - 1
            until = now - now % whole + self.moments_s[at + 1]
            able = self.rates[at] * (until - now)
            if able >= left and self.rates[at]:
                return now + left / self.rates[at]
            left -= able
            now = until + 1e-9

    def outages(self) -> list[float]:
        """Lengths of the times without any rate, in seconds."""
        found, begun = [], None
        for moment, rate in zip(self.moments_s, (*self.rates, 1.0), strict=True):
            if rate and begun is not None:
                found.append(moment - begun)
                begun = None
            elif not rate and begun is None:
                begun = moment
        return found


def traces(seconds: float, count: int) -> list[Trace]:
    """Links with outages: measured ones if the data is there (ROVE_DATA), or made up in their shape."""
    data = os.environ.get("ROVE_DATA")
    found = list(_measured(Path(data) / FILE, seconds)) if data else []
    return [*found, *(_made_up(random.Random(n), seconds) for n in range(count))][:count]


def _measured(file: Path, seconds: float) -> Iterator[Trace]:
    table = pq.read_table(file).sort_by([("trace", "ascending"), ("t_ms", "ascending")])
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for name, ms, kbps, latency in zip(
        *(table[c].to_pylist() for c in ("trace", "t_ms", "kbps", "latency_ms")), strict=True
    ):
        rows.setdefault(name, []).append((ms / 1_000, kbps * 125.0, latency / 1_000))
    for points in rows.values():
        dead = next((t for t, rate, _ in points if not rate and t > BEFORE_S), None)
        part = [p for p in points if dead is not None and dead - BEFORE_S <= p[0] < dead - BEFORE_S + seconds]
        if len(part) < 2 or part[-1][0] - part[0][0] < seconds / 2:
            continue
        trace = Trace(tuple(t - part[0][0] for t, _, _ in part), tuple(r for _, r, _ in part[:-1]), part[0][2])
        if OUTAGE_MIN_S <= max(trace.outages(), default=0.0) <= OUTAGE_MAX_S:
            yield trace


def _made_up(chance: random.Random, seconds: float) -> Trace:
    moments, rates = [0.0], list[float]()
    while moments[-1] < seconds:
        dead = chance.random() < 0.04
        rates.append(0.0 if dead else 125.0 * chance.lognormvariate(6.5, 0.8))
        moments.append(
            moments[-1] + (chance.uniform(OUTAGE_MIN_S, OUTAGE_MAX_S / 2) if dead else chance.uniform(0.8, 1.2))
        )
    return Trace(tuple(moments), tuple(rates), 0.05)


class CellularProxy:
    """Carries bytes between whoever dials it and a port, over one of the links each."""

    def __init__(self, port: int, links: list[Trace]) -> None:
        self._port, self._links = port, cycle(links)
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.broken = 0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        trace = next(self._links)
        try:
            far, far_out = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            near_out.close()
            return
        ways = [asyncio.ensure_future(self._carry(r, w, trace)) for r, w in ((near, far_out), (far, near_out))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for out in (near_out, far_out):
            out.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trace: Trace) -> None:
        """Bytes in one direction, each chunk when the link is through with it; ends when the connection does."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING_MAX)

        async def read() -> None:
            free = 0.0
            while data := await reader.read(CHUNK_BYTES):
                now = max(free, self._loop.time())
                free = trace.sent_at(len(data), now)
                if free - now > BREAKS_S:
                    self.broken += 1
                    await asyncio.sleep(free - self._loop.time())
                    break
                await waiting.put((free + trace.latency_s, data))
            await waiting.put((0.0, b""))

        reading = asyncio.ensure_future(read())
        try:
            while True:
                due, data = await waiting.get()
                if not data:
                    return
                await asyncio.sleep(due - self._loop.time())
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            reading.cancel()

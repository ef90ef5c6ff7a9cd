"""`rove cloud` as a process: Spark beside a coordinator, brought to what it wants and telling how it gets on."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rove.cloud.runtime import CloudRuntime
from rove.cloud.session import spark_session, streaming_settings
from rove.control.asks.requests import CloudAsk, CloudQuery, Named
from rove.model.errors import RoveError, SetupError
from rove.runtime.network.client import Client
from rove.runtime.network.keys import load_keys
from rove.runtime.settings import CloudSection

log = logging.getLogger(__name__)


def run_cloud(section: CloudSection, shown: Callable[[str], AbstractContextManager[object]] = nullcontext) -> None:
    """Run queries in Spark until a signal says stop. Without the coordinator they run on as they are. `shown` tells
    people what they wait for."""
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it tells of every call of a function by Spark
    keys = load_keys(section.keys) if section.keys else None
    with Client(section.coordinator or (keys.url if keys is not None else ""), keys) as client:
        log.info("starts Spark at %s", section.master)
        with shown("Spark starts; it takes some ten seconds …"):
            spark = start_spark(section)
        log.info("Spark is up")
        places = (Path(section.logs), Path(section.tables), Path(section.state))
        runtime = CloudRuntime(spark, *places, trusts=section.trust_functions)
        try:
            follow(runtime, client.ask, section.poll_ms / 1_000, ended)
        finally:
            runtime.stop()
            spark.stop()


def follow(runtime: CloudRuntime, ask: Callable[[str, Any, Any], Any], every_s: float, ended: threading.Event) -> None:
    """Look at what should run, and tell how it goes, until it is over."""
    silent = False
    while not ended.is_set():
        try:
            runtime.settle(ask("cloud", CloudAsk(trusts=runtime.trusts), list[CloudQuery]))
            for progress in runtime.watch():
                ask("progress", progress, Named)
            silent = False
        except SetupError as error:
            if not silent:
                log.warning("runs on by itself: %s", error)
            silent = True
        except RoveError as error:
            log.error("%s", error)
        ended.wait(every_s)


def start_spark(section: CloudSection) -> Any:
    """A Spark session as the section wants it, with the settings that make small batches quick."""
    wanted = {**streaming_settings(), "spark.driver.memory": section.memory, **section.spark}
    return spark_session(section.master, wanted, "rove cloud", record=True)

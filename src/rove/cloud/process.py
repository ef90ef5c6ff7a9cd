"""The process of `rove cloud`: runs the queries in Spark that the coordinator asks for, and reports their progress."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rove.cloud.runtime import CloudRuntime
from rove.cloud.start.session import spark_session, streaming_settings
from rove.control.asks.requests import CloudAsk, CloudQuery, Named, PlanAsk, TableAsk
from rove.model.errors import RoveError, SetupError
from rove.runtime.network.client import Client
from rove.runtime.network.keys import load_keys
from rove.runtime.settings import CloudSection

log = logging.getLogger(__name__)


def run_cloud(section: CloudSection, shown: Callable[[str], AbstractContextManager[object]] = nullcontext) -> None:
    """Run queries in Spark until a signal stops it. While the coordinator is away, queries go on unchanged. `shown`
    displays what the user is waiting for."""
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    logging.getLogger("py4j").setLevel(logging.WARNING)  # py4j logs every call of a function by Spark
    keys = load_keys(section.keys) if section.keys else None
    with Client(section.coordinator or (keys.url if keys is not None else ""), keys) as client:
        log.info("starting Spark at %s", section.master)
        with shown("starting Spark, which takes about ten seconds …"):
            spark = start_spark(section)
        log.info("Spark is up")
        places = (Path(section.logs), Path(section.tables), Path(section.state))
        runtime = CloudRuntime(
            spark,
            *places,
            trusts=section.trust_functions,
            table_ms=section.table_ms,
            compact_files=section.compact_files,
        )
        try:
            follow(runtime, client.ask, section.poll_ms / 1_000, ended)
        finally:
            runtime.stop()
            spark.stop()


def follow(runtime: CloudRuntime, ask: Callable[[str, Any, Any], Any], every_s: float, ended: threading.Event) -> None:
    """Ask what should run and report progress, until `ended`. A trouble is logged once, and again when it has
    changed."""
    said = ""
    while not ended.is_set():
        try:
            runtime.settle(ask("cloud", CloudAsk(trusts=runtime.trusts), list[CloudQuery]))
            for progress in runtime.watch():
                ask("progress", progress, Named)
            for wanted in ask("reads", None, list[TableAsk]):
                ask("rows", runtime.answer(wanted), Named)
            for plan in ask("checks", None, list[PlanAsk]):
                ask("checked", runtime.check(plan), Named)
            if said:
                log.info("the coordinator is there again")
            said = ""
        except RoveError as error:
            if str(error) != said:
                why = "queries go on without the coordinator" if isinstance(error, SetupError) else "refused"
                log.warning("%s: %s", why, error)
            said = str(error)
        ended.wait(every_s)


def start_spark(section: CloudSection) -> Any:
    """A Spark session with the section's settings, and the settings that make small batches fast."""
    wanted = {**streaming_settings(), "spark.driver.memory": section.memory, **section.spark}
    return spark_session(section.master, wanted, "rove cloud", record=True)

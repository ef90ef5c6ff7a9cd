"""Starts a Spark session with the settings that Rove's guarantees need: ANSI errors and UTC."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from rove.cloud.start.archive import class_archive
from rove.cloud.start.java import ensure_java

SETTINGS: dict[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "rove.cloud.start.workers",
}


# Settings that make small micro-batches fast. Each was measured.
_STREAMING: dict[str, str] = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.locality.wait": "0",
}
# PySpark's loggers that print every error that it raises, with its Java stack. Rove raises the error in its own words.
_REPEAT_ERRORS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def streaming_settings() -> dict[str, str]:
    """Spark settings for queries that never end."""
    return dict(_STREAMING)


def frame_of(spark: Any, table: pa.Table) -> Any:
    """A DataFrame of a table. A table without chunks gets an empty one, because PySpark fails on it."""
    return spark.createDataFrame(table if table.num_rows else table.schema.empty_table())


def spark_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, name: str = "rove", record: bool = False
) -> Any:
    """A session at `master`. `settings` override ours. Finds or installs Java first. With `record` the first start
    makes the class archive (`archive`), so that the next start is faster."""
    archive = class_archive(ensure_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    chosen = {**SETTINGS, **(settings or {})}
    ours = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"]
    ours += archive.options(record) if archive is not None else []
    chosen[_JAVA_OPTIONS] = " ".join([*(f'"{option}"' for option in ours), chosen.get(_JAVA_OPTIONS, "")]).strip()
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    for logger in _REPEAT_ERRORS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    session = builder.getOrCreate()
    if archive is not None and record:
        archive.build_at_exit(session)
    return session

"""Asks the Spark of this computer whether it would run a plan, for users of a network without a `rove cloud` yet.

Law: nothing is left behind. A Spark session that the program has is used; else a process of its own starts Spark, says
what Spark says, and ends. Without PySpark or Java nothing is asked and nothing is installed.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from rove.cloud.analysis import check_plan, is_final
from rove.cloud.start.java import find_java
from rove.model.errors import RoveError
from rove.plan.codec import decode
from rove.plan.user_functions import reader

log = logging.getLogger(__name__)

START_S = 120  # for Spark to start and to read a plan, on a busy computer
READY, REFUSED = 0, 3  # exit codes


def refused_here(plan: bytes, mode: str) -> str:
    """Why the Spark of this computer would not run a plan (plan/codec); empty if it would, or if there is none."""
    if find_spec("pyspark") is None:
        return ""
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        return _refused(session, plan, mode)
    if find_java() is None:
        return ""
    log.info("asking the Spark of this computer whether it would run the query")
    command = [sys.executable, "-c", f"from {__name__} import main; main({mode!r})"]
    try:
        done = subprocess.run(command, input=plan, capture_output=True, timeout=START_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("the Spark of this computer could not be asked: %s", error)
        return ""
    return done.stdout.decode().strip() if done.returncode == REFUSED else ""


def main(mode: str) -> None:
    """The process of its own: a plan comes in, and why Spark would not run it goes out."""
    from rove.cloud.start.session import spark_session

    plan = sys.stdin.buffer.read()
    spark = spark_session("local[1]", name="rove submit")
    try:
        why = _refused(spark, plan, mode)
    finally:
        spark.stop()
    print(why)
    sys.exit(REFUSED if why else READY)


def _refused(spark: Any, plan: bytes, mode: str) -> str:
    """What is not there is no refusal: tables that the query reads may be elsewhere."""
    try:
        stages = decode(plan, reader(True))
        check_plan(spark, stages.operators[stages.outputs[0][1]], mode)
    except RoveError as error:
        return str(error) if is_final(error) else ""
    except Exception as error:  # whatever a user's function raises here, the query may run elsewhere
        log.info("the Spark of this computer could not read the query: %s", error)
    return ""

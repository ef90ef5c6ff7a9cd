"""A user's question reaches Spark, and its answer the user: for rows of a table, and whether a plan would run."""

from __future__ import annotations

import pytest

from rove.control.asks.requests import CloudAsk, CloudQuery, Named, PlanAsk, PlanSaid, TableAsk, TableRows
from rove.control.members.spark_questions import KEPT_US, SparkQuestions
from rove.control.members.spark_side import SILENT_US
from rove.model.errors import PlanError, RoveError
from tests.api.desk import Desk

ASKED = TableAsk(id="a", table="seen", limit=3)
ROWS = TableRows(id="a", ready=True, rows=b"rows")


def test_a_request_waits_for_spark_and_its_answer_can_be_fetched_again() -> None:
    desk = Desk()
    desk.ask("cloud", CloudAsk(), list[CloudQuery])
    assert desk.ask("read", ASKED, TableRows) == TableRows(id="a")
    assert desk.ask("reads", None, list[TableAsk]) == [ASKED]
    assert desk.ask("read", ASKED, TableRows) == TableRows(id="a")
    assert desk.ask("reads", None, list[TableAsk]) == [ASKED]
    desk.ask("rows", ROWS, Named)
    assert desk.ask("reads", None, list[TableAsk]) == []
    assert [desk.ask("read", ASKED, TableRows) for _ in range(2)] == [ROWS, ROWS]


def test_without_a_spark_that_asks_nobody_waits() -> None:
    desk = Desk()
    with pytest.raises(RoveError, match="only Spark can read tables"):
        desk.ask("read", ASKED, TableRows)
    desk.ask("cloud", CloudAsk(), list[CloudQuery])
    desk.now += SILENT_US + 1
    with pytest.raises(RoveError, match="start: rove cloud"):
        desk.ask("read", ASKED, TableRows)


def test_a_spark_that_is_starting_a_query_still_counts_as_running() -> None:
    desk = Desk()
    desk.ask("cloud", CloudAsk(), list[CloudQuery])
    desk.now += 20_000_000
    assert desk.ask("read", ASKED, TableRows) == TableRows(id="a")


def test_a_name_that_is_no_table_is_refused() -> None:
    desk = Desk()
    desk.ask("cloud", CloudAsk(), list[CloudQuery])
    with pytest.raises(RoveError, match="a table"):
        desk.ask("read", TableAsk(id="a", table="../etc", limit=1), TableRows)


def test_questions_are_bounded_and_forgotten() -> None:
    reads = SparkQuestions[TableAsk, TableRows](16, "16 tables are being read already")
    for number in range(16):
        reads.ask(TableAsk(id=str(number), table="t", limit=1), 0)
    with pytest.raises(PlanError, match="are being read already"):
        reads.ask(ASKED, KEPT_US)
    assert reads.ask(ASKED, KEPT_US + 1) is None
    assert reads.wanted() == [ASKED]
    reads.heard(TableRows(id="strange", ready=True))
    assert reads.wanted() == [ASKED]


def test_a_plan_is_checked_by_a_spark_that_asks_and_by_nobody_without_one() -> None:
    desk = Desk()
    asked = PlanAsk(id="p", plan=b"plan", mode="append")
    assert desk.ask("check", asked, PlanSaid) == PlanSaid(id="p", ready=True, known=False)
    assert desk.ask("checks", None, list[PlanAsk]) == []
    desk.ask("cloud", CloudAsk(), list[CloudQuery])
    assert desk.ask("check", asked, PlanSaid) == PlanSaid(id="p")
    assert desk.ask("checks", None, list[PlanAsk]) == [asked]
    said = PlanSaid(id="p", ready=True, refused="Spark refuses this query")
    desk.ask("checked", said, Named)
    assert desk.ask("checks", None, list[PlanAsk]) == []
    assert desk.ask("check", asked, PlanSaid) == said

"""Arguments of a wrong kind are refused by name, at every door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, getattr_static, isfunction, signature
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.api.arguments import checked, hints_of
from rove.api.column import Case, Column
from rove.api.query import Query
from rove.api.reader import TableReader
from rove.api.session import Session
from rove.api.stream import CountedStream, GroupedStream, NullVerbs, Stream
from rove.api.verbs.joined import JoinedStream
from rove.api.writer import StreamWriter
from rove.model.errors import RoveError, WrongKind

CLASSES = (
    Session, Stream, JoinedStream, NullVerbs, GroupedStream, CountedStream, Column, Case, Query, StreamWriter,
    TableReader,
)  # fmt: skip
WEIRD = (
    None, 1, -1, 1.5, True, "", "no such", "a b c", b"x", [], [1], [None], [{"a": 1}], {}, {"a": "x"}, (), object(),
    pa.table({"a": [1]}), pa.int32(), lambda x: x, int, np.int64(2), float("nan"),
)  # fmt: skip


def public(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(kind):
        member = getattr_static(kind, name)
        function = member.__func__ if isinstance(member, classmethod) else member
        if not name.startswith("_") and isfunction(function):
            yield name, function


@pytest.mark.parametrize("kind", CLASSES, ids=lambda k: k.__name__)
def test_every_public_method_checks_every_argument(kind: type) -> None:
    for name, function in public(kind):
        assert hasattr(function, "__wrapped__"), f"{kind.__name__}.{name} does not check its arguments"
        declared = {n for n, p in signature(function).parameters.items() if p.annotation is not Parameter.empty}
        assert {n for n, _ in hints_of(function.__wrapped__)} == declared - {"body"}, f"{kind.__name__}.{name}"


def base() -> Stream:
    session = rove.Session.local()
    return session.stream("r", schema="a int, s string, t timestamp, m map<string,int>, l array<int>")


def doors() -> Iterator[tuple[str, Callable[[], Any]]]:
    stream = base()
    timed = stream.withWatermark("t", "5 seconds")
    yield from (
        ("stream", lambda: stream),
        ("grouped", lambda: timed.groupBy(F.window("t", "10 seconds"), "s")),
        ("counted", lambda: timed.countWindow(5)),
        ("nulls", lambda: stream.na),
        ("column", lambda: F.col("a")),
        ("case", lambda: F.when(F.col("a") > 1, 1)),
        ("writer", lambda: stream.writeStream),
        ("functions", lambda: F),
    )


RUNS = ("toArrow", "toTable", "start", "foreachBatch", "explain", "inSpark", "transform", "asked", "spark_sink")


@pytest.mark.parametrize("door", doors(), ids=lambda d: d[0])
def test_whatever_is_given_the_error_is_one_of_ours(door: tuple[str, Callable[[], Any]]) -> None:
    """Python's own word about a wrong number of arguments is as good."""
    bad = []
    _, made = door
    for name in dir(made()):
        if name.startswith("_") or name in RUNS or not callable(method := getattr(made(), name)):
            continue
        for given in [(w,) for w in WEIRD] + [("a", w) for w in WEIRD] + [(w, "a") for w in WEIRD]:
            try:
                method(*given)
            except RoveError:
                pass
            except Exception as error:
                if not isinstance(error, TypeError) or "argument" not in str(error):
                    bad.append(f"{name}{given!r:.60}: {type(error).__name__}: {error}")
    assert not bad, "\n" + "\n".join(bad[:20])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: rove.Session.local().stream("r", [{"a": 1}]),
            "`schema` of Session.stream takes text, a Schema or None",
        ),
        (lambda: rove.Session.local().sql(None), "`text` of Session.sql takes text, and got None of type NoneType"),
        (lambda: base().join("u", "a"), "`other` of Stream.join takes a Stream, and got 'u' of type str"),
        (lambda: base().where(True), "`condition` of Stream.where takes a Column or text, and got True"),
        (lambda: base().select("a", 7), "takes a Column, text or a list of Columns or text, and got 7"),
        (lambda: base().drop(None), "`cols` of Stream.drop takes text or a Column, and got None"),
        (lambda: base().withColumns({"x": 1}), "`colsMap` of Stream.withColumns takes a dict from text to a Column"),
        (lambda: base().writeStream.foreachBatch("f"), "`func` of StreamWriter.foreachBatch takes a function"),
        (lambda: base().countWindow("5"), "`rows` of Stream.countWindow takes a whole number, and got '5'"),
        (lambda: F.lit({"a": 1}), "no SQL literal for {'a': 1} of type dict"),
        (lambda: F.uuid("a"), r"F.uuid\(\) takes no arguments"),
    ],
)
def test_the_error_says_what_is_taken_and_what_came(call: Callable[[], object], said: str) -> None:
    with pytest.raises(WrongKind, match=said):
        call()


def test_lists_may_be_tuples_and_numbers_numpys() -> None:
    stream = base()
    assert stream.dropDuplicates(("a",)).schema == stream.schema  # type: ignore[arg-type]
    assert stream.countWindow(np.int64(5), by=("a", "s"))  # type: ignore[arg-type]
    assert stream.select(("a", "s")).columns == ["a", "s"]  # type: ignore[arg-type]


def test_data_without_a_schema_is_refused() -> None:
    session = rove.Session.local()
    session.stream("r", schema="a int")
    with pytest.raises(RoveError, match="data of `r` needs a schema"):
        session.stream("r", data=[{"a": 1}])


def test_the_wrong_number_of_arguments_names_the_function() -> None:
    with pytest.raises(TypeError, match=r"GroupedStream.count: too many positional arguments"):
        base().groupBy("a").count("a")  # type: ignore[call-arg]


def test_a_checked_function_looks_like_itself() -> None:
    def f(x: int, *more: str, **named: float) -> int:
        """Says what it does."""
        return x

    door = checked(f)
    assert (door.__doc__, signature(door)) == (f.__doc__, signature(f))
    assert door(1, "a", "b", c=1, d=2.5) == 1
    with pytest.raises(WrongKind, match=r"`more` of .*f takes text, and got 2"):
        door(1, "a", 2)  # type: ignore[arg-type]
    with pytest.raises(WrongKind, match=r"`named` of .*f takes a number, and got 'x'"):
        door(1, c="x")  # type: ignore[arg-type]

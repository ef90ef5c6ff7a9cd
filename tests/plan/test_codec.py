"""A plan that is encoded and decoded is equal, and bytes that are not a plan are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

import rove
from rove import functions as F
from rove.data.fragment.local import run
from rove.model.schema import TIMESTAMP, UNKNOWN, spark_only
from rove.plan.codec import decode, encode
from rove.plan.operators import Aggregate, Operator, Source
from rove.plan.optimizer import optimize
from rove.plan.spark.cuts import highest_cut, legal_cuts
from rove.plan.stages import Stages
from rove.plan.user_functions import by_value
from tests.portable.queries import QUERIES, inputs, plan_of
from tests.portable.random_plans import compiled, source
from tests.portable.rows import assert_same_rows
from tests.portable.test_portable import origins

SEEDS = range(40)
SCHEMA = "key string, ts timestamp, a int, b int, d double, place struct<lat: double, lon: double>, `select` date"


def stream(schema: str | pa.Schema = SCHEMA) -> Any:
    return rove.Session.local().stream("s", schema=schema)


def forms_of(plan: Operator) -> dict[str, dict[str, Operator]]:
    """The plan as written, optimized, and in the parts that it is cut into."""
    best = optimize(plan)
    cut, plain = highest_cut(best), highest_cut(plan)
    return {
        "written": {"out": plan},
        "optimized": {"out": best},
        "parts": {**dict(cut.lower), "upper": cut.upper},
        "parts as written": {**dict(plain.lower), "upper": plain.upper},
    }


def no_value(function: Any) -> bytes:
    """Functions of tests that have no name elsewhere: where they stand counts here, not what they are."""
    return b""


def assert_comes_back(stages: Stages, what: str = "") -> None:
    data = encode(stages, pickled=cloudpickle.dumps)
    again = decode(data, by_value)
    if any(isinstance(getattr(o, "function", None), FunctionType) for o in stages.operators):
        assert encode(again, pickled=no_value) == encode(stages, pickled=no_value), what
    else:
        assert again == stages, what
    for mine, theirs in zip(stages.operators, again.operators, strict=True):
        assert theirs.schema.equals(mine.schema, check_metadata=True), what
        assert theirs.traits == mine.traits, what


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.__name__)
def test_every_query_comes_back(query: Callable[..., Any]) -> None:
    for what, plans in forms_of(plan_of(query)).items():
        assert_comes_back(Stages.of(plans), what)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_come_back(seed: int) -> None:
    for what, plans in forms_of(plan_of(compiled(source(seed)))).items():
        assert_comes_back(Stages.of(plans), what)


# What runs


RUNS = [q for q in QUERIES if not highest_cut(optimize(plan_of(q))).needs_spark][::4]


@pytest.mark.parametrize("query", RUNS, ids=lambda q: q.__name__)
def test_a_plan_that_came_back_gives_the_same_rows(query: Callable[..., Any]) -> None:
    plans = dict(highest_cut(optimize(plan_of(query))).lower)
    stages = decode(encode(Stages.of(plans), pickled=cloudpickle.dumps), by_value)
    again = {name: stages.operators[stage] for name, stage in stages.outputs}
    data = {n: origins(n) for n in inputs(query)}
    expected, actual = run(plans, data), run(again, data)
    for name, result in expected.items():
        assert_same_rows(actual[name].rows, result.rows, query.__name__)


@pytest.mark.parametrize(
    "name", ["a b", "select", "a.b", "`", "ä", "Key", "__0", "1", "window", "'", "{0}", "a``b", "end"]
)
def test_names_that_need_quotes_come_back(name: str) -> None:
    s = stream(pa.schema([(name, pa.int32()), ("ts", TIMESTAMP)]))
    quoted = f"`{name.replace('`', '``')}`"
    counts = (
        s.where(f"{quoted} > 1")
        .withWatermark("ts", "1 second")
        .groupBy(F.window("ts", "5 seconds").alias("w"), quoted)
        .agg(F.expr(f"sum({quoted} + 1)").alias("n"))
    )
    for plans in forms_of(counts.plan).values():
        assert_comes_back(Stages.of(plans))


def test_schemas_come_back_exactly() -> None:
    nested = pa.struct(
        [pa.field("a", pa.list_(pa.map_(pa.string(), pa.decimal128(38, 18)))), pa.field("b", spark_only("x"))]
    )
    schema = pa.schema(
        [
            pa.field("n", nested, nullable=False),
            pa.field("u", UNKNOWN),
            pa.field("l", pa.list_(pa.field("item", pa.int8(), nullable=False))),
            pa.field("m", pa.int32(), metadata={"k": "v"}),
        ],
        metadata={"whose": "mine"},
    )
    assert_comes_back(Stages.of({"out": Source("s", schema)}))


def test_outputs_shared_beginnings_and_hints_come_back() -> None:
    s = stream().where("a > 1").at("device")
    stages = Stages.of({"x": s.select("key").at("edge").plan, "y": s.plan, "z": s.where("b > 2").plan})
    again = decode(encode(stages))
    assert again == stages
    assert (again.outputs, again.hints, again.readers) == (stages.outputs, stages.hints, stages.readers)


def test_a_final_aggregate_whose_partial_is_elsewhere_comes_back() -> None:
    groups = stream().withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key")
    plan = groups.agg(F.avg(F.col("a") + 1).alias("m"), F.stddev("place.lat").alias("v"), F.count("*").alias("n")).plan
    uppers = [Stages.of({"upper": cut.upper}) for cut in legal_cuts(optimize(plan))]
    between = [s for s in uppers if any(isinstance(o, Aggregate) and o.mode == "final" for o in s.operators[:2])]
    assert between
    for stages in between:
        assert_comes_back(stages)


# What it takes to read one


def test_a_device_with_its_four_packages_reads_a_plan() -> None:
    plan = optimize(stream().withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "key").count().plan)
    code = f"""
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        ours = {{"rove", "pyarrow", "zmq", "msgspec", "sqlglot"}}
        if top not in sys.stdlib_module_names and top[0] != "_" and top not in ours:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Only())
from rove.plan.codec import decode
print([type(o).__name__ for o in decode({encode(Stages.of({"out": plan}))!r}).operators])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "['Source', 'Project', 'Watermark', 'Aggregate', 'Aggregate']"

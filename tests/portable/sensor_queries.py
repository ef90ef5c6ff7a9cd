"""Queries over sensor readings that keep no state: each verb, each family of functions, nulls and NaN.

One of them needs functions that only Spark has, so that all above them stays in the cloud.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rove import functions_for

Frame = Any  # a PySpark DataFrame or a Rove stream

EARTH_KM = 6371.0


def warm_readings(readings: Frame) -> Frame:
    """A filter in SQL text and a choice of columns."""
    return readings.where("value > 500 AND level >= 3").select("sensor", "ts", "value")


def steps_without_state(readings: Frame) -> Frame:
    """A chain of filters and new columns in which later ones use earlier ones."""
    F = functions_for(readings)
    return (
        readings.filter(F.col("sensor").isNotNull())
        .withColumn("double", F.col("level") * 2)
        .withColumn("next", F.col("double") + F.lit(1))
        .where(F.col("next") > 7)
        .withColumn("level", F.col("level") - 1)
        .select("*", (F.col("next") % 4).alias("rest"))
        .drop("tags", "place", "double")
        .withColumnRenamed("next", "following")
    )


def many_columns_at_once(readings: Frame) -> Frame:
    """withColumns adds and replaces at the same time, from the old columns."""
    F = functions_for(readings)
    return readings.select("sensor", "level", "amount").withColumns(
        {"level": F.col("level") + 10, "old": F.col("level"), "half": F.col("amount") / 2}
    )


def sql_expressions(readings: Frame) -> Frame:
    """selectExpr with a star, casts and names."""
    return readings.selectExpr(
        "*",
        "CAST(level AS STRING) AS text",
        "level BETWEEN 2 AND 5 AS middle",
        "sensor LIKE '%o_-%' AS liked",
    ).drop("tags", "place")


def filled_nulls(readings: Frame) -> Frame:
    """Nulls replaced, found, made, and compared as equal."""
    F = functions_for(readings)
    return readings.select(
        F.coalesce("sensor", F.lit("unknown")).alias("sensor"),
        F.coalesce(F.col("level"), F.lit(-1)).alias("level"),
        F.col("value").isNull().alias("missing"),
        F.nullif(F.col("level"), F.lit(3)).alias("not_three"),
        F.col("ok").eqNullSafe(F.lit(None)).alias("unsure"),
        F.expr("nvl2(amount, 'paid', 'open')").alias("payment"),
        F.nanvl("value", F.lit(0.0)).alias("number"),
    )


def three_valued_logic(readings: Frame) -> Frame:
    """AND, OR and NOT over booleans that may be null; a filter keeps only what is true."""
    F = functions_for(readings)
    high = F.col("level") > 4
    return readings.where(~F.col("ok") | high).select(
        "ok",
        "level",
        (F.col("ok") & high).alias("both"),
        (F.col("ok") | high).alias("either"),
        (~F.col("ok")).alias("neither"),
        F.col("level").isin(1, 5, None).alias("listed"),
    )


def nan_is_the_greatest_number(readings: Frame) -> Frame:
    """NaN equals itself and is above every other number, as Spark has it."""
    F = functions_for(readings)
    nan = F.lit(float("nan"))
    return readings.where((F.col("value") > 990) | F.isnan("value")).select(
        "value", (F.col("value") == nan).alias("same"), (F.lit(1e300) < F.col("value")).alias("above")
    )


def cases(readings: Frame) -> Frame:
    """CASE with and without ELSE, nested, by value and by condition."""
    F = functions_for(readings)
    band = F.when(F.col("level") < 3, "low").when(F.col("level") < 6, "middle").otherwise("high")
    return readings.select(
        "level",
        band.alias("band"),
        F.when(F.col("ok"), F.when(F.col("value") > 500, 2).otherwise(1)).alias("score"),
        F.expr("CASE level WHEN 1 THEN 'one' WHEN 2 THEN 'two' END").alias("word"),
        F.expr("IF(ok, level, -level)").alias("signed"),
    )


def cleaned_strings(readings: Frame) -> Frame:
    """Functions of strings, letters beyond ASCII among them."""
    F = functions_for(readings)
    name = F.trim("sensor")
    return readings.select(
        F.upper(name).alias("upper"),
        F.length("sensor").alias("length"),
        F.substring(name, 1, 4).alias("start"),
        F.concat(name, F.lit("/"), F.col("level").cast("string")).alias("path"),
        F.concat_ws("-", name, F.lit("x"), F.col("level").cast("string")).alias("joined"),
        F.lpad(name, 8, "*").alias("padded"),
        F.regexp_replace(name, "[0-9]+", "#").alias("masked"),
        F.instr("sensor", "-").alias("dash"),
        name.startswith("r").alias("r"),
        name.contains("ock").alias("dock"),
        name.rlike("^[a-z]+-[0-9]$").alias("plain"),
        F.reverse(name).alias("reversed"),
    )


def parts_of_timestamps(readings: Frame) -> Frame:
    """Years to seconds, truncation, dates, and text."""
    F = functions_for(readings)
    return readings.select(
        "ts",
        F.year("ts").alias("year"),
        F.month("ts").alias("month"),
        F.dayofmonth("ts").alias("monthday"),
        F.dayofweek("day").alias("weekday"),
        F.hour("ts").alias("hour"),
        F.minute("ts").alias("minute"),
        F.second("ts").alias("second"),
        F.date_trunc("minute", "ts").alias("whole_minute"),
        F.to_date("ts").alias("date"),
        F.date_format("ts", "yyyy-MM-dd HH:mm:ss").alias("text"),
        F.unix_timestamp("ts").alias("epoch"),
    )


def time_arithmetic(readings: Frame) -> Frame:
    """Intervals added to timestamps, days to dates, over a midnight and the end of a February."""
    F = functions_for(readings)
    return readings.where("ts >= TIMESTAMP '2024-02-28 23:59:30'").select(
        (F.col("ts") + F.expr("INTERVAL 90 SECONDS")).alias("later"),
        F.expr("day + INTERVAL 1 MONTH").alias("next_month"),
        F.date_add("day", 2).alias("in_two_days"),
        F.datediff(F.to_date("ts"), "day").alias("age_days"),
        F.col("ts").cast("long").alias("seconds"),
        F.last_day("day").alias("month_end"),
    )


def distance_from_the_harbour(readings: Frame) -> Frame:
    """Great-circle distance by the haversine formula."""
    F = functions_for(readings)
    lat, lon = F.radians("place.lat"), F.radians("place.lon")
    harbour_lat, harbour_lon = F.radians(F.lit(53.54)), F.radians(F.lit(9.98))
    chord = F.pow(F.sin((lat - harbour_lat) / 2), 2.0) + F.cos(lat) * F.cos(harbour_lat) * F.pow(
        F.sin((lon - harbour_lon) / 2), 2.0
    )
    far = readings.withColumn("km", F.asin(F.sqrt(chord)) * (2 * EARTH_KM))
    return far.where("km > 20").select("sensor", "ts", "km")


def arithmetic(readings: Frame) -> Frame:
    """Whole numbers, decimals and doubles: division, remainders, rounding, casts."""
    F = functions_for(readings)
    return readings.where("NOT isnan(value)").select(
        (F.col("level") / 4).alias("quotient"),
        F.expr("level DIV 4").alias("whole"),
        F.expr("(level - 5) % 3").alias("remainder"),
        F.expr("pmod(level - 5, 3)").alias("positive"),
        F.round("value", 1).alias("rounded"),
        F.floor("value").alias("floor"),
        F.ceil("value").alias("ceil"),
        F.abs(F.col("amount")).alias("size"),
        (F.col("amount") * F.lit(3)).alias("threefold"),
        F.col("amount").cast("double").alias("amount_double"),
        F.col("value").cast("int").alias("value_int"),
        F.sqrt("value").alias("root"),
        F.log(F.col("value") + 1).alias("log"),
        F.greatest("level", F.lit(4)).alias("at_least_four"),
        F.least(F.col("value"), F.col("level").cast("double")).alias("least"),
    )


def elements_of_arrays(readings: Frame) -> Frame:
    """Arrays that may be null, empty, or have nulls in them."""
    F = functions_for(readings)
    return readings.select(
        F.size("tags").alias("tags"),
        F.array_contains("tags", "red").alias("red"),
        F.get("tags", F.lit(1)).alias("second"),
        F.array_join("tags", "+", "?").alias("joined"),
        F.array("sensor", F.lit("end")).alias("pair"),
    )


def fields_of_structs(readings: Frame) -> Frame:
    """Fields taken from a struct that may be null, and a struct built."""
    F = functions_for(readings)
    return readings.where(F.col("place.lat") > 53.0).select(
        "place.lon",
        F.col("place").getField("lat").alias("lat"),
        F.struct(F.col("sensor").alias("name"), "level").alias("reading"),
        F.col("place").isNull().alias("nowhere"),
    )


def odd_names(readings: Frame) -> Frame:
    """Names with spaces, dots and capitals, quoted; names found without regard to case."""
    F = functions_for(readings)
    return (
        readings.select("SENSOR", F.col("value").alias("Reading Value"), F.col("level").alias("a.b"))
        .withColumn("Größe", F.col("`Reading Value`") * 2)
        .where("`a.b` > 2 AND `reading value` > 100")
        .withColumnRenamed("SENSOR", "Sensor Name")
    )


def both_halves_united(readings: Frame) -> Frame:
    """A union by position of two filters of one stream; some rows are in both."""
    low = readings.where("level < 6").select("sensor", "ts", "level")
    return low.union(readings.where("level > 4").select("sensor", "ts", "level"))


def united_by_name(readings: Frame) -> Frame:
    """A union by name in another order, with a column that one side lacks."""
    F = functions_for(readings)
    warm = readings.where("value > 800").select("sensor", "value", F.lit("warm").alias("why"))
    return warm.unionByName(readings.where("level = 9").select("value", "sensor"), allowMissingColumns=True)


def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Has a name that every node can import it by."""
    for batch in batches:
        kept = batch.filter(pc.is_valid(batch["level"]))
        doubled = pc.multiply(kept["level"], pa.scalar(2, pa.int32()))
        yield pa.RecordBatch.from_arrays([kept["sensor"], doubled], names=["sensor", "doubled"])


def doubled_in_arrow(readings: Frame) -> Frame:
    """A function of record batches that keeps no state and may drop rows."""
    return readings.select("sensor", "level").mapInArrow(double, "sensor string, doubled int").where("doubled > 4")


def sounds_like(readings: Frame) -> Frame:
    """Functions that only Spark has, in the middle of a chain."""
    F = functions_for(readings)
    return (
        readings.where("level > 2")
        .withColumn("sound", F.soundex("sensor"))
        .withColumn("price", F.format_number("amount", 1))
        .where("sound IS NOT NULL")
        .select("sound", "price", (F.col("level") + 1).alias("level"))
    )


def checked_twice_in_spark(readings: Frame) -> Frame:
    """Two filters that only Spark can ask, and a branch on a value whose type only Spark knows."""
    F = functions_for(readings)
    kept = readings.where("NOT luhn_check(sensor)").where("soundex(sensor) <> ''")
    return kept.select("sensor", F.expr("IF(luhn_check(sensor), 1, 0) + 1").alias("x"))


def shielded_division(readings: Frame) -> Frame:
    """A filter whose nulls keep the next one from dividing by zero."""
    zero = readings.selectExpr("level", "IF(level = 0, NULL, value) AS value")
    return zero.where("level * value > 0").where("10 / level > 2")


def constants_only(readings: Frame) -> Frame:
    """As many constants as rows."""
    F = functions_for(readings)
    return readings.union(readings).where("level > 5").select(F.lit(1).alias("x"))


def nothing_left(readings: Frame) -> Frame:
    """No rows at the edge, and a step that Spark still has to do; one row, so that there is something to compare."""
    F = functions_for(readings)
    none = readings.where("1 = 2").select(F.soundex("sensor").alias("s"))
    return none.union(readings.where("level = 9 AND value > 900").selectExpr("soundex(sensor) AS s"))


SENSOR_QUERIES: tuple[Callable[..., Frame], ...] = (
    checked_twice_in_spark,
    shielded_division,
    constants_only,
    nothing_left,
    warm_readings,
    steps_without_state,
    many_columns_at_once,
    sql_expressions,
    filled_nulls,
    three_valued_logic,
    nan_is_the_greatest_number,
    cases,
    cleaned_strings,
    parts_of_timestamps,
    time_arithmetic,
    distance_from_the_harbour,
    arithmetic,
    elements_of_arrays,
    fields_of_structs,
    odd_names,
    both_halves_united,
    united_by_name,
    doubled_in_arrow,
    sounds_like,
)

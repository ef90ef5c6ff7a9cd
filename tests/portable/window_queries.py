"""Queries over sensor readings that keep state: windows of each shape, each aggregate, joins, duplicates.

Every result is a function of the rows alone, whatever their order and batches: no `first`, no ties broken by
arrival. Aggregated doubles are positive eighths, so a sum is exact in any order. Every group has an event
time window and a watermark below it, so Spark can run all of these in append mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rove import functions_for

Frame = Any  # a PySpark DataFrame or a Rove stream

DELAY = "5 seconds"


def _watched(readings: Frame) -> Frame:
    return readings.withWatermark("ts", DELAY)


def _numbers(readings: Frame) -> Frame:
    return _watched(readings).where("NOT isnan(value)")


def rows_of_ten_seconds(readings: Frame) -> Frame:
    """A tumbling window without a key."""
    F = functions_for(readings)
    return _watched(readings).groupBy(F.window("ts", "10 seconds")).count()


def counts_of_a_sensor(readings: Frame) -> Frame:
    """Rows, and values that are not null, per window and a key that may be null."""
    F = functions_for(readings)
    return (
        _watched(readings)
        .groupBy(F.window("ts", "10 seconds"), "sensor")
        .agg(F.count("*").alias("n"), F.count("level").alias("levels"), F.count("tags").alias("tagged"))
    )


def sums_of_each_type(readings: Frame) -> Frame:
    """Sums of int, bigint, double and decimal, of which some groups have only nulls."""
    F = functions_for(readings)
    return (
        _numbers(readings)
        .groupBy(F.window("ts", "5 seconds"), "sensor")
        .agg(
            F.sum("level").alias("ints"),
            F.sum(F.col("level").cast("bigint") * 1_000_000_000).alias("bigints"),
            F.sum("value").alias("doubles"),
            F.sum("amount").alias("decimals"),
        )
    )


def averages_of_each_type(readings: Frame) -> Frame:
    """Averages of int, double and decimal in hopping windows."""
    F = functions_for(readings)
    return (
        _numbers(readings)
        .groupBy(F.window("ts", "20 seconds", "5 seconds"), "sensor")
        .agg(F.avg("level").alias("ints"), F.avg("value").alias("doubles"), F.avg("amount").alias("decimals"))
    )


def extremes_of_each_type(readings: Frame) -> Frame:
    """Least and greatest string, timestamp, date, decimal, and double with NaN above all."""
    F = functions_for(readings)
    columns = ("sensor", "ts", "day", "amount", "value", "level")
    least = [F.min(name).alias(f"least_{name}") for name in columns]
    greatest = [F.max(name).alias(f"greatest_{name}") for name in columns]
    return _watched(readings).groupBy(F.window("ts", "10 seconds"), "ok").agg(*least, *greatest)


def spread_of_values(readings: Frame) -> Frame:
    """Standard deviation and variance, null for a single value."""
    F = functions_for(readings)
    return (
        _numbers(readings)
        .groupBy(F.window("ts", "5 seconds"), "sensor")
        .agg(
            F.stddev("value").alias("stddev"),
            F.variance("value").alias("variance"),
            F.variance("level").alias("levels"),
        )
    )


def distinct_sensors(readings: Frame) -> Frame:
    """Approximate distinct counts of strings, ints, doubles and dates in a hopping window."""
    F = functions_for(readings)
    return (
        _watched(readings)
        .groupBy(F.window("ts", "1 minute", "30 seconds"))
        .agg(
            F.approx_count_distinct("sensor").alias("sensors"),
            F.approx_count_distinct("level").alias("levels"),
            F.approx_count_distinct("value").alias("numbers"),
            F.approx_count_distinct("day").alias("days"),
        )
    )


def nothing_but_nan(readings: Frame) -> Frame:
    """Sum and average in which a NaN takes all, and greatest value in which it wins."""
    F = functions_for(readings)
    return (
        _watched(readings)
        .groupBy(F.window("ts", "5 seconds"), "level")
        .agg(F.sum("value").alias("sum"), F.avg("value").alias("average"), F.max("value").alias("greatest"))
    )


def aggregates_by_dictionary(readings: Frame) -> Frame:
    """agg with a dictionary, whose columns Spark names, in an order that Java's hash map gives."""
    F = functions_for(readings)
    return (
        _numbers(readings)
        .groupBy(F.window("ts", "10 seconds"), "sensor")
        .agg({"level": "max", "value": "sum", "amount": "min"})
        .select("window", "sensor", "max(level)", "sum(value)", "min(amount)")
    )


def short_sums(readings: Frame) -> Frame:
    """.sum of two columns, named by Spark."""
    F = functions_for(readings)
    return _numbers(readings).groupBy(F.window("ts", "10 seconds"), "sensor").sum("level", "amount")


def short_averages(readings: Frame) -> Frame:
    """.avg of one column, without a key."""
    F = functions_for(readings)
    return _numbers(readings).groupBy(F.window("ts", "15 seconds")).avg("value")


def short_extremes(readings: Frame) -> Frame:
    """.min below a filter and a new column on its result."""
    F = functions_for(readings)
    least = _watched(readings).groupBy("sensor", F.window("ts", "10 seconds")).min("level")
    return least.where("`min(level)` < 3").withColumn("next", F.col("min(level)") + 1)


def busy_sensors(readings: Frame) -> Frame:
    """A filter above an aggregate, as HAVING, and the window's ends as columns."""
    F = functions_for(readings)
    return (
        _watched(readings)
        .groupBy(F.window("ts", "10 seconds"), "sensor")
        .agg(F.count("*").alias("n"), F.max("level").alias("top"))
        .where((F.col("n") >= 8) & (F.col("top") > 5))
        .select("window.start", F.col("window.end").alias("until"), "sensor", "n", (F.col("n") / 10).alias("rate"))
    )


def groups_by_expressions(readings: Frame) -> Frame:
    """Keys that are expressions, one of them named."""
    F = functions_for(readings)
    return (
        _watched(readings)
        .groupBy(
            F.window("ts", "20 seconds").alias("w"),
            F.upper(F.trim("sensor")).alias("name"),
            F.col("level") % 3,
        )
        .agg(
            F.sum(F.when(F.col("ok"), 1).otherwise(0)).alias("fine"),
            F.max(F.length("sensor")).alias("longest"),
        )
    )


def windows_that_leave_a_rest(readings: Frame) -> Frame:
    """A hopping window whose slide does not divide its size, with a start offset."""
    F = functions_for(readings)
    return (
        _watched(readings)
        .groupBy(F.window("ts", "10 seconds", "3 seconds", "1 second"), "ok")
        .agg(F.count("*").alias("n"), F.min("ts").alias("first"))
    )


def window_over_a_union(readings: Frame) -> Frame:
    """An aggregate after a union, in which some rows count twice."""
    F = functions_for(readings)
    numbers = _numbers(readings).select("sensor", "ts", "value", "level")
    both = numbers.where("level < 6").union(numbers.where("level > 4"))
    return both.groupBy(F.window("ts", "10 seconds"), "sensor").agg(
        F.count("*").alias("n"), F.sum("value").alias("total")
    )


def window_over_steps(readings: Frame) -> Frame:
    """A window above filters, renames and computed columns, and a projection above it."""
    F = functions_for(readings)
    return (
        _numbers(readings)
        .where("ok")
        .withColumn("fahrenheit", F.col("value") * 1.8 + 32)
        .withColumnRenamed("sensor", "Sensor Name")
        .groupBy(F.window("ts", "30 seconds"), "Sensor Name")
        .agg(F.avg("fahrenheit").alias("Mean Temperature"), F.count("*").alias("n"))
        .selectExpr("window.start AS start", "`Sensor Name`", "`Mean Temperature` / 2 AS mean", "n * 2 AS twice")
    )


def most_rows_of_a_window(readings: Frame) -> Frame:
    """An aggregate of an aggregate by the same window."""
    F = functions_for(readings)
    counts = _watched(readings).groupBy(F.window("ts", "10 seconds"), "sensor").agg(F.count("*").alias("n"))
    return counts.groupBy("window").agg(F.max("n").alias("most"), F.count("sensor").alias("sensors"))


def windows_of_window_starts(readings: Frame) -> Frame:
    """An aggregate of an aggregate by a longer window of the first one's start."""
    F = functions_for(readings)
    counts = _watched(readings).groupBy(F.window("ts", "10 seconds"), "level").count()
    return counts.groupBy(F.window("window.start", "30 seconds")).agg(F.sum("count").alias("n"))


def windows_of_two_lengths(readings: Frame) -> Frame:
    """Windows of two lengths united, and grouped by one that holds both."""
    F = functions_for(readings)
    short, long = (_watched(readings).groupBy(F.window("ts", s)).count() for s in ("10 seconds", "20 seconds"))
    return short.union(long).groupBy(F.window("window", "1 minute")).agg(F.sum("count").alias("n"))


def windows_of_window_times(readings: Frame) -> Frame:
    """An aggregate of an aggregate by the time that Spark gives to a window."""
    F = functions_for(readings)
    counts = _watched(readings).groupBy(F.window("ts", "10 seconds"), "sensor").count()
    return counts.groupBy(F.window(F.window_time("window"), "30 seconds")).agg(F.max("count").alias("most"))


def window_of_a_copied_time(readings: Frame) -> Frame:
    """A window of event time beside a copy of it."""
    F = functions_for(readings)
    copied = _watched(readings).select(F.col("ts").alias("a"), "ts")
    return copied.groupBy(F.window("ts", "10 seconds")).agg(F.max("a").alias("last"))


def window_of_windows(readings: Frame) -> Frame:
    """The greatest ten-second total of each minute: an aggregate of an aggregate."""
    F = functions_for(readings)
    totals = _numbers(readings).groupBy(F.window("ts", "10 seconds"), "sensor").agg(F.sum("value").alias("total"))
    return totals.groupBy(F.window("window", "1 minute"), "sensor").agg(F.max("total").alias("greatest"))


def window_above_spark_only_functions(readings: Frame) -> Frame:
    """A window whose key only Spark can compute."""
    F = functions_for(readings)
    sounds = _watched(readings).withColumn("sound", F.soundex("sensor"))
    return sounds.groupBy(F.window("ts", "20 seconds"), "sound").agg(F.sum("level").alias("levels"))


def watermark_above_spark_only_functions(readings: Frame) -> Frame:
    """A watermark that stands above what only Spark can compute."""
    F = functions_for(readings)
    sounds = readings.select(F.soundex("sensor").alias("sound"), "level", "ts").where("sound <> 'D200'")
    timed = sounds.withWatermark("ts", DELAY)
    return timed.groupBy(F.window("ts", "20 seconds"), "sound").agg(F.sum("level").alias("levels"))


def named_levels_of_a_window(readings: Frame, side_input: Frame) -> Frame:
    """A window above a join with a table, which has names for some levels."""
    F = functions_for(readings)
    named = readings.select("ts", "level").join(side_input, on=F.expr("level = key"), how="left_outer")
    timed = named.withWatermark("ts", DELAY)
    return timed.groupBy(F.window("ts", "20 seconds"), "value").agg(F.count("*").alias("n"), F.max("ts").alias("last"))


def levels_that_have_names(side_input: Frame, readings: Frame) -> Frame:
    """A table joined with windows of a stream, the table on the left."""
    F = functions_for(readings)
    counts = _watched(readings).groupBy(F.window("ts", "20 seconds"), F.expr("CAST(level AS bigint) AS key")).count()
    return (
        side_input.where("key > 1").join(counts, on="key", how="right_outer").select("window.start", "value", "count")
    )


def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Has a name that every node can import it by."""
    for batch in batches:
        points = pc.fill_null(pc.cast(batch["level"], pa.int64()), 0)
        columns = [batch["sensor"], batch["ts"], pc.multiply(points, points)]
        yield pa.RecordBatch.from_arrays(columns, names=["sensor", "ts", "points"])


def _scored(readings: Frame) -> Frame:
    return readings.select("sensor", "ts", "level").mapInArrow(score, "sensor string, ts timestamp, points bigint")


def arrow_below_a_window(readings: Frame) -> Frame:
    """A function of record batches below a windowed sum."""
    F = functions_for(readings)
    scored = _scored(readings).withWatermark("ts", DELAY)
    return scored.groupBy(F.window("ts", "20 seconds"), "sensor").agg(F.sum("points").alias("points"))


def tags_of_a_window(readings: Frame) -> Frame:
    """One row for each element of an array, counted per window."""
    F = functions_for(readings)
    tags = _watched(readings).select("ts", F.explode("tags").alias("tag"))
    return tags.groupBy(F.window("ts", "20 seconds"), "tag").agg(F.count("*").alias("n"))


def seen_once(readings: Frame) -> Frame:
    """Duplicates dropped over all columns that are left."""
    return readings.select("sensor", "level", "ok").dropDuplicates()


def sensors_of_a_window(readings: Frame) -> Frame:
    """Duplicates dropped by a window and a key, so that the state closes with the window."""
    F = functions_for(readings)
    windows = _watched(readings).select(F.window("ts", "10 seconds").alias("w"), "sensor")
    return windows.dropDuplicates(["w", "sensor"]).select("w.start", "sensor")


def _sides(readings: Frame) -> tuple[Frame, Frame]:
    """Readings that are fine, and those of a high level, with the window they are in."""
    F = functions_for(readings)
    windowed = _watched(readings).withColumn("w", F.window("ts", "5 seconds"))
    fine = windowed.where("ok AND level < 4").select("w", "sensor", F.col("level").alias("low"))
    high = windowed.where("level > 7").select("w", F.col("sensor").alias("name"), F.col("level").alias("high"))
    return fine, high.withColumnRenamed("name", "sensor")


def low_and_high_in_a_window(readings: Frame) -> Frame:
    """An inner join by window and key."""
    fine, high = _sides(readings)
    return fine.join(high, on=["w", "sensor"]).selectExpr("w.start", "sensor", "low", "high", "high - low AS gap")


def low_with_or_without_high(readings: Frame) -> Frame:
    """A left outer join by window and key; a null key finds no partner."""
    fine, high = _sides(readings)
    return fine.join(high, on=["w", "sensor"], how="left_outer")


def low_where_high_too(readings: Frame) -> Frame:
    """A left semi join by window and key."""
    fine, high = _sides(readings)
    return fine.join(high, on=["w", "sensor"], how="left_semi")


def either_low_or_high(readings: Frame) -> Frame:
    """A full outer join by window and key."""
    # Not null, as streaming Spark (unlike batch) lets null keys of a full outer join meet.
    fine, high = _sides(readings.where("sensor IS NOT NULL"))
    return fine.join(high, on=["w", "sensor"], how="full_outer")


WINDOW_QUERIES: tuple[Callable[..., Frame], ...] = (
    rows_of_ten_seconds,
    counts_of_a_sensor,
    sums_of_each_type,
    averages_of_each_type,
    extremes_of_each_type,
    spread_of_values,
    distinct_sensors,
    nothing_but_nan,
    aggregates_by_dictionary,
    short_sums,
    short_averages,
    short_extremes,
    busy_sensors,
    groups_by_expressions,
    windows_that_leave_a_rest,
    window_over_a_union,
    window_over_steps,
    most_rows_of_a_window,
    windows_of_window_starts,
    windows_of_two_lengths,
    windows_of_window_times,
    window_of_a_copied_time,
    window_of_windows,
    window_above_spark_only_functions,
    watermark_above_spark_only_functions,
    named_levels_of_a_window,
    levels_that_have_names,
    arrow_below_a_window,
    tags_of_a_window,
    seen_once,
    sensors_of_a_window,
    low_and_high_in_a_window,
    low_with_or_without_high,
    low_where_high_too,
    either_low_or_high,
)

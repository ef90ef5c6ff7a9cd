"""The two queries of the ring line, as a PySpark user writes them."""

from __future__ import annotations

from rove.api import functions as F
from rove.api.stream import Stream


def occupancy(trains: Stream) -> Stream:
    """How many passengers got on and off each train, every 30 seconds: counted on the train, merged in Spark."""
    return (
        trains.where("boarding + alighting > 0")
        .withWatermark("ts", "5 seconds")
        .at("device")
        .groupBy(F.window("ts", "30 seconds"), "train")
        .agg(F.sum("boarding").alias("on"), F.sum("alighting").alias("off"))
        .at("cloud")
    )


def overcrowding(trains: Stream) -> Stream:
    """Coaches that fill up fast: an alert that needs no Spark."""
    return (
        trains.withWatermark("ts", "5 seconds")
        .groupBy(F.window("ts", "1 minute", "10 seconds"), "train", "coach")
        .agg((F.sum("boarding") - F.sum("alighting")).alias("gain"))
        .where("gain >= 12")
    )

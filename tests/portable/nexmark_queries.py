"""Nexmark's queries as streaming Spark can run them in append mode.

Each function is the published query, or, where the docstring says "closest form", the nearest one that an
append-mode stream can answer. `NOT_EXPRESSIBLE` says for each of those, and for the queries that have none,
what streaming Spark lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rove import functions_for

Frame = Any  # a PySpark DataFrame or a Rove stream

DELAY = "5 seconds"

NOT_EXPRESSIBLE: dict[str, str] = {
    "q4": "averages per category without a window; the closest form closes both aggregates by auction window",
    "q6": "the last ten auctions of a seller need a row-based OVER window; there is no close form",
    "q9": "the winning bid is ROW_NUMBER() = 1; the closest form takes the greatest struct in a window",
    "q12": "processing-time windows run in Spark, but no two runs agree; the closest form uses event time",
    "q15": "distinct counts per date; the closest form counts approximately in windows of a day",
    "q16": "distinct counts per channel and date; the closest form counts approximately in windows of a day",
    "q17": "groups by a formatted date, which no watermark can close; the closest form uses windows of a day",
    "q18": "the last bid is ROW_NUMBER() = 1; the closest form takes the greatest struct in a window",
    "q19": "the top ten are ROW_NUMBER() <= 10; the closest form keeps the ten greatest prices of a window",
}


def q0_pass_bids_through(bid: Frame) -> Frame:
    """Every bid as it is."""
    return bid.select("auction", "bidder", "price", "dateTime", "extra")


def q1_convert_prices_to_euros(bid: Frame) -> Frame:
    """Every bid with its price in another currency, in exact decimals."""
    return bid.selectExpr("auction", "bidder", "0.908 * price AS price", "dateTime", "extra")


def q2_select_bids_on_some_auctions(bid: Frame) -> Frame:
    """Bids on the auctions whose id divides by 123."""
    return bid.where("auction % 123 = 0").select("auction", "price")


def q3_suggest_local_items(auction: Frame, person: Frame) -> Frame:
    """Who sells in category 10 in three states: a join without a time bound."""
    F = functions_for(auction)
    sellers = person.where(F.col("state").isin("OR", "ID", "CA")).select(
        F.col("id").alias("seller"), "name", "city", "state"
    )
    items = auction.where("category = 10").select("seller", F.col("id").alias("auction"))
    return items.join(sellers, on="seller").select("name", "city", "state", "auction")


def q3_suggest_local_items_of_the_window(auction: Frame, person: Frame) -> Frame:
    """Q3 for people and items that are new in the same two minutes."""
    F = functions_for(auction)
    sellers = (
        person.withWatermark("dateTime", DELAY)
        .where("state IN ('OR', 'ID', 'CA')")
        .select(F.window("dateTime", "2 minutes").alias("w"), F.col("id").alias("seller"), "name", "city", "state")
    )
    items = (
        auction.withWatermark("dateTime", DELAY)
        .where("category = 10")
        .select(F.window("dateTime", "2 minutes").alias("w"), "seller", F.col("id").alias("auction"))
    )
    return items.join(sellers, on=["w", "seller"]).select("w.start", "name", "city", "state", "auction")


def _bids_while_open(auction: Frame, bid: Frame) -> Frame:
    """Bids with their auction, from its opening to its end. No auction of the test data lasts 12 minutes."""
    F = functions_for(auction)
    opened = auction.withWatermark("dateTime", DELAY).select(
        "id", "category", "itemName", "expires", F.col("dateTime").alias("opened")
    )
    made = bid.withWatermark("dateTime", DELAY).select("auction", "bidder", "price", "dateTime")
    while_open = "id = auction AND dateTime BETWEEN opened AND expires AND dateTime <= opened + INTERVAL 12 MINUTES"
    return opened.join(made, on=F.expr(while_open), how="inner")


def q4_average_final_price_of_a_category(auction: Frame, bid: Frame) -> Frame:
    """Closest form: final prices of the auctions opened in a minute, averaged per category."""
    F = functions_for(auction)
    final = (
        _bids_while_open(auction, bid)
        .groupBy(F.window("opened", "1 minute"), "id", "category")
        .agg(F.max("price").alias("final"))
    )
    return final.groupBy("window", "category").agg(F.avg("final").alias("average"))


def q5_hot_items(bid: Frame) -> Frame:
    """The auctions with the most bids in each ten seconds, every two seconds."""
    F = functions_for(bid)
    made = bid.withWatermark("dateTime", DELAY)
    counts = made.groupBy(F.window("dateTime", "10 seconds", "2 seconds"), "auction").agg(F.count("*").alias("num"))
    most = counts.groupBy("window").agg(F.max("num").alias("most"))
    return counts.join(most, on="window").where("num = most").select("window.start", "auction", "num")


def q5_hot_item_by_struct(bid: Frame) -> Frame:
    """Q5 with one auction a window: the greatest (count, auction) pair."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy(F.window("dateTime", "10 seconds", "2 seconds"), "auction")
        .agg(F.count("*").alias("num"))
        .groupBy("window")
        .agg(F.max(F.struct("num", "auction")).alias("top"))
        .select("window.start", "top.auction", "top.num")
    )


def q7_highest_bid(bid: Frame) -> Frame:
    """The bids that reach the highest price of their ten seconds."""
    F = functions_for(bid)
    # A copy from below the watermark: Spark lets a join have one event time, and here that is the window.
    made = (
        bid.withColumn("at", F.col("dateTime"))
        .withWatermark("dateTime", DELAY)
        .select(F.window("dateTime", "10 seconds").alias("w"), "auction", "bidder", "price", "at")
    )
    highest = made.groupBy("w").agg(F.max("price").alias("price"))
    return made.join(highest, on=["w", "price"]).select("auction", "bidder", "price", F.col("at").alias("dateTime"))


def q8_monitor_new_users(person: Frame, auction: Frame) -> Frame:
    """People who open an auction in the minute in which they registered, once each."""
    F = functions_for(person)
    people = (
        person.withWatermark("dateTime", DELAY)
        .groupBy(F.window("dateTime", "1 minute").alias("w"), "id", "name")
        .agg(F.count("*").alias("registrations"))
    )
    sellers = (
        auction.withWatermark("dateTime", DELAY)
        .withColumnRenamed("id", "auction")
        .groupBy(F.window("dateTime", "1 minute").alias("w"), F.col("seller").alias("id"))
        .agg(F.count("*").alias("auctions"))
    )
    return people.join(sellers, on=["w", "id"]).select("id", "name", "w.start")


def q9_winning_bids(auction: Frame, bid: Frame) -> Frame:
    """Closest form: the greatest (price, bidder) of each auction, by the minute in which it opened."""
    F = functions_for(auction)
    return (
        _bids_while_open(auction, bid)
        .groupBy(F.window("opened", "1 minute"), "id", "itemName")
        .agg(F.max(F.struct("price", "bidder", "dateTime")).alias("best"))
        .select("id", "itemName", "best.price", "best.bidder", "best.dateTime")
    )


def q10_log_to_files(bid: Frame) -> Frame:
    """Every bid with the date and minute by which a file sink lays out its folders."""
    F = functions_for(bid)
    return bid.select(
        "auction",
        "bidder",
        "price",
        "dateTime",
        "extra",
        F.date_format("dateTime", "yyyy-MM-dd").alias("dt"),
        F.date_format("dateTime", "HH:mm").alias("hm"),
    )


def q11_bids_of_a_user_session(bid: Frame) -> Frame:
    """Bids of a bidder until ten seconds pass without one."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy("bidder", F.session_window("dateTime", "10 seconds"))
        .agg(F.count("*").alias("bid_count"))
        .select("bidder", "bid_count", "session_window.start", "session_window.end")
    )


def q12_bids_of_a_user_window(bid: Frame) -> Frame:
    """Closest form: bids of a bidder in each ten seconds of event time."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy("bidder", F.window("dateTime", "10 seconds"))
        .count()
        .select("bidder", "count", "window.start", "window.end")
    )


def q13_join_a_side_input(bid: Frame, side_input: Frame) -> Frame:
    """Every bid with the value that a bounded table has for its auction."""
    return (
        bid.selectExpr("auction", "bidder", "price", "dateTime", "auction % 100 AS key")
        .join(side_input, on="key")
        .select("auction", "bidder", "price", "dateTime", "value")
    )


def q14_calculate(bid: Frame) -> Frame:
    """Prices in a range, the part of the day, and how many letters c the padding has."""
    F = functions_for(bid)
    hour = F.hour("dateTime")
    part_of_day = (
        F.when((hour >= 8) & (hour <= 18), "dayTime")
        .when((hour <= 6) | (hour >= 20), "nightTime")
        .otherwise("otherTime")
    )
    return (
        bid.withColumn("euros", F.col("price") * 0.908)
        .where((F.col("euros") > 1_000_000) & (F.col("euros") < 50_000_000))
        .select(
            "auction",
            "bidder",
            F.col("euros").alias("price"),
            part_of_day.alias("bidTimeType"),
            "dateTime",
            "extra",
            (F.length("extra") - F.length(F.expr("replace(extra, 'c', '')"))).alias("c_counts"),
        )
    )


def _bid_statistics(F: Any) -> list[Any]:
    price, cheap, dear = F.col("price"), F.col("price") < 10_000, F.col("price") >= 1_000_000
    return [
        F.count("*").alias("total_bids"),
        F.count(F.when(cheap, 1)).alias("rank1_bids"),
        F.count(F.when(~cheap & ~dear, price)).alias("rank2_bids"),
        F.sum(F.when(dear, 1).otherwise(0)).alias("rank3_bids"),
    ]


def q15_bids_of_a_day(bid: Frame) -> Frame:
    """Closest form: bids of a day by price range, bidders and auctions counted approximately."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy(F.window("dateTime", "1 day"))
        .agg(
            *_bid_statistics(F),
            F.approx_count_distinct("bidder").alias("total_bidders"),
            F.approx_count_distinct(F.when(F.col("price") < 10_000, F.col("bidder"))).alias("rank1_bidders"),
            F.approx_count_distinct("auction").alias("total_auctions"),
        )
    )


def q16_channels_of_a_day(bid: Frame) -> Frame:
    """Closest form: Q15 per channel, with the last minute in which it was used."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy("channel", F.window("dateTime", "1 day"))
        .agg(
            F.max(F.date_format("dateTime", "HH:mm")).alias("minute"),
            *_bid_statistics(F),
            F.approx_count_distinct("bidder").alias("total_bidders"),
            F.approx_count_distinct("auction").alias("total_auctions"),
        )
    )


def q17_auctions_of_a_day(bid: Frame) -> Frame:
    """Closest form: bids of a day per auction, with the least, greatest, average and total price."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy("auction", F.window("dateTime", "1 day"))
        .agg(
            *_bid_statistics(F),
            F.min("price").alias("min_price"),
            F.max("price").alias("max_price"),
            F.avg("price").alias("avg_price"),
            F.sum("price").alias("sum_price"),
        )
        .withColumn("day", F.date_format("window.start", "yyyy-MM-dd"))
        .drop("window")
    )


def q18_last_bid_of_a_bidder(bid: Frame) -> Frame:
    """Closest form: the last bid of a bidder on an auction in each minute."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy(F.window("dateTime", "1 minute"), "bidder", "auction")
        .agg(F.max(F.struct("dateTime", "price", "channel")).alias("last"))
        .select("bidder", "auction", "last.dateTime", "last.price", "last.channel")
    )


def q19_top_ten_prices_of_an_auction(bid: Frame) -> Frame:
    """Closest form: the ten greatest prices of each auction in each minute, as an array."""
    F = functions_for(bid)
    return (
        bid.withWatermark("dateTime", DELAY)
        .groupBy(F.window("dateTime", "1 minute"), "auction")
        .agg(F.slice(F.sort_array(F.collect_list("price"), asc=False), 1, 10).alias("top"))
    )


def q20_expand_bids_with_their_auction(bid: Frame, auction: Frame) -> Frame:
    """Bids with the item they are for, category 10 only: a join without a time bound."""
    F = functions_for(bid)
    items = auction.where(F.col("category") == 10).select(
        F.col("id").alias("auction"), "itemName", "initialBid", "reserve", "expires", "seller"
    )
    return bid.drop("url", "extra").join(items, on=["auction"], how="inner")


def q21_add_channel_id(bid: Frame) -> Frame:
    """The number of a known channel, or the one in the url; bids that have neither are left out."""
    F = functions_for(bid)
    in_url = F.regexp_extract("url", "(&|^)channel_id=([^&]*)", 2)
    channel = F.lower("channel")
    channel_id = (
        F.when(channel == "apple", "0")
        .when(channel == "google", "1")
        .when(channel == "facebook", "2")
        .when(channel == "baidu", "3")
        .otherwise(in_url)
    )
    return bid.where((in_url != "") | channel.isin("apple", "google", "facebook", "baidu")).select(
        "auction", "bidder", "price", "channel", channel_id.alias("channel_id")
    )


def q22_url_directories(bid: Frame) -> Frame:
    """The three folders of a bid's url."""
    F = functions_for(bid)
    parts = F.split("url", "/")
    folders = [parts.getItem(place).alias(f"dir{place - 2}") for place in (3, 4, 5)]
    return bid.select("auction", "bidder", "price", "channel", *folders)


NEXMARK_QUERIES: tuple[Callable[..., Frame], ...] = (
    q0_pass_bids_through,
    q1_convert_prices_to_euros,
    q2_select_bids_on_some_auctions,
    q3_suggest_local_items,
    q3_suggest_local_items_of_the_window,
    q4_average_final_price_of_a_category,
    q5_hot_items,
    q5_hot_item_by_struct,
    q7_highest_bid,
    q8_monitor_new_users,
    q9_winning_bids,
    q10_log_to_files,
    q11_bids_of_a_user_session,
    q12_bids_of_a_user_window,
    q13_join_a_side_input,
    q14_calculate,
    q15_bids_of_a_day,
    q16_channels_of_a_day,
    q17_auctions_of_a_day,
    q18_last_bid_of_a_bidder,
    q19_top_ten_prices_of_an_auction,
    q20_expand_bids_with_their_auction,
    q21_add_channel_id,
    q22_url_directories,
)

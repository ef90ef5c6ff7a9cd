"""The Nexmark queries as SQL statements, in the texts that are usual for them, with Spark's windows.

`RUNS` are those that run over streams, with the output mode. `REFUSED` are those that streaming Spark cannot run, with
the beginning of the reason. `AT_ITS_OWN_TIME` run as well, with other rows each time.
"""

from __future__ import annotations

RUNS: dict[str, tuple[str, str]] = {
    "q0": ("append", "SELECT auction, bidder, price, dateTime, extra FROM bid"),
    "q1": ("append", "SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid"),
    "q2": ("append", "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"),
    "q3": (
        "append",
        """
        SELECT P.name, P.city, P.state, A.id
        FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
        WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')
        """,
    ),
    "q7": (
        "append",
        """
        SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
        FROM bid B
        JOIN (
            SELECT MAX(price) AS maxprice, window.end AS dateTime
            FROM bid GROUP BY window(dateTime, '10 seconds')
        ) B1
        ON B.price = B1.maxprice
        WHERE B.dateTime BETWEEN B1.dateTime - INTERVAL '10' SECOND AND B1.dateTime
        """,
    ),
    "q8": (
        "append",
        """
        SELECT P.id, P.name, P.w.start AS starttime
        FROM (
            SELECT id, name, window(dateTime, '10 seconds') AS w FROM person
            GROUP BY id, name, window(dateTime, '10 seconds')
        ) P
        JOIN (
            SELECT seller, window(dateTime, '10 seconds') AS w FROM auction
            GROUP BY seller, window(dateTime, '10 seconds')
        ) A
        ON P.id = A.seller AND P.w = A.w
        """,
    ),
    "q10": (
        "append",
        """
        SELECT auction, bidder, price, dateTime, extra,
               DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day, DATE_FORMAT(dateTime, 'HH:mm') AS minute
        FROM bid
        """,
    ),
    "q11": (
        "append",
        """
        SELECT B.bidder, count(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
        FROM bid B GROUP BY B.bidder, session_window(B.dateTime, '10 seconds')
        """,
    ),
    "q13": (
        "append",
        """
        SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
        FROM bid AS B JOIN side_input AS S ON mod(B.auction, 50) = S.key
        """,
    ),
    "q14": (
        "append",
        """
        SELECT auction, bidder, 0.908 * price AS price,
               CASE
                   WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18 THEN 'dayTime'
                   WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
                   ELSE 'otherTime'
               END AS bidTimeType,
               dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000 AND 0.908 * price < 50000000
        """,
    ),
    "q15": (
        "update",
        """
        SELECT DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
               count(*) AS total_bids,
               count(*) FILTER (WHERE price < 10000) AS rank1_bids,
               count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
               count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
               count(DISTINCT bidder) AS total_bidders,
               count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
               count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
               count(DISTINCT auction) AS total_auctions,
               count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions
        FROM bid GROUP BY DATE_FORMAT(dateTime, 'yyyy-MM-dd')
        """,
    ),
    "q16": (
        "update",
        """
        SELECT channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
               max(DATE_FORMAT(dateTime, 'HH:mm')) AS minute,
               count(*) AS total_bids,
               count(*) FILTER (WHERE price < 10000) AS rank1_bids,
               count(DISTINCT bidder) AS total_bidders,
               count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders
        FROM bid GROUP BY channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd')
        """,
    ),
    "q17": (
        "update",
        """
        SELECT auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
               count(*) AS total_bids,
               count(*) FILTER (WHERE price < 10000) AS rank1_bids,
               count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
               min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
        FROM bid GROUP BY auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd')
        """,
    ),
    "q20": (
        "append",
        """
        SELECT auction, bidder, price, channel, url, B.dateTime AS bid_dateTime, B.extra AS bid_extra,
               itemName, description, initialBid, reserve, A.dateTime AS auction_dateTime, expires, seller, category,
               A.extra AS auction_extra
        FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
        WHERE A.category = 10
        """,
    ),
    "q21": (
        "append",
        """
        SELECT auction, bidder, price, channel,
               CASE
                   WHEN lower(channel) = 'apple' THEN '0'
                   WHEN lower(channel) = 'google' THEN '1'
                   WHEN lower(channel) = 'facebook' THEN '2'
                   WHEN lower(channel) = 'baidu' THEN '3'
                   ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
               END AS channel_id
        FROM bid
        WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
           OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
        """,
    ),
    "q22": (
        "append",
        """
        SELECT auction, bidder, price, channel,
               split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
        FROM bid
        """,
    ),
}

REFUSED: dict[str, tuple[str, str]] = {
    "q4": (
        "streaming Spark",
        """
        SELECT Q.category, AVG(Q.final) AS average
        FROM (
            SELECT MAX(B.price) AS final, A.category
            FROM auction A, bid B
            WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
            GROUP BY A.id, A.category
        ) Q
        GROUP BY Q.category
        """,
    ),
    "q5": (
        "streaming Spark",
        """
        SELECT AuctionBids.auction, AuctionBids.num
        FROM (
            SELECT auction, count(*) AS num, window.start AS starttime, window.end AS endtime
            FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
        ) AS AuctionBids
        JOIN (
            SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
            FROM (
                SELECT count(*) AS num, window.start AS starttime, window.end AS endtime
                FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
            ) AS CountBids
            GROUP BY CountBids.starttime, CountBids.endtime
        ) AS MaxBids
        ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
           AND AuctionBids.num >= MaxBids.maxn
        """,
    ),
    "q6": (
        "streaming Spark has no OVER",
        """
        SELECT Q.seller, AVG(Q.final) OVER (PARTITION BY Q.seller ORDER BY Q.dateTime ROWS BETWEEN 10 PRECEDING AND
               CURRENT ROW) AS average
        FROM (
            SELECT MAX(B.price) AS final, A.seller, B.dateTime
            FROM auction AS A, bid AS B
            WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
            GROUP BY A.id, A.seller, B.dateTime
        ) AS Q
        """,
    ),
    "q9": (
        "streaming Spark has no OVER",
        """
        SELECT id, itemName, auction, bidder, price, bid_dateTime
        FROM (
            SELECT A.id, A.itemName, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime,
                   ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS rownum
            FROM auction A, bid B
            WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
        )
        WHERE rownum <= 1
        """,
    ),
    "q18": (
        "streaming Spark has no OVER",
        """
        SELECT auction, bidder, price, channel, url, dateTime, extra
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS rank_number FROM bid)
        WHERE rank_number <= 1
        """,
    ),
    "q19": (
        "streaming Spark has no OVER",
        """
        SELECT * FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid
        )
        WHERE rank_number <= 10
        """,
    ),
}

# The time of processing differs from run to run, so there are no rows to compare.
AT_ITS_OWN_TIME: dict[str, tuple[str, str]] = {
    "q12": (
        "update",
        """
        SELECT bidder, count(*) AS bid_count, window.start AS starttime, window.end AS endtime
        FROM bid GROUP BY bidder, window(current_timestamp(), '10 seconds')
        """,
    ),
}

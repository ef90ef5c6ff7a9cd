"""Nexmark's auction site as Arrow tables: people register, open auctions, and bid, 1 : 3 : 46.

Event number n is of the same kind, with the same time and its own id, in every run, so ranges of numbers made
apart (by several devices) still refer to each other. Everything else is drawn from the seed. Rows come in
order of arrival: a row is at most `disorder_ms` behind the newest one before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

PERSON, AUCTION, BID = 0, 1, 2
PERSONS_PER_EPOCH, AUCTIONS_PER_EPOCH, EVENTS_PER_EPOCH = 1, 3, 50

FIRST_PERSON_ID = FIRST_AUCTION_ID = 1000
FIRST_CATEGORY_ID, CATEGORIES = 10, 5
PEOPLE_ACTIVE, AUCTIONS_IN_FLIGHT = 1000, 100
# Ids may run this far ahead of what exists, so that some joins find no partner.
PERSON_ID_LEAD = AUCTION_ID_LEAD = 10
# One event in `ratio` is not hot; the hot id is the last multiple of HOT_STEP.
HOT_AUCTION_RATIO, HOT_BIDDER_RATIO, HOT_SELLER_RATIO, HOT_CHANNEL_RATIO = 2, 4, 4, 2
HOT_STEP = 100
PRICE_MAX = 10**8
# Offsets of Arrow strings are 32 bits wide; this keeps a column of padding well below.
EVENTS_MAX = 10_000_000

FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
CHANNELS = 10_000
LETTER_OF_BYTE = b"abcdefghijklmnopqrstuvwxyz abcde" * 8

TIMESTAMP = pa.timestamp("us", tz="UTC")
PERSON_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("emailAddress", pa.string()),
        ("creditCard", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("dateTime", TIMESTAMP),
        ("extra", pa.string()),
    ]
)
AUCTION_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("itemName", pa.string()),
        ("description", pa.string()),
        ("initialBid", pa.int64()),
        ("reserve", pa.int64()),
        ("dateTime", TIMESTAMP),
        ("expires", TIMESTAMP),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("extra", pa.string()),
    ]
)
BID_SCHEMA = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("dateTime", TIMESTAMP),
        ("extra", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkConfig:
    """Which events to make: `events` of them from number `first_event`, `rate` to a second of event time."""

    events: int = 100_000
    first_event: int = 0
    seed: int = 0
    rate: float = 10_000.0
    disorder_ms: int = 0
    start_us: int = 1_436_918_400_000_000  # 2015-07-15 00:00:00 UTC, as in Beam's generator
    person_extra_bytes: int = 100
    auction_extra_bytes: int = 380
    bid_extra_bytes: int = 40

    def __post_init__(self) -> None:
        if not 0 < self.events <= EVENTS_MAX:
            raise ValueError(f"events is {self.events}, must be 1 to {EVENTS_MAX}; make more in several ranges")
        if self.first_event < 0 or self.rate <= 0 or self.disorder_ms < 0:
            raise ValueError("first_event and disorder_ms must not be negative, rate must be positive")


class Nexmark:
    """The three streams of one configuration in order of arrival, and the wide table of all events."""

    def __init__(self, config: NexmarkConfig) -> None:
        self.config = config
        numbers = np.arange(config.first_event, config.first_event + config.events)
        if config.disorder_ms:
            delay_us = _random(config, 3).uniform(0, config.disorder_ms * 1000, config.events)
            numbers = numbers[np.argsort(_times(config, numbers) + delay_us, kind="stable")]
        offsets = numbers % EVENTS_PER_EPOCH
        first_bid_offset = PERSONS_PER_EPOCH + AUCTIONS_PER_EPOCH
        self._types = (offsets >= PERSONS_PER_EPOCH).astype(np.int32) + (offsets >= first_bid_offset)
        self.person = _persons(config, numbers[self._types == PERSON])
        self.auction = _auctions(config, numbers[self._types == AUCTION])
        self.bid = _bids(config, numbers[self._types == BID])

    @cached_property
    def events(self) -> pa.Table:
        """`event_type` and the structs `person`, `auction`, `bid`, of which one is not null."""
        columns: dict[str, pa.Array] = {"event_type": pa.array(self._types)}
        streams = {"person": self.person, "auction": self.auction, "bid": self.bid}
        for event_type, (name, table) in enumerate(streams.items()):
            here = self._types == event_type
            rows = pa.array(np.cumsum(here) - 1, mask=~here)
            columns[name] = table.to_struct_array().combine_chunks().take(rows)
        return pa.table(columns)


def generate(config: NexmarkConfig) -> Nexmark:
    """Make the streams.

    >>> nexmark = generate(NexmarkConfig(events=500))
    >>> nexmark.person.num_rows, nexmark.auction.num_rows, nexmark.bid.num_rows
    (10, 30, 460)
    """
    return Nexmark(config)


def batches(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    """The table as record batches of `rows` rows, the last one with what is left."""
    return table.combine_chunks().to_batches(max_chunksize=rows)


def _persons(config: NexmarkConfig, numbers: np.ndarray) -> pa.Table:
    random, count = _random(config, PERSON), len(numbers)
    names = pa.array([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])
    columns = [
        pa.array(FIRST_PERSON_ID + _last_person(numbers)),
        _choice(random, names, count),
        _pattern(random, "*******@*****.com", count),
        _pattern(random, "#### #### #### ####", count),
        _choice(random, pa.array(CITIES), count),
        _choice(random, pa.array(STATES), count),
        _timestamps(_times(config, numbers)),
        _padding(random, config.person_extra_bytes, count),
    ]
    return pa.table(columns, schema=PERSON_SCHEMA)


def _auctions(config: NexmarkConfig, numbers: np.ndarray) -> pa.Table:
    random, count = _random(config, AUCTION), len(numbers)
    times = _times(config, numbers)
    # On average an auction stays open while as many others open as are in flight at once.
    horizon_us = AUCTIONS_IN_FLIGHT * EVENTS_PER_EPOCH / AUCTIONS_PER_EPOCH * 1e6 / config.rate
    open_us = 1000 + (random.random(count) * 2 * horizon_us).astype(np.int64)
    initial = _prices(random, count)
    hot_seller = _last_person(numbers) // HOT_STEP * HOT_STEP
    seller = np.where(_is_hot(random, HOT_SELLER_RATIO, count), hot_seller, _active_person(random, numbers))
    columns = [
        pa.array(FIRST_AUCTION_ID + _last_auction(numbers)),
        _text(random, random.integers(3, 20, count)),
        _text(random, random.integers(3, 100, count)),
        pa.array(initial),
        pa.array(initial + _prices(random, count)),
        _timestamps(times),
        _timestamps(times + open_us),
        pa.array(FIRST_PERSON_ID + seller),
        pa.array(FIRST_CATEGORY_ID + random.integers(0, CATEGORIES, count)),
        _padding(random, config.auction_extra_bytes, count),
    ]
    return pa.table(columns, schema=AUCTION_SCHEMA)


def _bids(config: NexmarkConfig, numbers: np.ndarray) -> pa.Table:
    random, count = _random(config, BID), len(numbers)
    last_auction = _last_auction(numbers)
    oldest = np.maximum(last_auction - AUCTIONS_IN_FLIGHT, 0)
    open_auction = oldest + random.integers(0, last_auction - oldest + 1 + AUCTION_ID_LEAD)
    hot_auction = last_auction // HOT_STEP * HOT_STEP
    auction = np.where(_is_hot(random, HOT_AUCTION_RATIO, count), hot_auction, open_auction)
    hot_bidder = _last_person(numbers) // HOT_STEP * HOT_STEP + 1
    bidder = np.where(_is_hot(random, HOT_BIDDER_RATIO, count), hot_bidder, _active_person(random, numbers))
    channels, urls = _channels(config.seed)
    hot_channel = random.integers(0, len(HOT_CHANNELS), count)
    cold_channel = random.integers(len(HOT_CHANNELS), len(channels), count)
    channel = pa.array(np.where(_is_hot(random, HOT_CHANNEL_RATIO, count), hot_channel, cold_channel))
    columns = [
        pa.array(FIRST_AUCTION_ID + auction),
        pa.array(FIRST_PERSON_ID + bidder),
        pa.array(_prices(random, count)),
        channels.take(channel),
        urls.take(channel),
        _timestamps(_times(config, numbers)),
        _padding(random, config.bid_extra_bytes, count),
    ]
    return pa.table(columns, schema=BID_SCHEMA)


def _channels(seed: int) -> tuple[pa.Array, pa.Array]:
    """Names and urls, hot ones first; the hot and a tenth of the others have no channel_id."""
    random = np.random.default_rng([seed, 4])
    count = len(HOT_CHANNELS) + CHANNELS
    paths = _pattern(random, "https://www.nexmark.com/*****/*****/*****/item.htm?query=1", count)
    has_id = random.random(count) < 0.9
    names, urls = list(HOT_CHANNELS), paths.to_pylist()
    for channel in range(CHANNELS):
        names.append(f"channel-{channel}")
        if has_id[row := len(HOT_CHANNELS) + channel]:
            # Bits reversed, as in Beam's generator: neighbours get ids far apart.
            urls[row] += f"&channel_id={int(f'{channel:032b}'[::-1], 2)}"
    return pa.array(names), pa.array(urls)


def _random(config: NexmarkConfig, stream: int) -> np.random.Generator:
    return np.random.default_rng([config.seed, config.first_event, stream])


def _times(config: NexmarkConfig, numbers: np.ndarray) -> np.ndarray:
    return config.start_us + (numbers * (1e6 / config.rate)).astype(np.int64)


def _timestamps(times_us: np.ndarray) -> pa.Array:
    return pa.array(times_us).cast(TIMESTAMP)


def _last_person(numbers: np.ndarray) -> np.ndarray:
    """Zero-based id of the newest person when event n happens (n itself, if it is a person)."""
    return numbers // EVENTS_PER_EPOCH * PERSONS_PER_EPOCH


def _last_auction(numbers: np.ndarray) -> np.ndarray:
    """Zero-based id of the newest auction when event n happens (n itself, if it is an auction)."""
    place = np.minimum(numbers % EVENTS_PER_EPOCH - PERSONS_PER_EPOCH, AUCTIONS_PER_EPOCH - 1)
    return np.maximum(numbers // EVENTS_PER_EPOCH * AUCTIONS_PER_EPOCH + place, 0)


def _active_person(random: np.random.Generator, numbers: np.ndarray) -> np.ndarray:
    people = _last_person(numbers) + 1
    active = np.minimum(people, PEOPLE_ACTIVE)
    return people - active + random.integers(0, active + PERSON_ID_LEAD)


def _is_hot(random: np.random.Generator, ratio: int, count: int) -> np.ndarray:
    return random.integers(0, ratio, count) > 0


def _prices(random: np.random.Generator, count: int) -> np.ndarray:
    """Log-normal around 10^5 cents, a factor of ten to a standard deviation."""
    return np.clip(random.lognormal(np.log(1e5), np.log(10), count), 1, PRICE_MAX).astype(np.int64)


def _choice(random: np.random.Generator, values: pa.Array, count: int) -> pa.Array:
    return values.take(pa.array(random.integers(0, len(values), count)))


def _pattern(random: np.random.Generator, pattern: str, count: int) -> pa.Array:
    """Strings like `pattern`, with a random letter for each `*` and a random digit for each `#`."""
    cells = np.tile(np.frombuffer(pattern.encode(), np.uint8), (count, 1))
    for mark, first, past in (("*", "a", "{"), ("#", "0", ":")):
        places = [place for place, character in enumerate(pattern) if character == mark]
        cells[:, places] = random.integers(ord(first), ord(past), (count, len(places)), np.uint8)
    return _strings(cells.tobytes(), np.full(count, len(pattern)))


def _padding(random: np.random.Generator, bytes_mean: int, count: int) -> pa.Array:
    spread = bytes_mean // 5
    return _text(random, random.integers(bytes_mean - spread, bytes_mean + spread + 1, count))


def _text(random: np.random.Generator, lengths: np.ndarray) -> pa.Array:
    return _strings(random.bytes(int(lengths.sum())).translate(LETTER_OF_BYTE), lengths)


def _strings(characters: bytes, lengths: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(characters))

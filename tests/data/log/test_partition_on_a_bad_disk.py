"""A partition over a disk that fails and loses power, against a list and a few sets."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rove.data.log.segments.commands import Position
from rove.data.log.segments.disk_work.commit import carry_out, retire
from rove.data.log.segments.disk_work.reader import Reader
from rove.data.log.segments.format import Entry
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.model.ids import Origin
from rove.sim.disk import HARMS, SimDisk
from tests.data.log.entries import SCHEMA, A, B, header, rows

ORIGINS = st.sampled_from([A, B])
Key = tuple[Origin, int, bool]
Appended = tuple[list[Key], bytes | None, int]


class PartitionOnABadDisk(RuleBasedStateMachine):
    """The twin: what was appended, in order, as `(origin, seq, late)` keys and bytes; how much of it was acked.

    Recovery may cut entries that were never acked. Until its first group is on the disk, a power cut may bring them
    back: the disk has not been told of the cut. Entries that are appended meanwhile are in memory only, and are gone.
    """

    @initialize(seed=st.integers(0, 2**32), small=st.booleans())
    def begin(self, seed: int, small: bool) -> None:
        self.chance = random.Random(seed)
        self.disk = SimDisk(self.chance)
        segment_bytes, entries = (900, 4) if small else (1 << 20, 1 << 16)
        self.settings = LogSettings(
            segment_bytes=segment_bytes, segment_entries=entries, segment_us=60_000_000, keep_consumed=False
        )
        self.partition = Partition("p", SCHEMA, self.settings)
        self.log: list[Appended] = []
        self.acked = self.seen = 0
        # Whether recovery's first group is not on the disk yet, how many entries it kept, and those that it cut.
        self.recovers, self.kept, self.cut = False, 0, list[Appended]()
        self.now_us = 1_000_000
        self.reader = Reader(self.disk)
        self.partition.consumed("reader", self.reader.position)

    @property
    def taken(self) -> set[Key]:
        return {key for keys, _, _ in self.log for key in keys}

    @rule(origin=ORIGINS, seq=st.integers(0, 12), late=st.booleans(), count=st.integers(1, 20))
    def append_rows(self, origin: Origin, seq: int, late: bool, count: int) -> None:
        new = (origin, seq, late) not in self.taken
        payload = rows(origin, seq, count)
        position = self.partition.append(header(origin, seq, count, late=late), payload)
        assert position == (len(self.log) if new else None)
        if new:
            self.log.append(([(origin, seq, late)], payload, count))

    @rule(origin=ORIGINS, more=st.integers(1, 4))
    def append_in_order(self, origin: Origin, more: int) -> None:
        for _ in range(more):
            self.append_rows(origin, self.partition.ledger.frontier.next(origin), False, 2)

    @rule(origin=ORIGINS, seq=st.integers(0, 12), more=st.integers(0, 6))
    def append_empties(self, origin: Origin, seq: int, more: int) -> None:
        taken, runs, run = self.taken, [], []
        for s in range(seq, seq + more + 1):
            if (origin, s, False) not in taken:
                run.append((origin, s, False))
            elif run:
                runs.append(run)
                run = []
        runs += [run] if run else []
        self.log += [(keys, None, 0) for keys in runs]
        position = self.partition.append(header(origin, seq, 0, seq + more))
        assert position == (len(self.log) - 1 if runs else None)

    @rule()
    def flush(self) -> None:
        self.now_us += 20_000_000
        group = self.partition.flush(self.now_us)
        if group is not None:
            safe = carry_out(self.partition, self.disk, group)
            assert not safe or safe.stop == self.partition.committed
            self.acked = max(self.acked, self.partition.committed)
            self.recovers &= self.partition.recovers

    @rule(after=st.integers(0, 12))
    def flush_on_a_failing_disk(self, after: int) -> None:
        self.disk.fail_after = after
        self.flush()
        self.disk.fail_after = None

    @rule(room=st.integers(0, 2_000))
    def flush_on_a_full_disk(self, room: int) -> None:
        self.disk.capacity_bytes = sum(self.disk.sizes().values()) + room
        self.flush()
        self.disk.capacity_bytes = None

    @rule(before=st.integers(0, 14), power=st.booleans())
    def crash_within_a_flush(self, before: int, power: bool) -> None:
        self.now_us += 20_000_000
        group = self.partition.flush(self.now_us)
        if group is not None:
            for command in group.commands[:before]:
                self.disk.execute(command)
        self.crash(power)

    @rule(power=st.booleans())
    def crash(self, power: bool) -> None:
        if power:
            self.disk.crash()
        seen_before = self.reader.committed()
        assert seen_before <= len(self.log)
        self.partition = Partition.recover("p", SCHEMA, self.disk.sizes(), self.disk.read, self.settings)
        assert not self.partition.quarantine, self.partition.quarantine
        if self.recovers:
            self.log[self.kept :] = self.cut
        assert self.acked <= self.partition.end <= len(self.log)
        assert self.partition.end >= seen_before
        self.partition.consumed("reader", self.reader.position)
        # Without a group of recovery there was nothing to cut.
        self.recovers = self.partition.recovers
        self.kept, self.cut = self.partition.end, self.log[self.partition.end :]
        del self.log[self.partition.end :]

    @rule(
        before=st.integers(0, 6),
        power=st.tuples(st.booleans(), st.booleans()),
        harms=st.lists(st.tuples(st.sampled_from(HARMS), st.integers(0, 9), st.floats(0, 1)), min_size=1, max_size=3),
    )
    def crash_and_damage_indexes(
        self, before: int, power: tuple[bool, bool], harms: list[tuple[str, int, float]]
    ) -> None:
        """Indexes are damaged. While they are mended, the process or the power goes again."""
        if power[0]:
            self.disk.crash()
        for harm, which, place in harms:
            indexes = sorted(file for file in self.disk.sizes() if file.endswith(".index"))
            if indexes:
                self.disk.harm(indexes[which % len(indexes)], harm, place)
        self.crash(power=False)
        self.crash_within_a_flush(before, power[1])
        while self.partition.unmended:
            self.flush()

    @rule(back=st.integers(0, 5))
    def consume_and_retire(self, back: int) -> None:
        position = max(0, self.acked - back)
        self.partition.consumed("spark", Position(position))
        retire(self.partition, self.disk, self.now_us)
        assert not self.partition.missed

    @rule(most=st.integers(1, 5))
    def read_on(self, most: int) -> None:
        for entry in self.reader.entries(most):
            assert entry.position == self.seen
            assert entry.position < self.acked or entry.position < self.reader.committed()
            self.expect(entry)
            self.seen += 1
        self.partition.consumed("reader", self.reader.position)

    def expect(self, entry: Entry) -> None:
        keys, payload, _ = self.log[entry.position]
        named = [(entry.header.origin, s, entry.header.late) for s in range(entry.header.seq, entry.header.through + 1)]
        assert named == keys
        assert (payload is None) == (entry.length == 0)
        if payload is not None:
            batch = self.reader.read(entry)
            assert batch is not None
            assert bytes(batch.serialize()) == payload

    @invariant()
    def the_ledger_is_the_twin(self) -> None:
        taken = self.taken
        for origin in (A, B):
            for late, frontier in ((False, self.partition.ledger.frontier), (True, self.partition.ledger.late)):
                assert [s for s in range(20) if frontier.has(origin, s)] == [
                    s for s in range(20) if (origin, s, late) in taken
                ]
        counted = self.partition.ledger.counts().values()
        assert sum(c.rows + c.late for c in counted) == sum(count for _, _, count in self.log)
        assert self.partition.end == len(self.log)
        assert self.partition.committed <= self.partition.end

    @invariant()
    def readers_see_what_is_committed_and_no_more(self) -> None:
        visible = Reader(self.disk).committed()
        assert visible <= max(self.acked, self.partition.committed)

    def teardown(self) -> None:
        """A healed disk has everything: all that was acked is there once, with its bytes."""
        if not hasattr(self, "partition"):
            return
        for _ in range(4):
            self.flush()
        assert self.partition.committed == len(self.log)
        assert self.partition.trouble is None
        while self.reader.entries(0) or self.reader.position < self.reader.committed():
            before = self.seen
            self.read_on(4)
            assert self.seen > before
        assert self.seen == len(self.log)


PartitionOnABadDisk.TestCase.settings = settings(
    max_examples=60, report_multiple_bugs=False, stateful_step_count=40, deadline=None
)
TestPartitionOnABadDisk = PartitionOnABadDisk.TestCase

"""A group that failed is tried again, and a power cut may happen meanwhile."""

from __future__ import annotations

import random

from rove.data.log.segments.disk_work.commit import commit
from rove.data.log.segments.partition import Partition
from rove.data.log.settings import LogSettings
from rove.sim.disk import SimDisk
from tests.data.log.entries import A, filled, header, read_all, reopened, rows


def test_power_may_go_at_any_moment_of_any_second_attempt() -> None:
    """Segments roll within the group, so the second attempt deletes and cuts before it writes again."""

    def failed_once(seed: int, fails_at: int) -> tuple[Partition, SimDisk]:
        folder = SimDisk(random.Random(seed))
        partition = filled(folder, 1, LogSettings(segment_entries=2))
        for seq in range(1, 6):
            partition.append(header(A, seq), rows(A, seq))
        folder.fail_after = fails_at
        commit(partition, folder, 2_000)
        return partition, folder

    for fails_at in range(2, 17, 2):
        for stops_at in range(20):
            for seed in range(6):
                partition, folder = failed_once(seed, fails_at)
                group = partition.flush(9_000_000)
                for command in group.commands[:stops_at] if group else ():
                    folder.execute(command)
                folder.crash()
                again = reopened(folder)
                assert again.quarantine == []
                for seq in range(6):
                    again.append(header(A, seq), rows(A, seq))
                commit(again, folder, 9_000_001)
                commit(again, folder, 9_000_002)
                assert sorted(e.header.seq for e, _ in read_all(folder)) == list(range(6))

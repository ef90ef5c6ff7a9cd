"""How large the worlds of many seeds are.

Law: a seed determines its size, before and apart from its history. A history depends on its seed and its size alone, so
`rove sim --seed S --nodes N` replays it.
"""

from __future__ import annotations

from random import Random

NODES = 60
# The most nodes in a history, and how many of 100 seeds have it. Small worlds are fast and find nearly everything; what
# needs many nodes, such as long routes, is in the others. The rest has as many nodes as are asked for.
SHARES = ((6, 45), (12, 40), (20, 10))


def size_of(seed: int, nodes_max: int = NODES) -> int:
    """The most nodes in the history of a seed, among many seeds.

    >>> [size_of(seed) for seed in range(8)]
    [6, 12, 60, 6, 6, 6, 20, 20]
    """
    left = Random(f"{seed} size").randrange(100)
    for nodes, share in SHARES:
        if left < share:
            return min(nodes, nodes_max)
        left -= share
    return nodes_max

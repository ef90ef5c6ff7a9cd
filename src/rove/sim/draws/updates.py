"""Plans queries that get another text while rows flow.

Law: the plan has a random generator of its own. The new text means the same as the old one, so the rows that are
expected stay the same, whichever text computes a row. Its operators differ, so nodes must go on with new ones.
"""

from __future__ import annotations

from functools import partial
from random import Random

from rove.plan.expressions.bind import bind
from rove.plan.expressions.tree import sql
from rove.plan.operators import Filter, Operator
from rove.plan.rules.amend import changed, misfit
from rove.plan.rules.rewrite import with_inputs
from rove.plan.stages import Stages
from rove.sim.draws.faults import HEAL_US
from rove.sim.world import World

SECOND_US = 1_000_000
UPDATES = 0.2  # the share of histories with updates
UPDATES_MAX = 3


def plan_updates(world: World, random: Random) -> None:
    """Plan updates of any query that can take one."""
    if random.random() >= UPDATES:
        return
    for _ in range(random.randint(1, UPDATES_MAX)):
        at = random.randint(4 * SECOND_US, HEAL_US)
        world.at(at, partial(_update, world, random.random(), random.randint(1, UPDATES_MAX)))


def _update(world: World, draw: float, times: int) -> None:
    """Update one of the queries that were submitted."""
    texts = {name: (stages, said_otherwise(stages, times)) for name, (stages, _) in world.queries.items()}
    ready = [name for name, (old, new) in texts.items() if not misfit(old, new) and changed(old, new)]
    if ready:
        name = ready[int(draw * len(ready))]
        world.update(name, texts[name][1])


def said_otherwise(stages: Stages, times: int) -> Stages:
    """The same plan with its conditions written in another, equivalent form."""
    operators: list[Operator] = []
    for operator, inputs in zip(stages.operators, stages.inputs, strict=True):
        new = with_inputs(operator, tuple(operators[n] for n in inputs))
        if isinstance(new, Filter):
            new = Filter(new.input, bind(f"({sql(new.condition)}){' AND TRUE' * times}", new.input.schema))
        operators.append(new)
    return Stages(tuple(operators), stages.outputs, stages.hints)

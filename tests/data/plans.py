"""Plans by digest, for tests that tell a worker its fragments themselves."""

from __future__ import annotations

from rove.model.messages import Fragment, plan_digest

_PLANS: dict[str, bytes] = {}


def named(plan: bytes) -> str:
    """The digest of a plan, which `plans_of` knows from now on."""
    digest = plan_digest(plan)
    _PLANS[digest] = plan
    return digest


def plans_of(*fragments: Fragment) -> dict[str, bytes]:
    """The plans that these fragments name."""
    return {fragment.plan: _PLANS[fragment.plan] for fragment in fragments}

# SPDX-License-Identifier: Apache-2.0
"""Say where the boundary between the two sides should be on one node, one resource of it.

Nothing here is needed for safety: the rules of mode strict hold for any wish. What this decides is who gets what is
free, and that steps towards Kubernetes are large enough for koord-manager to publish them at once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Hold one resource of a node in one unit, and what each side wants of it.

    Attributes:
        budget: what YARN may have at most, `O' - P - R - K`.
        used: Y, what YARN uses.
        claimed: T as the Node shows it.
        allocatable: A as published.
        kubernetes_waits: what pods that are not scheduled could use here.
        yarn_waits: applications wait for containers; None when unknown.
        yarn_weight: YARN's part of the free amount where neither side alone waits; Kubernetes' alike.
        kubernetes_minimum: what YARN leaves free.
        step_unit: smallest amount that makes a difference to YARN.
    """

    budget: int
    used: int
    claimed: int
    allocatable: int
    kubernetes_waits: int = 0
    yarn_waits: bool | None = None
    yarn_weight: int = 1
    kubernetes_weight: int = 1
    kubernetes_minimum: int = 0
    step_unit: int = 1


def yarn_part(shares: Shares) -> int:
    """Give the amount that YARN should have of the budget."""
    free = shares.budget - shares.used
    if free <= 0:
        return max(shares.budget, 0)
    left = min(max(shares.kubernetes_minimum, 0), free)
    if shares.kubernetes_waits > 0 and shares.yarn_waits is not True:
        part = 0
    elif shares.kubernetes_waits <= 0 and shares.yarn_waits is True:
        part = free - left
    else:
        weights = shares.yarn_weight + shares.kubernetes_weight
        part = min(free * shares.yarn_weight // weights if weights else free, free - left)
    return _in_steps(shares, shares.used + part)


def _in_steps(shares: Shares, goal: int) -> int:
    """Make a step towards Kubernetes larger than a tenth of allocatable, where so much can be given at all."""
    given = shares.claimed - goal
    if given <= 0:
        return goal
    least = shares.allocatable // 10 + shares.step_unit
    return goal if given >= least else max(shares.used, shares.claimed - least)

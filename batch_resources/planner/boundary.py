# SPDX-License-Identifier: Apache-2.0
"""Say where the boundary between the two sides should be on one node, one resource of it.

Nothing here is needed for safety: the rules of mode strict hold for any wish. What this decides is who gets what is
free, and that steps towards Kubernetes are large enough for koord-manager to publish them at once.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Why(StrEnum):
    """Name why the boundary is where it is."""

    NOTHING_FREE = "nothing_free"
    NOBODY_WAITS = "nobody_waits"
    BOTH_WAIT = "both_wait"
    DEMAND_UNKNOWN = "demand_unknown"
    YARN_WAITS = "yarn_waits"
    KUBERNETES_WAITS = "kubernetes_waits"
    PODS_NEED_MORE = "pods_need_more"
    SMALL_STEP = "small_step"
    LARGER_STEP = "larger_step"
    MOVED_LATELY = "moved_lately"


class Shares(NamedTuple):
    """Hold one resource of a node in one unit, and what each side wants of it.

    Attributes:
        budget: what YARN may have at most, `O' - P - R - K`.
        used: Y, what YARN uses.
        claimed: T as the Node shows it.
        allocatable: A as published.
        reserve: R, which YARN never gets and Kubernetes may book.
        kubernetes_waits: what the pods need that are not scheduled and are to be served here.
        yarn_waits: applications wait for containers; None when unknown.
        yarn_weight: YARN's part of the free amount where neither side alone waits; Kubernetes' alike.
        kubernetes_minimum: what YARN leaves free.
        yarn_minimum: what YARN keeps of the budget.
        step_unit: smallest amount that makes a difference to YARN.
    """

    budget: int
    used: int
    claimed: int
    allocatable: int
    reserve: int = 0
    kubernetes_waits: int = 0
    yarn_waits: bool | None = None
    yarn_weight: int = 1
    kubernetes_weight: int = 1
    kubernetes_minimum: int = 0
    yarn_minimum: int = 0
    step_unit: int = 1


class Split(NamedTuple):
    """Hold YARN's part of the budget and why it is that much."""

    yarn: int
    why: Why


def split(shares: Shares) -> Split:
    """Give the amount that YARN should have of the budget."""
    free = shares.budget - shares.used
    if free <= 0:
        return Split(max(shares.budget, 0), Why.NOTHING_FREE)
    part, why = _part_of_free(shares, free)
    # Kubernetes' minimum goes before YARN's: with nothing published, a fall of origin would stay hidden.
    most = free - min(max(shares.kubernetes_minimum, 0), free)
    least = min(max(shares.yarn_minimum - shares.used, 0), most)
    goal = shares.used + min(max(part, least), most)
    return _in_steps(shares, Split(goal, why), lowest=shares.used + least, highest=shares.used + most)


def _part_of_free(shares: Shares, free: int) -> tuple[int, Why]:
    """Give YARN's part of what is free, minimums aside."""
    waits = shares.kubernetes_waits > 0
    if waits and shares.yarn_waits is False:
        return 0, Why.KUBERNETES_WAITS
    if not waits and shares.yarn_waits is True:
        return free, Why.YARN_WAITS
    weights = shares.yarn_weight + shares.kubernetes_weight
    part = free * shares.yarn_weight // weights if weights else free
    if waits:
        left = max(free + shares.reserve - shares.kubernetes_waits, 0)
        if left < part:
            return left, Why.PODS_NEED_MORE
        return part, Why.BOTH_WAIT if shares.yarn_waits else Why.DEMAND_UNKNOWN
    return part, Why.NOBODY_WAITS if shares.yarn_waits is False else Why.DEMAND_UNKNOWN


def _in_steps(shares: Shares, wished: Split, *, lowest: int, highest: int) -> Split:
    """Make a step towards Kubernetes one that koord-manager publishes at once, or none.

    It publishes a change of more than a tenth of allocatable. Where pods wait for it, a smaller step is made larger,
    as far as the minimums allow, and a small step back waits until they are served. Where nobody waits, a small step
    would be worth nothing.
    """
    given = shares.claimed - wished.yarn
    least = shares.allocatable // 10 + shares.step_unit
    if given == 0 or abs(given) >= least:
        return wished
    stays = Split(min(max(shares.claimed, lowest), highest), Why.SMALL_STEP)
    if shares.kubernetes_waits <= 0:
        return stays if given > 0 else wished
    if given < 0:
        return stays
    return Split(min(max(shares.claimed - least, lowest), wished.yarn), Why.LARGER_STEP)

# SPDX-License-Identifier: Apache-2.0
"""Wish for a boundary on a real node: its quantities, the policy and who waits, put into `boundary` and `standing`."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final, NamedTuple

from batch_resources.ledger import NodeObservation
from batch_resources.planner.boundary import Shares, Why, split
from batch_resources.planner.inputs import Inputs, used_by_yarn
from batch_resources.planner.policy import Policy
from batch_resources.planner.standing import Standing, may_go_back_at, stand
from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.units import BYTES_PER_MIB

Pick = Callable[[BatchResources], int]

RESOURCES: Final[tuple[Pick, Pick]] = (attrgetter("cpu_milli"), attrgetter("memory_bytes"))
"""Take cpu, take memory: the order of everything that is decided once for each."""


class Wish(NamedTuple):
    """Hold where the boundary should be.

    Attributes:
        yarn: YARN's part of the budget.
        why: why it is that much, for cpu and memory.
        standing: what to remember of it, for cpu and memory.
        again_at: moment from which it may move although nothing else changes.
    """

    yarn: BatchResources
    why: tuple[Why, ...]
    standing: tuple[Standing, ...]
    again_at: float | None


def wish_for(node: NodeObservation, inputs: Inputs, policy: Policy, *, now: float) -> Wish:
    """Say where the boundary should be; `inputs` have a budget."""
    assert inputs.budget is not None and inputs.lowest is not None  # noqa: S101, PT018  # of a known budget
    window = policy.growth_window_seconds
    parts, whys, standings, moments = [], [], [], []
    for index, shares in enumerate(_shares(node, inputs.budget, inputs.lowest, inputs.reserve, policy)):
        wished = split(shares)
        standing = stand(
            None if node.standing is None else node.standing[index],
            wished.yarn,
            demand=(shares.kubernetes_waits, shares.yarn_waits),
            window_seconds=window,
            now=now,
        )
        moment = may_go_back_at(standing, wished.yarn, window)
        parts.append(min(standing.yarn, shares.budget))
        whys.append(wished.why if moment is None else Why.MOVED_LATELY)
        standings.append(standing)
        if moment is not None:
            moments.append(moment)
    return Wish(
        yarn=BatchResources(cpu_milli=parts[0], memory_bytes=parts[1]),
        why=tuple(whys),
        standing=tuple(standings),
        again_at=min(moments, default=None),
    )


def _shares(
    node: NodeObservation, budget: BatchResources, origin: BatchResources, reserve: BatchResources, policy: Policy
) -> list[Shares]:
    boundary, claimed = policy.boundary, ((node.claimed or ZERO_BATCH) - node.lingering).floored()
    used = used_by_yarn(node, policy)
    units = (policy.units.milli_cores_per_vcore, BYTES_PER_MIB)
    kubernetes_minimum, yarn_minimum = boundary.kubernetes_minimum.of(origin), boundary.yarn_minimum.of(origin)
    return [
        Shares(
            budget=pick(budget),
            reserve=pick(reserve),
            used=pick(used),
            claimed=pick(claimed),
            allocatable=pick(node.permissions.allocatable),
            kubernetes_waits=pick(node.demand.kubernetes),
            yarn_waits=node.demand.yarn_waits,
            yarn_weight=boundary.yarn_weight,
            kubernetes_weight=boundary.kubernetes_weight,
            kubernetes_minimum=pick(kubernetes_minimum),
            yarn_minimum=pick(yarn_minimum),
            step_unit=unit,
        )
        for pick, unit in zip(RESOURCES, units, strict=True)
    ]

# SPDX-License-Identifier: Apache-2.0
"""Turn a node's YARN budget into a target for each of its NodeManagers, and decide which targets are sent.

The target of a node whose inputs are unknown is its use: what runs may be replaced, nothing grows. A cluster that
cannot be read keeps the larger of its capacity and its use out of the others' budget, and is not written to.
"""

from __future__ import annotations

from batch_resources.giving_way import is_near
from batch_resources.ledger import Hold, ManagerObservation, ManagerPlan, NodeObservation
from batch_resources.planner.claim import manager_claim
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH, ZERO_YARN, BatchResources, YarnResources
from batch_resources.sends import highest_possible, is_under_way


def plan_managers(
    node: NodeObservation, budget: BatchResources | None, policy: Policy, *, may_grow: bool, now: float
) -> tuple[ManagerPlan, ...]:
    """Decide for every NodeManager of the node.

    Args:
        node: what was observed.
        budget: what YARN may have here in all; None when unknown.
        policy: units, floor, dead band.
        may_grow: whether the inputs are good enough for an increase.
        now: monotonic seconds.
    """
    shares = None if budget is None else _shares(node, budget, policy)
    plans = []
    for index, manager in enumerate(node.managers):
        share = None if shares is None else shares[index]
        plans.append(_plan_manager(node, manager, share, policy, may_grow=may_grow, now=now))
    return tuple(plans)


def _shares(node: NodeObservation, budget: BatchResources, policy: Policy) -> tuple[YarnResources, ...]:
    """Split the budget by weight among the NodeManagers that can be told, after what the others hold."""
    frozen = node.unread_claim or ZERO_BATCH
    weights = [max(manager.weight, 1) if _takes_part(manager) else 0 for manager in node.managers]
    for manager, weight in zip(node.managers, weights, strict=True):
        if not weight:
            frozen = frozen + policy.units.to_batch(held_by(manager), normalization_ratio=node.normalization_ratio)
    rest, weight_sum = (budget - frozen).floored(), sum(weights)
    shares = []
    for weight in weights:
        if not weight:
            shares.append(ZERO_YARN)
            continue
        part = rest
        if weight != weight_sum:
            part = BatchResources(
                cpu_milli=rest.cpu_milli * weight // weight_sum, memory_bytes=rest.memory_bytes * weight // weight_sum
            )
        shares.append(policy.units.to_yarn(part, normalization_ratio=node.normalization_ratio))
    return tuple(shares)


def can_be_told(manager: ManagerObservation) -> bool:
    return manager.reachable and manager.accepts_updates and manager.capacity is not None


def _takes_part(manager: ManagerObservation) -> bool:
    """Tell whether a NodeManager gets a share; what drains only gives back."""
    return can_be_told(manager) and not manager.drains


def held_by(manager: ManagerObservation) -> YarnResources:
    """Give what a NodeManager that cannot be told may hold: its use, and its capacity while it may be filled."""
    held = manager.used or ZERO_YARN
    if manager.reachable and not manager.accepts_updates:
        return held
    return held.at_least(highest_possible(manager.capacity, manager.sends) or ZERO_YARN)


def _plan_manager(
    node: NodeObservation,
    manager: ManagerObservation,
    share: YarnResources | None,
    policy: Policy,
    *,
    may_grow: bool,
    now: float,
) -> ManagerPlan:
    claim = manager_claim(manager, policy, node.normalization_ratio)
    if not can_be_told(manager):
        return ManagerPlan(key=manager.key, target=None, sends_update=False, claim=claim, holds=(_why_mute(manager),))
    assert manager.capacity is not None  # noqa: S101  # narrowed by can_be_told
    target, holds = _target(manager, manager.capacity, share, policy, may_grow=may_grow)
    wanted = target != manager.capacity
    already_sent = is_under_way(manager.sends, target)
    if node.claim_is_foreign:
        return ManagerPlan(key=manager.key, target=target, sends_update=False, claim=claim, holds=holds)
    if wanted and now < manager.retry_at:
        return ManagerPlan(
            key=manager.key, target=target, sends_update=False, claim=claim, holds=(*holds, Hold.UNRECOGNIZED_BACKOFF)
        )
    return ManagerPlan(
        key=manager.key, target=target, sends_update=wanted and not already_sent, claim=claim, holds=holds
    )


def _why_mute(manager: ManagerObservation) -> Hold:
    if not manager.cluster_is_known:
        return Hold.CLUSTER_UNKNOWN
    if not manager.reachable:
        return Hold.CLUSTER_UNREACHABLE
    if not manager.key.node_id or manager.capacity is None:
        return Hold.NODE_MANAGER_UNMATCHED
    return Hold.NODE_MANAGER_NOT_RUNNING


def _target(
    manager: ManagerObservation,
    capacity: YarnResources,
    share: YarnResources | None,
    policy: Policy,
    *,
    may_grow: bool,
) -> tuple[YarnResources, tuple[Hold, ...]]:
    floor = policy.floor
    if manager.drains:
        return capacity.at_most(floor), (Hold.DRAINING,)
    if share is None:
        held = (manager.used or ZERO_YARN).at_least(floor)
        # A node above its floor falls to its use; one below (a fresh registration) is not raised.
        return capacity.at_most(held), ()
    holds: tuple[Hold, ...] = ()
    target = share.at_least(floor)
    if target != share:
        holds = (Hold.FLOOR_OVERCOMMIT,)
    if not may_grow:
        return capacity.at_most(target), holds
    if manager.used is not None and not manager.used.fits_in(target) and is_near(capacity, target):
        return capacity, holds
    if _is_small_growth(capacity, target, policy.dead_band):
        return capacity, (*holds, Hold.DEAD_BAND)
    return target, holds


def _is_small_growth(capacity: YarnResources, target: YarnResources, dead_band: YarnResources) -> bool:
    if target == capacity or not capacity.fits_in(target):
        return False
    return (
        target.memory_mib - capacity.memory_mib < dead_band.memory_mib
        and target.vcores - capacity.vcores < dead_band.vcores
    )

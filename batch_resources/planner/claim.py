# SPDX-License-Identifier: Apache-2.0
"""Decide what Koordinator is told that YARN holds (T).

In mode `shared` the claim is the larger of use and floor, summed over the node's NodeManagers. A rise is written at
once; a fall needs proof from every NodeManager, since a claim that is too low sells memory that containers still
hold.
"""

from __future__ import annotations

from fractions import Fraction

from batch_resources.ledger import ClaimAction, Hold, ManagerObservation, ManagerPlan, NodeObservation
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH, ZERO_YARN, BatchResources


def manager_claim(manager: ManagerObservation, policy: Policy, ratio: Fraction | None) -> BatchResources:
    """Give the part of the claim that one NodeManager needs: max(Y, m), rounded up to Koordinator's units."""
    held = (manager.used or ZERO_YARN).at_least(policy.floor)
    return policy.units.to_batch(held, normalization_ratio=ratio)


def plan_claim(
    node: NodeObservation, managers: tuple[ManagerPlan, ...]
) -> tuple[BatchResources | None, ClaimAction, tuple[Hold, ...]]:
    """Decide the node's claim.

    Returns:
        The claim wanted (None: no entry), what to do with the annotation, and why less was done than wanted.
    """
    wanted = _sum(managers) + _unread_rest(node, managers) + node.lingering if node.managers else None
    if node.claim_is_foreign:
        return wanted, ClaimAction.KEEP, (Hold.FOREIGN_WRITER,)
    if node.others is None:
        return wanted, ClaimAction.KEEP, ()
    if wanted is None:
        return plan_release(node)
    holds: tuple[Hold, ...] = ()
    if node.claimed is not None and not _fall_is_proven(node):
        held = wanted.at_least(node.claimed)
        if held != wanted:
            wanted, holds = held, (Hold.FALL_OF_USE_UNPROVEN,)
    action = ClaimAction.KEEP if wanted == node.claimed else ClaimAction.WRITE
    return wanted, action, holds


def plan_release(node: NodeObservation) -> tuple[BatchResources | None, ClaimAction, tuple[Hold, ...]]:
    if node.claimed is None:
        return None, ClaimAction.KEEP, ()
    if node.release_is_proven:
        return None, ClaimAction.REMOVE, ()
    return node.claimed, ClaimAction.KEEP, (Hold.FALL_OF_USE_UNPROVEN,)


def _fall_is_proven(node: NodeObservation) -> bool:
    return node.lingering_is_known and all(manager.used_is_proven for manager in node.managers)


def _unread_rest(node: NodeObservation, managers: tuple[ManagerPlan, ...]) -> BatchResources:
    """Give what an older claim holds for NodeManagers that were never read, beyond the floors counted for them."""
    if node.unread_claim is None:
        return ZERO_BATCH
    counted = (plan for seen, plan in zip(node.managers, managers, strict=True) if seen.used is None)
    return (node.unread_claim - _sum(tuple(counted))).floored()


def _sum(managers: tuple[ManagerPlan, ...]) -> BatchResources:
    total = ZERO_BATCH
    for manager in managers:
        total = total + manager.claim
    return total

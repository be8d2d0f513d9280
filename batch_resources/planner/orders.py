# SPDX-License-Identifier: Apache-2.0
"""Let an operator's orders into the plan: limits on YARN's part, nodes that are left alone, nodes that are released.

Limits and drains only change what is wished for; the rules of each mode decide what is done, so an order can never sell
a unit twice. The one exception is a release, which takes our entry away although the NodeManager keeps its floor.
"""

from __future__ import annotations

from msgspec.structs import replace

from batch_resources.annotations.orders import Orders
from batch_resources.ledger import ClaimAction, Hold, ManagerObservation, NodeObservation, NodePlan
from batch_resources.planner.policy import Mode, Policy
from batch_resources.resources import ZERO_YARN, BatchResources


def limit(part: BatchResources, budget: BatchResources, orders: Orders) -> BatchResources:
    """Apply a node's fix and cap to YARN's part of it.

    Args:
        part: what YARN would get.
        budget: what YARN may have at most; a fix never goes above.
        orders: those in force; where both are given, the cap wins.
    """
    if orders.fix is not None:
        part = orders.fix.of(part).at_most(budget)
    if orders.cap is not None:
        part = part.at_most(orders.cap.of(part))
    return part


def limit_holds(budget: BatchResources | None, orders: Orders) -> tuple[Hold, ...]:
    """Say which limits are in force, and whether a fix asks for more than there is."""
    holds = []
    if orders.cap is not None:
        holds.append(Hold.CAPPED)
    if orders.fix is not None:
        holds.append(Hold.FIXED)
        if budget is not None and not orders.fix.of(budget).fits_in(budget):
            holds.append(Hold.FIX_EXCEEDS_BUDGET)
    return tuple(holds)


def obey(node: NodeObservation, plan: NodePlan, policy: Policy) -> NodePlan:
    """Finish a plan: note what is drained, give back what is to be released, hold back what is not to be written."""
    plan = _with_drain(node, plan, policy)
    if node.orders.pause is not None:
        plan = _held_back(plan, Hold.PAUSED)
    if policy.observes:
        plan = _held_back(plan, Hold.OBSERVING)
    return plan


def _with_drain(node: NodeObservation, plan: NodePlan, policy: Policy) -> NodePlan:
    drains = node.orders.drain is not None or (bool(node.managers) and all(each.drains for each in node.managers))
    if not drains:
        return plan
    is_drained = all(_is_empty(manager, policy) for manager in node.managers)
    overdue = (Hold.DRAIN_OVERDUE,) if node.orders.is_overdue and not is_drained else ()
    plan = replace(plan, holds=(*plan.holds, Hold.DRAINED if is_drained else Hold.DRAINING, *overdue))
    if not node.orders.releases or node.claim_is_foreign or node.others is None:
        return plan
    return _with_release(node, plan, policy, is_drained=is_drained)


def _with_release(node: NodeObservation, plan: NodePlan, policy: Policy, *, is_drained: bool) -> NodePlan:
    if node.claimed is not None:
        if not node.managers or not is_drained:
            return plan
        return replace(plan, claim=None, claim_action=ClaimAction.REMOVE)
    if not node.managers:
        action = ClaimAction.FORGET if node.is_abandoned else ClaimAction.KEEP
        return replace(plan, claim=None, claim_action=action, holds=(*plan.holds, Hold.RELEASED))
    # Given back already. What fits into the floor may run here from now on without being claimed; more may not.
    if all(_is_at_floor(manager, policy) for manager in node.managers):
        return replace(plan, claim=None, claim_action=ClaimAction.KEEP, holds=(*plan.holds, Hold.RELEASED))
    return plan


def _is_empty(manager: ManagerObservation, policy: Policy) -> bool:
    """Tell whether it is proven that a NodeManager runs nothing and can get nothing above its floor."""
    if manager.used != ZERO_YARN or not manager.used_is_proven or not manager.reachable:
        return False
    if not manager.accepts_updates:
        return True  # it does not run, and what it last ran is over
    if policy.mode is Mode.STRICT and (manager.proven is None or not manager.proven.fits_in(policy.floor)):
        return False
    return _is_at_floor(manager, policy)


def _is_at_floor(manager: ManagerObservation, policy: Policy) -> bool:
    if any(not send.resources.fits_in(policy.floor) for send in manager.sends):
        return False
    return manager.capacity is None or manager.capacity.fits_in(policy.floor)


def _held_back(plan: NodePlan, hold: Hold) -> NodePlan:
    """Keep the decisions and let none of them be carried out."""
    managers = tuple(
        replace(
            decision, sends_update=False, kill_ask=None, is_held_back=decision.is_held_back or decision.sends_update
        )
        for decision in plan.managers
    )
    held_back = plan.held_back if plan.claim_action is ClaimAction.KEEP else plan.claim_action
    return replace(
        plan,
        managers=managers,
        claim_action=ClaimAction.KEEP,
        held_back=held_back,
        holds=(*plan.holds, hold),
        wants_fresh_read=False,
    )

# SPDX-License-Identifier: Apache-2.0
"""Plan one node in mode `shared`, Koordinator's documented rule.

`C = O - P - R - K` and `T = max(Y, m)`: free capacity is offered to both schedulers, and a conflict is repaired when it
is seen. Growth goes to the smallest origin of the growth window; a fall is followed at once.
"""

from __future__ import annotations

from batch_resources.annotations.origin import OriginState
from batch_resources.growth import next_expiry, window_minimum
from batch_resources.ledger import Hold, NodeObservation, NodePlan
from batch_resources.planner.capacity import plan_managers
from batch_resources.planner.claim import plan_claim
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH, BatchResources

_HOLD_OF_ORIGIN = {
    OriginState.ABSENT: Hold.ORIGIN_ABSENT,
    OriginState.DEGRADED: Hold.ORIGIN_DEGRADED,
    OriginState.MALFORMED: Hold.ORIGIN_MALFORMED,
}


def plan_node(node: NodeObservation, policy: Policy, *, now: float) -> NodePlan:
    """Decide what both sides may have on one node.

    Args:
        node: what was observed; its growth window already holds the present origin.
        policy: the operator's choices.
        now: monotonic seconds.
    """
    holds = list(_holds_of_inputs(node, policy))
    origin = None if _origin_is_unknown(holds) else node.origin.resources
    lowest = window_minimum(node.window) if origin is not None else None
    reserve = ZERO_BATCH if lowest is None else policy.reserve(lowest)
    budget = _budget(node, lowest, reserve)
    may_grow = Hold.ORIGIN_AGE_UNKNOWN not in holds
    managers = plan_managers(node, budget, policy, may_grow=may_grow, now=now)
    claim, action, claim_holds = plan_claim(node, managers)
    if origin is not None and lowest != origin:
        holds.append(Hold.GROWTH_WINDOW)
    holds.extend(claim_holds)
    return NodePlan(
        node=node.node,
        origin=origin,
        reserve=reserve,
        window_minimum=lowest,
        budget=budget,
        managers=managers,
        claim=claim,
        claim_action=action,
        holds=tuple(holds),
        recheck_at=_recheck_at(node, policy, origin, now),
    )


def _holds_of_inputs(node: NodeObservation, policy: Policy) -> list[Hold]:
    holds = []
    if node.origin.state is not OriginState.KNOWN:
        holds.append(_HOLD_OF_ORIGIN[node.origin.state])
    elif node.origin_age_seconds is None:
        if policy.require_node_metric:
            holds.append(Hold.ORIGIN_AGE_UNKNOWN)
    elif node.origin_age_seconds >= policy.origin_max_age_seconds:
        holds.append(Hold.ORIGIN_STALE)
    if node.others is None:
        holds.append(Hold.THIRD_PARTY_MALFORMED)
    if node.requested is None:
        holds.append(Hold.POD_REQUEST_MALFORMED)
    return holds


def _origin_is_unknown(holds: list[Hold]) -> bool:
    unknown = (Hold.ORIGIN_ABSENT, Hold.ORIGIN_DEGRADED, Hold.ORIGIN_MALFORMED, Hold.ORIGIN_STALE)
    return any(hold in unknown for hold in holds)


def _budget(node: NodeObservation, lowest: BatchResources | None, reserve: BatchResources) -> BatchResources | None:
    if lowest is None or node.others is None or node.requested is None:
        return None
    return (lowest - node.others - reserve - node.requested).floored()


def _recheck_at(node: NodeObservation, policy: Policy, origin: BatchResources | None, now: float) -> float | None:
    moments = []
    expiry = next_expiry(node.window, length_seconds=policy.growth_window_seconds)
    if expiry is not None:
        moments.append(expiry)
    if origin is not None and node.origin_age_seconds is not None:
        moments.append(now + policy.origin_max_age_seconds - node.origin_age_seconds)
    for manager in node.managers:
        if manager.retry_at > now:
            moments.append(manager.retry_at)
    return min(moments, default=None)

# SPDX-License-Identifier: Apache-2.0
"""Plan a node by a fixed split: half of origin is YARN's, the other half Kubernetes', whoever waits.

It is what an operator has without a bridge that moves the boundary, and what the modes are compared with.
"""

from __future__ import annotations

from msgspec.structs import replace

from batch_resources.ledger import ClaimAction, NodeObservation, NodePlan
from batch_resources.planner import shared
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH, BatchResources


def plan_node(node: NodeObservation, policy: Policy, *, now: float) -> NodePlan:
    """Give YARN half of origin, and claim it whether it is used or not."""
    origin = node.origin.resources
    if origin is None:
        return shared.plan_node(node, policy, now=now)
    half = BatchResources(cpu_milli=origin.cpu_milli // 2, memory_bytes=origin.memory_bytes // 2)
    plan = shared.plan_node(replace(node, requested=origin - half), policy, now=now)
    if plan.claim is None:
        return plan
    claim = plan.claim.at_least(_offered(plan, policy))
    action = ClaimAction.KEEP if claim == node.claimed else ClaimAction.WRITE
    return replace(plan, claim=claim, claim_action=action)


def _offered(plan: NodePlan, policy: Policy) -> BatchResources:
    total = ZERO_BATCH
    for manager in plan.managers:
        if manager.target is not None:
            total = total + policy.units.to_batch(manager.target)
    return total

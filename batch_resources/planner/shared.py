# SPDX-License-Identifier: Apache-2.0
"""Plan one node in mode `shared`, Koordinator's documented rule.

`C = O - P - R - K` and `T = max(Y, m)`: free capacity is offered to both schedulers, and a conflict is repaired when it
is seen. Growth goes to the smallest origin of the growth window; a fall is followed at once.
"""

from __future__ import annotations

from batch_resources.ledger import NodeObservation, NodePlan
from batch_resources.planner.capacity import plan_managers
from batch_resources.planner.claim import plan_claim
from batch_resources.planner.inputs import judge_inputs, recheck_at
from batch_resources.planner.orders import limit, limit_holds
from batch_resources.planner.policy import Policy


def plan_node(node: NodeObservation, policy: Policy, *, now: float) -> NodePlan:
    """Decide what both sides may have on one node.

    Args:
        node: what was observed; its growth window already holds the present origin.
        policy: the operator's choices.
        now: monotonic seconds.
    """
    inputs = judge_inputs(node, policy, now=now)
    offered = None if inputs.budget is None else limit(inputs.budget, inputs.budget, node.orders)
    managers = plan_managers(node, offered, policy, may_grow=inputs.may_grow, now=now)
    claim, action, claim_holds = plan_claim(node, managers)
    return NodePlan(
        node=node.node,
        origin=inputs.origin,
        reserve=inputs.reserve,
        window_minimum=inputs.lowest,
        budget=inputs.budget,
        managers=managers,
        claim=claim,
        claim_action=action,
        holds=(*inputs.holds, *limit_holds(inputs.budget, node.orders), *claim_holds),
        recheck_at=recheck_at(node, policy, inputs.origin, now),
    )

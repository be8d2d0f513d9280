# SPDX-License-Identifier: Apache-2.0
"""Say what a node that was just planned could give to pods that wait."""

from __future__ import annotations

from batch_resources.demand.placement import Host
from batch_resources.demand.rooms import Room
from batch_resources.ledger import NodeObservation, NodePlan
from batch_resources.planner.capacity import can_be_told, held_by
from batch_resources.planner.policy import Mode, Policy
from batch_resources.resources import ZERO_BATCH, ZERO_YARN, BatchResources, less


def room_for(node: NodeObservation, plan: NodePlan, policy: Policy, host: Host) -> Room | None:
    """Give the node's room; None where no boundary can be moved for anybody.

    Mode shared offers all that is free to Kubernetes anyway; a node of unknown origin has nothing to give.
    """
    lowest = plan.window_minimum
    if policy.mode is not Mode.STRICT or lowest is None or node.others is None or node.requested is None:
        return None
    if not node.managers:
        return None
    kept = _kept_by_yarn(node, policy).at_least(policy.boundary.yarn_minimum.of(lowest))
    now = (node.permissions.allocatable - node.requested).floored()
    most = less(lowest, node.others, node.requested, kept)
    return Room(
        host=host,
        now=now,
        most=now.at_most(most) if _is_left_alone(node, policy) else most,
        is_contested=node.demand.yarn_waits is not False,
    )


def _is_left_alone(node: NodeObservation, policy: Policy) -> bool:
    """Tell whether the boundary of the node is not ours to move now."""
    orders = node.orders
    return node.claim_is_foreign or policy.observes or orders.pause is not None or orders.fix is not None


def _kept_by_yarn(node: NodeObservation, policy: Policy) -> BatchResources:
    """Sum what no boundary takes from YARN: what runs, the floors, and all of a cluster that cannot be told."""
    kept = node.unread_claim or ZERO_BATCH
    for manager in node.managers:
        held = (manager.used or ZERO_YARN).at_least(policy.floor) if can_be_told(manager) else held_by(manager)
        kept = kept + policy.units.to_batch(held, normalization_ratio=node.normalization_ratio)
    return kept

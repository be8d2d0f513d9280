# SPDX-License-Identifier: Apache-2.0
"""Plan a node by the rule of the Go bridge: YARN gets the whole origin, Koordinator is told what YARN uses.

Only the rule is that bridge's; units, floors, timeouts and writers are this product's, so nothing else is compared.
Source: koordinator-sh/yarn-copilot, pkg/controller/noderesource/resource_sync_controller.go (requests of pods are not
subtracted).
"""

from __future__ import annotations

from msgspec.structs import replace

from batch_resources.ledger import NodeObservation, NodePlan
from batch_resources.planner import shared
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH


def plan_node(node: NodeObservation, policy: Policy, *, now: float) -> NodePlan:
    """Decide as that bridge does."""
    return shared.plan_node(replace(node, requested=ZERO_BATCH, others=ZERO_BATCH), policy, now=now)

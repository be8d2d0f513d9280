# SPDX-License-Identifier: Apache-2.0
"""Plan one node in the mode that its policy names."""

from __future__ import annotations

from typing import Protocol

from batch_resources.ledger import NodeObservation, NodePlan
from batch_resources.planner import shared, strict
from batch_resources.planner.giving_way import give_way
from batch_resources.planner.orders import obey
from batch_resources.planner.policy import Mode, Policy


class Planner(Protocol):
    """Be a rule by which a node is planned."""

    def __call__(self, node: NodeObservation, policy: Policy, *, now: float) -> NodePlan:
        """Decide what both sides may have on one node."""


def plan_node(node: NodeObservation, policy: Policy, *, now: float) -> NodePlan:
    """Decide what both sides may have on one node; see `shared` and `strict` for the rules."""
    plan = strict.plan_node if policy.mode is Mode.STRICT else shared.plan_node
    return obey(node, give_way(node, plan(node, policy, now=now), policy, now=now), policy)

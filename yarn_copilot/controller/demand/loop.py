# SPDX-License-Identifier: Apache-2.0
"""Serve pods that are not scheduled on nodes, and mark the nodes whose share of that changed.

Fed by the pod watch with the pods that wait and by each plan with what its node could give. A node is planned again
only when what it is to serve has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from batch_resources.demand.assignment import Assignment
from batch_resources.demand.rooms import Room
from batch_resources.ledger import NodeObservation, NodePlan
from batch_resources.planner.policy import Boundary, Policy
from batch_resources.planner.rooming import room_for
from batch_resources.resources import BatchResources
from yarn_copilot.controller.dirty import DirtyNodes
from yarn_copilot.controller.ports import Clock
from yarn_copilot.controller.state.nodes import NodeFacts
from yarn_copilot.controller.state.pods import PodRecord
from yarn_copilot.observability.metrics import Metrics

_COLLECT_SECONDS = 0.05
"""Pods come in bursts; so long they are collected."""


class DemandLoop:
    """Own the assignment of waiting pods; belongs to one event loop."""

    def __init__(self, dirty: DirtyNodes, clock: Clock, metrics: Metrics) -> None:
        """Take where nodes are marked."""
        self._dirty = dirty
        self._clock = clock
        self._metrics = metrics
        self._wake = asyncio.Event()
        self.assignment = Assignment()

    def set_boundary(self, boundary: Boundary) -> None:
        """Take the weights of the policy in force."""
        share = self.assignment.share
        share.yarn_weight, share.kubernetes_weight = boundary.yarn_weight, boundary.kubernetes_weight

    def pod_waiting(self, key: str, record: PodRecord | None) -> None:
        """Take a pod that is not scheduled; None for one that is no longer so."""
        if record is None or record.placement is None or record.request is None:
            self.assignment.remove(key)
        else:
            self.assignment.add(key, record.request, record.placement)
        self._wake.set()

    def note_plan(self, facts: NodeFacts, observation: NodeObservation, plan: NodePlan, policy: Policy) -> None:
        """Take what a node could give, as it was just planned."""
        self._set_room(facts.name, room_for(observation, plan, policy, facts.host))

    def forget(self, node: str) -> None:
        """Take note that a node gives nothing: it is gone, or has nothing to do with YARN."""
        self._set_room(node, None)

    def _set_room(self, node: str, room: Room | None) -> None:
        self.assignment.set_room(node, room)
        if self.assignment.has_changes:
            self._wake.set()

    def load(self, node: str) -> BatchResources:
        """Give what the pods need that are to be served on a node."""
        return self.assignment.load(node)

    def pods_on(self, node: str) -> Collection[str]:
        """Name the pods that are to be served on a node."""
        return self.assignment.pods_on(node)

    async def run(self) -> None:
        """Serve for ever."""
        while True:
            await self._wake.wait()
            await self._clock.sleep(_COLLECT_SECONDS)
            self._wake.clear()
            await self.cycle()

    async def cycle(self) -> None:
        """Serve what can be served now, letting other tasks run between."""
        began_at = self._clock.monotonic()
        while self.assignment.has_work:
            self._dirty.mark_all(sorted(self.assignment.settle()))
            await self._clock.sleep(0)
        total = self.assignment.total
        self._metrics.set_pod_demand(
            waiting=len(self.assignment),
            unserved=self.assignment.unserved(),
            total=(total.cpu_milli, total.memory_bytes),
        )
        self._metrics.observe_cycle("demand", self._clock.monotonic() - began_at)

# SPDX-License-Identifier: Apache-2.0
"""Add to the fakes what mode strict looks at: koord-manager's publications and the scheduler's own figures."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from batch_resources.annotations.third_party import read_third_party
from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.quantities import quantity_ceil
from tests.unit.controller.kubernetes import ORIGIN, THIRD
from tests.unit.controller.outside import FakeResourceManager
from tests.unit.controller.world import World, settings
from yarn_copilot.controller.steps import Step
from yarn_copilot.hadoop.model import NodeId, Resource, SchedulerReading

COUNTER = "yarn-copilot/claim-counter"
STRICT: dict[str, Any] = {
    "mode": "strict",
    "strict": {
        "yarn_weight": 1,
        "kubernetes_weight": 0,
        "kubernetes_minimum_cpu_milli": 1000,
        "kubernetes_minimum_memory_bytes": 1 << 30,
    },
}


class FakeScheduler:
    """Say what the scheduler works with.

    Attributes:
        lag: totals that the scheduler has not taken over yet, by node id.
        heartbeats: how often NodeManagers were heard.
        incarnation: which ResourceManager answers.
    """

    def __init__(self, resource_manager: FakeResourceManager) -> None:
        self._resource_manager = resource_manager
        self.lag: dict[NodeId, Resource] = {}
        self.heartbeats = 0
        self.beats = True
        self.incarnation = "rm1"
        self.reads = 0

    async def read_scheduler(self, node_ids: Collection[NodeId]) -> Mapping[NodeId, SchedulerReading]:
        """Read the nodes named."""
        self.reads += 1
        self.heartbeats += int(self.beats)
        readings = {}
        for node_id in node_ids:
            report = self._resource_manager.reports.get(node_id)
            if report is not None:
                total = self.lag.get(node_id, report.capability)
                readings[node_id] = SchedulerReading(total, report.used, str(self.heartbeats), self.incarnation)
        return readings


class StrictWorld(World):
    """Run a controller in mode strict; koord-manager publishes at once unless `publishes` is off."""

    def __init__(self, *, clusters: tuple[str, ...] = ("default",), **capacity: Any) -> None:
        self.schedulers: dict[str, FakeScheduler] = {}
        self.publishes = True
        self.steps: list[Step] = []
        super().__init__(settings(capacity={**STRICT, **capacity}), clusters=clusters)

    def _scheduler(self, cluster: str) -> FakeScheduler:
        return self.schedulers.setdefault(cluster, FakeScheduler(self.rms[cluster]))

    def _note_step(self, step: Step, node: str) -> None:
        self.steps.append(step)

    async def advance(self, seconds: float) -> None:
        """Let time pass in small steps, koord-manager publishing between them."""
        left = seconds
        while left > 0:
            step = min(left, 0.25)
            await super().advance(step)
            self.publish()
            await self.kube.delivered()
            left -= step
        await super().advance(0)

    def publish(self) -> None:
        """Publish what the annotations leave to Kubernetes."""
        if not self.publishes:
            return
        for name, body in list(self.kube.objects["nodes"].items()):
            annotations = body["metadata"]["annotations"]
            if ORIGIN not in annotations:
                continue
            origin = json.loads(annotations[ORIGIN])["resources"]
            held = read_third_party(annotations.get(THIRD)).others("")
            after = {
                BATCH_CPU: str(max(quantity_ceil(origin[BATCH_CPU]) - held.cpu_milli, 0)),
                BATCH_MEMORY: str(max(quantity_ceil(origin[BATCH_MEMORY]) - held.memory_bytes, 0)),
            }
            if body["status"]["allocatable"] != after:
                fresh = json.loads(json.dumps(body))
                fresh["status"]["allocatable"] = after
                self.kube.put("nodes", name, fresh)

    def allocatable_cpu(self, name: str = "node-1") -> int:
        """Give the published batch-cpu."""
        return int(self.kube.objects["nodes"][name]["status"]["allocatable"][BATCH_CPU])

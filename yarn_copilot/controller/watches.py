# SPDX-License-Identifier: Apache-2.0
"""Mirror nodes, pods and NodeMetrics, and say how complete and how fresh that is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from yarn_copilot.controller.ports import Clock
from yarn_copilot.controller.state.metric_ages import MetricAges
from yarn_copilot.controller.state.nodes import NodeFacts, NodeReducer, NodeTable
from yarn_copilot.controller.state.pods import PodLedger, PodRecord, PodReducer
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.kinds import NODE_METRICS, NODES, PODS
from yarn_copilot.kube.model import Node, NodeMetric, Pod
from yarn_copilot.kube.reflector import Reflector
from yarn_copilot.observability.metrics import Metrics


class KubernetesWatches:
    """Run the three reflectors."""

    def __init__(
        self,
        client: KubeClient,
        *,
        nodes: tuple[NodeReducer, NodeTable],
        pods: tuple[PodReducer, PodLedger],
        metrics: tuple[Callable[[NodeMetric], str | None], MetricAges],
        clock: Clock,
    ) -> None:
        """Take, for each kind, what reduces an object and where the result goes."""
        self._clock = clock
        self._ages = metrics[1]
        self.nodes: Reflector[Node, NodeFacts] = Reflector(client, NODES, reduce=nodes[0], sink=nodes[1], clock=clock)
        self.pods: Reflector[Pod, PodRecord] = Reflector(client, PODS, reduce=pods[0], sink=pods[1], clock=clock)
        self.metrics: Reflector[NodeMetric, str | None] = Reflector(
            client, NODE_METRICS, reduce=metrics[0], sink=metrics[1], clock=clock
        )
        self._lists_told = {"nodes": 0, "pods": 0, "nodemetrics": 0}
        self._malformed_told = dict(self._lists_told)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start mirroring as tasks of the group."""
        group.create_task(self.nodes.run(), name="watch nodes")
        group.create_task(self.pods.run(), name="watch pods")
        group.create_task(self.metrics.run(), name="watch nodemetrics")

    def is_complete(self) -> bool:
        """Tell whether everything that a plan needs was listed once."""
        return not self.missing()

    def missing(self) -> list[str]:
        """Say what was not listed yet."""
        missing = []
        for name, reflector in (("nodes", self.nodes), ("pods", self.pods)):
            if not reflector.has_synced:
                missing.append(f"{name} have not been listed yet: {reflector.last_error or 'no answer so far'}")
        if not self.metrics.has_synced and not self._ages.unavailable_reason:
            missing.append(f"nodemetrics have not been listed yet: {self.metrics.last_error or 'no answer so far'}")
        return missing

    async def wait_complete(self) -> None:
        """Wait for the first complete view."""
        while not self.is_complete():
            await self._clock.sleep(0.05)

    def contact(self) -> float | None:
        """Give the older of the last signs of life of the node and the pod watch."""
        contacts = (self.nodes.last_contact, self.pods.last_contact)
        return None if contacts[0] is None or contacts[1] is None else min(contacts[0], contacts[1])

    def tell_metrics(self, metrics: Metrics) -> None:
        """Bring the watch metrics up to date."""
        now = self._clock.monotonic()
        for name, reflector in (("nodes", self.nodes), ("pods", self.pods), ("nodemetrics", self.metrics)):
            contact = reflector.last_contact
            metrics.set_watch(name, silence_seconds=None if contact is None else now - contact)
            while self._lists_told[name] < reflector.stats.lists:
                self._lists_told[name] += 1
                metrics.count_relist(name)
            while self._malformed_told[name] < reflector.stats.malformed:
                self._malformed_told[name] += 1
                metrics.count_malformed(name)

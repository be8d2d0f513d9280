# SPDX-License-Identifier: Apache-2.0
"""Measure who waits for capacity: applications by cluster and partition, pods over all nodes."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge

from batch_resources.units import BYTES_PER_MIB
from yarn_copilot.observability.table import Amount


class DemandMetrics:
    """Hold the gauges of demand on both sides."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Create them."""
        self._partitions: dict[str, frozenset[str]] = {}
        self.yarn_vcores = Gauge(
            "yarn_copilot_demand_yarn_pending_vcores",
            "vcores that a cluster's applications wait for; the default partition is the empty text",
            ["cluster", "partition"],
            registry=registry,
        )
        self.yarn_memory = Gauge(
            "yarn_copilot_demand_yarn_pending_memory_bytes",
            "Memory that a cluster's applications wait for; the default partition is the empty text",
            ["cluster", "partition"],
            registry=registry,
        )
        self.pods_waiting = Gauge(
            "yarn_copilot_demand_pods_waiting",
            "Pods that ask for batch resources and are not scheduled",
            registry=registry,
        )
        self.pods_unserved = Gauge(
            "yarn_copilot_demand_pods_unserved",
            "Waiting pods for which no boundary is moved: they fit nowhere, or pods have their share already",
            registry=registry,
        )
        self.pods_cpu = Gauge(
            "yarn_copilot_demand_pods_pending_cpu_cores", "batch-cpu that the waiting pods ask for", registry=registry
        )
        self.pods_memory = Gauge(
            "yarn_copilot_demand_pods_pending_memory_bytes",
            "batch-memory that the waiting pods ask for",
            registry=registry,
        )

    def set_yarn(self, cluster: str, pending: Mapping[str, tuple[int, int]]) -> None:
        """Say what a cluster's partitions wait for, as (MiB, vcores)."""
        for partition in self._partitions.get(cluster, frozenset()) - pending.keys():
            self.yarn_vcores.remove(cluster, partition)
            self.yarn_memory.remove(cluster, partition)
        for partition, (memory_mib, vcores) in pending.items():
            self.yarn_vcores.labels(cluster, partition).set(vcores)
            self.yarn_memory.labels(cluster, partition).set(memory_mib * BYTES_PER_MIB)
        self._partitions[cluster] = frozenset(pending)

    def set_pods(self, *, waiting: int, unserved: int, total: Amount) -> None:
        """Say how many pods wait, for how many nothing is moved, and what all of them ask for together."""
        self.pods_waiting.set(waiting)
        self.pods_unserved.set(unserved)
        self.pods_cpu.set(total[0] / 1000)
        self.pods_memory.set(total[1])

# SPDX-License-Identifier: Apache-2.0
"""Add up what high-priority work takes of a node.

Pods come from the API server's list, usage from koordlet's last report; the two are from different moments, so a
pod can be without usage (charged with its request) and usage without a pod (charged unless known to be batch).
Source: Koordinator 1.8, plugins/batchresource/plugin.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from batch_resources.koordinator.priority import PriorityClass, QosClass
from batch_resources.resources import ZERO_BATCH, BatchResources

_COUNTED_PHASES = frozenset({"Running", "Pending"})


class PodDemand(Struct, frozen=True, kw_only=True):
    """Hold a pod of the node as listed.

    Attributes:
        key: `namespace/name`.
        phase: `status.phase`; only Running and Pending count, whatever the deletion timestamp says.
        request: Effective request of plain cpu (milli-cores) and memory (bytes), not of batch resources.
        numa_nodes: NUMA nodes the pod was given; empty means all.
    """

    key: str
    phase: str
    priority: PriorityClass
    qos: QosClass
    request: BatchResources
    numa_nodes: tuple[int, ...] = ()


class PodUsage(Struct, frozen=True, kw_only=True):
    """Hold a pod's average use as koordlet reported it."""

    key: str
    priority: PriorityClass
    used: BatchResources


class HostApplicationUsage(Struct, frozen=True, kw_only=True):
    """Hold the use of an application outside of pods; YARN's is reported with priority koord-batch."""

    name: str
    priority: PriorityClass
    used: BatchResources


class NodeLoad(Struct, frozen=True, kw_only=True):
    """Hold one koordlet report."""

    system_used: BatchResources = ZERO_BATCH
    pods: tuple[PodUsage, ...] = ()
    host_applications: tuple[HostApplicationUsage, ...] = ()

    def system_with_host_applications(self) -> BatchResources:
        """Add prod and mid host applications to system use; batch, free and unnamed ones are not charged."""
        total = self.system_used
        for application in self.host_applications:
            if application.priority in (PriorityClass.PROD, PriorityClass.MID):
                total += application.used
        return total


class HighPriorityDemand(Struct, frozen=True, kw_only=True):
    """Hold three sums over high-priority pods: requested, used, and the larger of both per pod."""

    requested: BatchResources = ZERO_BATCH
    used: BatchResources = ZERO_BATCH
    larger: BatchResources = ZERO_BATCH

    def __add__(self, other: HighPriorityDemand) -> HighPriorityDemand:
        return HighPriorityDemand(
            requested=self.requested + other.requested,
            used=self.used + other.used,
            larger=self.larger + other.larger,
        )


class Charge(Struct, frozen=True, kw_only=True):
    """Hold what one pod adds to the sums; `pod` is None for usage without a listed pod."""

    pod: PodDemand | None
    demand: HighPriorityDemand


def charges(pods: Iterable[PodDemand], load: NodeLoad, *, unmeasured_in_larger: bool) -> Iterator[Charge]:
    """Give the charge of each high-priority pod, then of each piece of usage that no listed pod explains.

    Args:
        pods: All pods bound to the node.
        load: The node's last report.
        unmeasured_in_larger: Whether a pod without usage counts in `larger`. koord-manager leaves it out for the
            whole node and counts it for NUMA zones; both are kept as they are, to publish the same numbers.
    """
    usage = {report.key: report for report in load.pods}
    for pod in pods:
        if pod.phase not in _COUNTED_PHASES:
            continue
        report = usage.pop(pod.key, None)
        if pod.priority.is_high:
            yield Charge(pod=pod, demand=_pod_demand(pod, report, unmeasured_in_larger))
    for report in usage.values():
        if report.priority.is_high:
            yield Charge(pod=None, demand=HighPriorityDemand(used=report.used, larger=report.used))


def node_demand(pods: Iterable[PodDemand], load: NodeLoad) -> HighPriorityDemand:
    """Add up the whole node's high-priority demand."""
    total = HighPriorityDemand()
    for charge in charges(pods, load, unmeasured_in_larger=False):
        total += charge.demand
    return total


def _pod_demand(pod: PodDemand, report: PodUsage | None, unmeasured_in_larger: bool) -> HighPriorityDemand:
    if report is None:
        return HighPriorityDemand(
            requested=pod.request,
            used=pod.request,
            larger=pod.request if unmeasured_in_larger else ZERO_BATCH,
        )
    used = report.used
    if pod.qos is QosClass.LSE:
        # An LSE pod owns its cores whether it uses them or not.
        used = BatchResources(cpu_milli=pod.request.cpu_milli, memory_bytes=used.memory_bytes)
    return HighPriorityDemand(requested=pod.request, used=used, larger=pod.request.at_least(report.used))

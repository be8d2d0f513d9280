# SPDX-License-Identifier: Apache-2.0
"""Compute the batch resources of a node, or of its NUMA zones.

Per resource, with `margin` the part of the capacity that is never reclaimed:

    usage            capacity - margin - max(system, reserved) - high-priority use
    request          capacity - margin - reserved              - high-priority requests
    maxUsageRequest  capacity - margin - max(system, reserved) - larger of both per pod

never below zero and, where configured, at most a percentage of the capacity. Third parties play no part here: see
`prepare`. Source: Koordinator 1.8, plugins/batchresource and plugins/util.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from batch_resources.koordinator.demand import HighPriorityDemand, NodeLoad, PodDemand, charges, node_demand
from batch_resources.koordinator.reservation import kubelet_reservation
from batch_resources.koordinator.rounding import divide_ceil, percent_of
from batch_resources.koordinator.strategy import CalculatePolicy, Strategy
from batch_resources.resources import ZERO_BATCH, BatchResources


class NodeShape(Struct, frozen=True, kw_only=True):
    """Hold the size of a node and what it keeps for itself.

    Attributes:
        capacity: `status.capacity` of cpu and memory.
        allocatable: `status.allocatable` of cpu and memory.
        annotated_reservation: What the reservation annotation asks for.
    """

    capacity: BatchResources
    allocatable: BatchResources
    annotated_reservation: BatchResources = ZERO_BATCH

    @property
    def reserved(self) -> BatchResources:
        """Give the larger of the two reservations, per resource."""
        return kubelet_reservation(self.capacity, self.allocatable).at_least(self.annotated_reservation)


class _Terms(Struct, frozen=True, kw_only=True):
    """Hold the operands of the formula for a node or a zone."""

    size: BatchResources
    system: BatchResources
    reserved: BatchResources
    demand: HighPriorityDemand


def calculate_batch(
    node: NodeShape, strategy: Strategy, *, pods: Sequence[PodDemand], load: NodeLoad
) -> BatchResources:
    """Compute a node's batch resources from its size, its pods and koordlet's last report."""
    return _apply(
        _Terms(
            size=node.capacity,
            system=load.system_with_host_applications(),
            reserved=node.reserved,
            demand=node_demand(pods, load),
        ),
        strategy,
    )


def calculate_batch_zones(
    node: NodeShape,
    strategy: Strategy,
    *,
    zones: Mapping[str, BatchResources],
    pods: Sequence[PodDemand],
    load: NodeLoad,
) -> dict[str, BatchResources]:
    """Compute the batch resources of each NUMA zone.

    System use, reservations and usage without a pod are shared evenly, each part rounded up; a pod is shared
    between the zones it was given, or all.

    Args:
        node: The node, for its reservations.
        strategy: The node's strategy.
        zones: Allocatable of each zone by name, in the order of their NUMA ids.
        pods: All pods bound to the node.
        load: The node's last report.

    Returns:
        Batch resources by zone name.
    """
    count = len(zones)
    demands = _zone_demands(count, pods, load)
    return {
        name: _apply(
            _Terms(
                size=size,
                system=divide_ceil(load.system_with_host_applications(), count),
                reserved=divide_ceil(node.reserved, count),
                demand=demands[index],
            ),
            strategy,
        )
        for index, (name, size) in enumerate(zones.items())
    }


def split_over_zones(amount: BatchResources, numa_nodes: Sequence[int], zone_count: int) -> list[BatchResources]:
    """Share an amount between the given NUMA nodes, each part rounded up; ids that do not exist are ignored."""
    chosen = {index for index in numa_nodes if 0 <= index < zone_count} or set(range(zone_count))
    part = divide_ceil(amount, len(chosen))
    return [part if index in chosen else ZERO_BATCH for index in range(zone_count)]


def _zone_demands(count: int, pods: Sequence[PodDemand], load: NodeLoad) -> list[HighPriorityDemand]:
    totals = [HighPriorityDemand() for _ in range(count)]
    for charge in charges(pods, load, unmeasured_in_larger=True):
        chosen = charge.pod.numa_nodes if charge.pod is not None else ()
        requested = split_over_zones(charge.demand.requested, chosen, count)
        used = split_over_zones(charge.demand.used, chosen, count)
        larger = split_over_zones(charge.demand.larger, chosen, count)
        for index in range(count):
            totals[index] += HighPriorityDemand(requested=requested[index], used=used[index], larger=larger[index])
    return totals


def _apply(terms: _Terms, strategy: Strategy) -> BatchResources:
    margin = BatchResources(
        cpu_milli=percent_of(terms.size.cpu_milli, 100 - strategy.cpu_reclaim_percent),
        memory_bytes=percent_of(terms.size.memory_bytes, 100 - strategy.memory_reclaim_percent),
    )
    usable = terms.size - margin
    busy = terms.system.at_least(terms.reserved)
    by_policy = {
        CalculatePolicy.USAGE: (usable - busy - terms.demand.used).floored(),
        CalculatePolicy.REQUEST: (usable - terms.reserved - terms.demand.requested).floored(),
        CalculatePolicy.MAX_USAGE_REQUEST: (usable - busy - terms.demand.larger).floored(),
    }
    cpu_policy = strategy.cpu_policy
    if cpu_policy is CalculatePolicy.REQUEST:
        cpu_policy = CalculatePolicy.USAGE
    return BatchResources(
        cpu_milli=_capped(by_policy[cpu_policy].cpu_milli, terms.size.cpu_milli, strategy.batch_cpu_threshold_percent),
        memory_bytes=_capped(
            by_policy[strategy.memory_policy].memory_bytes,
            terms.size.memory_bytes,
            strategy.batch_memory_threshold_percent,
        ),
    )


def _capped(amount: int, size: int, threshold_percent: int | None) -> int:
    return amount if threshold_percent is None else min(amount, percent_of(size, threshold_percent))

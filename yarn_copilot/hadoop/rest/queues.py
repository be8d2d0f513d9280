# SPDX-License-Identifier: Apache-2.0
"""Read queues out of `/ws/v1/cluster/scheduler`, of the CapacityScheduler and of the FairScheduler.

Percentages become fractions, as RPC has them. Pending resources of labelled partitions are here and nowhere else: RPC's
`getQueueInfo` does not carry them. Source: CapacitySchedulerInfo, CapacitySchedulerQueueInfo, PartitionResourcesInfo,
FairSchedulerQueueInfo of Hadoop 3.3.6 and 3.5.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.model import QueueInfo, Resource
from yarn_copilot.hadoop.rest.decoding import entries, field, resource, whole

DEFAULT_PARTITION: Final = ""
_DEPTH_MAX: Final = 64
_NOTHING: Final = Resource(memory_mib=0, vcores=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionUse:
    """Hold what one partition of the cluster is asked for and gives, summed over the leaf queues."""

    used: Resource
    reserved: Resource
    pending: Resource


def queue_tree(document: object) -> QueueInfo:
    """Read the whole tree, from `root` down.

    Raises:
        ProtocolViolationError: another shape, or a scheduler without queues (FifoScheduler).
    """
    info = field(document, "scheduler", "schedulerInfo")
    match field(info, "type"):
        case "capacityScheduler":
            return _capacity_queue(info, "root", depth=0)
        case "fairScheduler":
            return _fair_queue(field(info, "rootQueue"), depth=0)
        case kind:
            raise ProtocolViolationError(f"the scheduler {str(kind)[:64]!r} has no queues that can be read over REST")


def partition_use(document: object) -> Mapping[str, PartitionUse]:
    """Sum use and pending resources by partition; the default partition is the empty text.

    A partition for which no leaf queue shows anything is missing: that is "none", as the scheduler lists every
    partition in which a queue holds or waits for something.

    Raises:
        ProtocolViolationError: another shape, or a scheduler that knows no partitions.
    """
    info = field(document, "scheduler", "schedulerInfo")
    if field(info, "type") != "capacityScheduler":
        raise ProtocolViolationError("only the CapacityScheduler shows resources by partition")
    sums: dict[str, PartitionUse] = {}
    for leaf in _leaves(info, depth=0):
        for use in entries(leaf, "resources", "resourceUsagesByPartition"):
            name = str(field(use, "partitionName", default=DEFAULT_PARTITION))
            known = sums.get(name, PartitionUse(used=_NOTHING, reserved=_NOTHING, pending=_NOTHING))
            sums[name] = PartitionUse(
                used=_sum((known.used, _resource(use, "used"))),
                reserved=_sum((known.reserved, _resource(use, "reserved"))),
                pending=_sum((known.pending, _resource(use, "pending"))),
            )
    return sums


def find_queue(tree: QueueInfo, name: str) -> QueueInfo | None:
    """Find a queue by its path, or by the short name of a leaf."""
    if name in (tree.path, tree.name):
        return tree
    return next((found for child in tree.children if (found := find_queue(child, name)) is not None), None)


def _leaves(queue: object, *, depth: int) -> Iterator[object]:
    _check_depth(depth)
    children = entries(queue, "queues", "queue")
    if not children:
        yield queue
    for child in children:
        yield from _leaves(child, depth=depth + 1)


def _capacity_queue(entry: object, path: str, *, depth: int) -> QueueInfo:
    _check_depth(depth)
    children = tuple(
        _capacity_queue(child, f"{path}.{field(child, 'queueName')}", depth=depth + 1)
        for child in entries(entry, "queues", "queue")
    )
    uses = _leaf_use(entry)
    return QueueInfo(
        name=path.rpartition(".")[2],
        path=path,
        state=str(field(entry, "state", default="RUNNING")),
        capacity=_fraction(entry, "capacity"),
        maximum_capacity=_fraction(entry, "maxCapacity"),
        current_capacity=_fraction(entry, "usedCapacity"),
        allocated=_sum(child.allocated for child in children) if children else uses.used,
        pending=_sum(child.pending for child in children) if children else uses.pending,
        reserved=_sum(child.reserved for child in children) if children else uses.reserved,
        allocated_containers=_count(entry, "allocatedContainers", (child.allocated_containers for child in children)),
        pending_containers=_count(entry, "pendingContainers", (child.pending_containers for child in children)),
        children=children,
        applications_running=_count(entry, "numActiveApplications", (child.applications_running for child in children)),
        applications_pending=_count(
            entry, "numPendingApplications", (child.applications_pending for child in children)
        ),
    )


def _fair_queue(entry: object, *, depth: int) -> QueueInfo:
    _check_depth(depth)
    children = tuple(_fair_queue(child, depth=depth + 1) for child in entries(entry, "childQueues", "queue"))
    path = str(field(entry, "queueName"))
    cluster = _resource(entry, "clusterResources")
    used, demand = _resource(entry, "usedResources"), _resource(entry, "demandResources")
    return QueueInfo(
        name=path.rpartition(".")[2],
        path=path,
        state="RUNNING",
        capacity=_share(_resource(entry, "steadyFairResources"), cluster),
        maximum_capacity=_share(_resource(entry, "maxResources"), cluster),
        current_capacity=_share(used, cluster),
        allocated=used,
        # Demand is what is used and what is waited for together.
        pending=Resource(
            memory_mib=max(0, demand.memory_mib - used.memory_mib), vcores=max(0, demand.vcores - used.vcores)
        ),
        reserved=_resource(entry, "reservedResources"),
        allocated_containers=whole(entry, "allocatedContainers", default=0),
        pending_containers=whole(entry, "pendingContainers", default=0),
        children=children,
        applications_running=_count(entry, "numActiveApps", (child.applications_running for child in children)),
        applications_pending=_count(entry, "numPendingApps", (child.applications_pending for child in children)),
    )


def _leaf_use(entry: object) -> PartitionUse:
    """Sum a leaf queue's figures over its partitions."""
    uses = entries(entry, "resources", "resourceUsagesByPartition")
    return PartitionUse(
        used=_sum(_resource(use, "used") for use in uses) if uses else _resource(entry, "resourcesUsed"),
        reserved=_sum(_resource(use, "reserved") for use in uses),
        pending=_sum(_resource(use, "pending") for use in uses),
    )


def _sum(parts: Iterable[Resource]) -> Resource:
    memory_mib = vcores = 0
    for part in parts:
        memory_mib += part.memory_mib
        vcores += part.vcores
    return Resource(memory_mib=memory_mib, vcores=vcores)


def _resource(entry: object, name: str) -> Resource:
    found = field(entry, name, default=None)
    if found is None:
        return _NOTHING
    vector = resource(found)
    return Resource(memory_mib=vector.memory_mib, vcores=vector.vcores)


def _count(entry: object, name: str, of_children: Iterable[int]) -> int:
    return whole(entry, name, default=sum(of_children))


def _fraction(entry: object, name: str) -> float:
    try:
        return float(field(entry, name, default=0.0)) / 100
    except (TypeError, ValueError) as error:
        raise ProtocolViolationError(f"{name} of a queue is no number") from error


def _share(part: Resource, whole_cluster: Resource) -> float:
    """Give the memory share, between 0 and 1; an unlimited maximum is everything."""
    if whole_cluster.memory_mib <= 0:
        return 0.0
    return min(1.0, part.memory_mib / whole_cluster.memory_mib)


def _check_depth(depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise ProtocolViolationError(f"queues are nested more than {_DEPTH_MAX} deep")

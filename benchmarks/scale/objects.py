# SPDX-License-Identifier: Apache-2.0
"""Describe the objects of the benchmark and compute, independently of the product, what each node must end up with.

Node N carries NodeManager N of the fleet, matched by the pod's IP. Of the other pods a third request batch resources,
as many on each node; the rest are ordinary ones, which matter only by their number.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from lab.fleet.fleet import FIRST_ADDRESS
from lab.kubernetes import bodies
from lab.kubernetes.bodies import BatchPod, NodeManagerPod, NodeSpec
from lab.kubernetes.objects import NODE_METRICS

ORIGIN_CPU_MILLI: Final = 60_646
ORIGIN_MEMORY_BYTES: Final = 245_976_973_438
MACHINE_CPU_MILLI: Final = 64_000
MACHINE_MEMORY_BYTES: Final = 256 << 30
BATCH_POD_CPU_MILLI: Final = 1_500
BATCH_POD_MEMORY_BYTES: Final = 3 << 30
NODE_MANAGER_CPU_MILLI: Final = 500
NODE_MANAGER_MEMORY_BYTES: Final = 1 << 30
FLEET_PORT: Final = 8041
_PODS: Final = "/api/v1/namespaces/default/pods"
_MIB: Final = 1 << 20
_BATCH_EVERY: Final = 3


@dataclass(frozen=True, slots=True)
class Creation:
    """Hold one request that makes an object, or (`patch`) completes it."""

    path: str
    body: Mapping[str, Any]
    patch: bool = False


def node_name(number: int) -> str:
    """Name a node."""
    return f"node-{number:05d}"


def node_names(nodes: int) -> list[str]:
    """Name all nodes."""
    return [node_name(number) for number in range(nodes)]


def node_address(number: int) -> str:
    """Give the address of a node's NodeManager."""
    return str(ipaddress.IPv4Address(FIRST_ADDRESS) + number)


def node_id(number: int) -> str:
    """Give the node id under which the ResourceManager knows the NodeManager of a node."""
    return f"{node_address(number)}:{FLEET_PORT}"


def origin_of(number: int, step: int) -> tuple[int, int]:
    """Give a node's origin after so many changes: milli-cores and bytes.

    Every step differs from all others, odd ones are lower, and nodes differ a little.
    """
    cpu_milli = ORIGIN_CPU_MILLI + 100 * (number % 7)
    memory_bytes = ORIGIN_MEMORY_BYTES + (number % 11) * (_MIB + 7)
    lowered = 10_000 * (step % 2) + 1_000 * step
    return cpu_milli - lowered, memory_bytes - lowered * 2 * _MIB


def origins(nodes: int, step: int) -> dict[str, str]:
    """Render the origin annotation of every node after so many changes."""
    return {node_name(number): bodies.origin(*origin_of(number, step)) for number in range(nodes)}


def targets(nodes: int, pods: int, step: int) -> dict[str, list[int]]:
    """Give what the ResourceManager must show in the end, by node id: [MiB, vcores].

    The documented rule with 1,000 milli-cores per vcore: origin less what pods on the node request, rounded down.
    """
    return {node_id(number): _target(number, nodes, pods, step) for number in range(nodes)}


def requested_on(number: int, nodes: int, pods: int) -> tuple[int, int]:
    """Give what the pods of a node request in all: milli-cores and bytes of batch resources."""
    count = batch_pods_on(number, nodes, pods)
    return (
        count * BATCH_POD_CPU_MILLI + NODE_MANAGER_CPU_MILLI,
        count * BATCH_POD_MEMORY_BYTES + NODE_MANAGER_MEMORY_BYTES,
    )


def batch_pods_on(number: int, nodes: int, pods: int) -> int:
    """Count the batch pods of a node."""
    batch = (pods - nodes) // _BATCH_EVERY
    return batch // nodes + (number < batch % nodes)


def creation_steps(*, nodes: int, pods: int) -> list[list[Creation]]:
    """List the requests that make everything; a step needs those before it."""
    numbers = range(nodes)
    others = pods - nodes
    batch = others // _BATCH_EVERY
    return [
        [Creation("/api/v1/nodes", _node(number)) for number in numbers],
        [Creation(_PODS, bodies.node_manager_pod(_manager(number))) for number in numbers],
        [
            Creation(
                f"{_PODS}/{_manager(number).name}/status",
                {"status": bodies.node_manager_pod_status(_manager(number))},
                patch=True,
            )
            for number in numbers
        ],
        [Creation(_PODS, bodies.batch_pod(_batch_pod(number, nodes))) for number in range(batch)],
        [Creation(_PODS, _ordinary_pod(number, nodes)) for number in range(others - batch)],
        list(_metrics(nodes)),
        [
            Creation(f"{NODE_METRICS}/{node_name(number)}/status", {"status": metric_status()}, patch=True)
            for number in numbers
        ],
    ]


def metric_status() -> dict[str, Any]:
    """Render the status of a NodeMetric of this moment, of about the size of a real one."""
    usage = {"resources": {"cpu": "12345m", "memory": "48Gi"}}
    return {
        "updateTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "nodeMetric": {
            "nodeUsage": usage,
            "systemUsage": usage,
            "aggregatedNodeUsages": [{"duration": "5m0s", "usage": dict.fromkeys(("avg", "p95", "p99"), usage)}],
        },
        "podsMetric": [
            {"name": f"pod-{number}", "namespace": "default", "podUsage": usage, "priority": "koord-prod"}
            for number in range(10)
        ],
    }


def _target(number: int, nodes: int, pods: int, step: int) -> list[int]:
    cpu_milli, memory_bytes = origin_of(number, step)
    requested_milli, requested_bytes = requested_on(number, nodes, pods)
    return [(memory_bytes - requested_bytes) // _MIB, (cpu_milli - requested_milli) // 1000]


def _node(number: int) -> dict[str, Any]:
    cpu_milli, memory_bytes = origin_of(number, 0)
    address = str(ipaddress.IPv4Address("10.128.0.1") + number)
    spec = NodeSpec(
        name=node_name(number),
        cpu=f"{MACHINE_CPU_MILLI}m",
        memory=str(MACHINE_MEMORY_BYTES),
        batch_cpu_milli=cpu_milli,
        batch_memory_bytes=memory_bytes,
        addresses={"InternalIP": address, "Hostname": node_name(number)},
    )
    return {**bodies.node(spec), "status": bodies.node_status(spec)}


def _manager(number: int) -> NodeManagerPod:
    return NodeManagerPod(
        name=f"node-manager-{number:05d}",
        node_name=node_name(number),
        pod_ip=node_address(number),
        cpu_milli=NODE_MANAGER_CPU_MILLI,
        memory_bytes=NODE_MANAGER_MEMORY_BYTES,
    )


def _batch_pod(number: int, nodes: int) -> BatchPod:
    return BatchPod(
        name=f"batch-{number:06d}",
        node_name=node_name(number % nodes),
        cpu_milli=BATCH_POD_CPU_MILLI,
        memory_bytes=BATCH_POD_MEMORY_BYTES,
    )


def _ordinary_pod(number: int, nodes: int) -> dict[str, Any]:
    requests = {"cpu": "500m", "memory": "512Mi"}
    container = {"name": "server", "image": bodies.IMAGE, "resources": {"requests": requests}}
    return {
        "metadata": {"name": f"server-{number:06d}", "labels": {"app": f"app-{number % 100}"}},
        "spec": {
            "nodeName": node_name(number % nodes),
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


def _metrics(nodes: int) -> Iterator[Creation]:
    for number in range(nodes):
        yield Creation(
            NODE_METRICS,
            {
                "apiVersion": "slo.koordinator.sh/v1alpha1",
                "kind": "NodeMetric",
                "metadata": {"name": node_name(number)},
                "spec": {},
            },
        )

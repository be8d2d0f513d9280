# SPDX-License-Identifier: Apache-2.0
"""Read the recorded numbers of `tests/data/koordinator-vectors.json` into the domain's values."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from batch_resources.koordinator.demand import HostApplicationUsage, NodeLoad, PodDemand, PodUsage
from batch_resources.koordinator.formula import NodeShape
from batch_resources.koordinator.priority import (
    QOS_CLASS_LABEL,
    KubernetesQos,
    priority_class,
    priority_class_or_none,
    qos_class,
)
from batch_resources.koordinator.reservation import reserved_cpu_count
from batch_resources.koordinator.strategy import CalculatePolicy, Strategy
from batch_resources.resources import ZERO_BATCH, BatchResources

_PATH = Path(__file__).parents[3] / "data" / "koordinator-vectors.json"


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_PATH.read_text())
    return document


def group(name: str, *, having: str = "id") -> list[ParameterSet]:
    """Give one group of vectors (those with a certain field) as test parameters, each named by its id."""
    return [pytest.param(vector, id=vector["id"]) for vector in _document()[name] if having in vector]


def amount(cpu_milli: int, memory_bytes: int) -> BatchResources:
    """Shorten the keyword form."""
    return BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)


def strategy(values: dict[str, Any]) -> Strategy:
    """Read the strategy of a vector."""
    return Strategy(
        cpu_reclaim_percent=values["cpu_reclaim_percent"],
        memory_reclaim_percent=values["mem_reclaim_percent"],
        cpu_policy=CalculatePolicy(values["cpu_policy"] or "usage"),
        memory_policy=CalculatePolicy(values["mem_policy"] or "usage"),
        batch_cpu_threshold_percent=values["batch_cpu_threshold_percent"],
        batch_memory_threshold_percent=values["batch_mem_threshold_percent"],
    )


def node_shape(vector: dict[str, Any]) -> NodeShape:
    """Read the node of a vector."""
    node, reservation = vector["node"], vector["node_reservation"] or {}
    cpu_milli = reservation.get("milli_cpu") or 0
    if reservation.get("reserved_cpus"):
        cpu_milli = reserved_cpu_count(reservation["reserved_cpus"]) * 1000
    return NodeShape(
        capacity=amount(node["capacity_milli_cpu"], node["capacity_mem_bytes"]),
        allocatable=amount(node["allocatable_milli_cpu"], node["allocatable_mem_bytes"]),
        annotated_reservation=amount(cpu_milli, reservation.get("mem_bytes") or 0),
    )


def pods(vector: dict[str, Any]) -> tuple[PodDemand, ...]:
    """Read the listed pods of a vector."""
    return tuple(_pod(pod) for pod in vector["pods"])


def _pod(pod: dict[str, Any]) -> PodDemand:
    labels = {QOS_CLASS_LABEL: pod["qos_label"]} if pod["qos_label"] else {}
    qos = qos_class(labels, KubernetesQos.BURSTABLE if pod["has_requests"] else KubernetesQos.BEST_EFFORT)
    return PodDemand(
        key=pod["name"],
        phase=pod["phase"],
        priority=priority_class(labels, pod["priority_value"], qos),
        qos=qos,
        request=amount(pod["req_milli_cpu"], pod["req_mem_bytes"]),
        numa_nodes=tuple(pod["numa_nodes"] or ()),
    )


def load(vector: dict[str, Any]) -> NodeLoad:
    """Read koordlet's report of a vector."""
    metrics = vector["metrics"]
    return NodeLoad(
        system_used=amount(metrics["system_used_milli_cpu"], metrics["system_used_mem_bytes"]),
        pods=tuple(
            PodUsage(
                key=pod["name"],
                priority=priority_class_or_none(pod["priority_class"]),
                used=amount(pod["used_milli_cpu"], pod["used_mem_bytes"]),
            )
            for pod in metrics["pods"]
        ),
        host_applications=tuple(
            HostApplicationUsage(
                name=application["name"],
                priority=priority_class_or_none(application["priority_class"]),
                used=amount(application["used_milli_cpu"], application["used_mem_bytes"]),
            )
            for application in metrics["host_apps"]
        ),
    )


def zones(vector: dict[str, Any]) -> dict[str, BatchResources]:
    """Read the NUMA zones of a vector, none for most."""
    return {
        zone["name"]: amount(zone["allocatable_milli_cpu"], zone["allocatable_mem_bytes"])
        for zone in vector.get("numa_zones") or []
    }


def optional_amount(cpu_milli: int | None, memory_bytes: int | None) -> BatchResources | None:
    """Give no amount where a vector has nulls."""
    if cpu_milli is None or memory_bytes is None:
        return None
    return amount(cpu_milli, memory_bytes)


__all__ = [
    "ZERO_BATCH",
    "amount",
    "group",
    "load",
    "node_shape",
    "optional_amount",
    "pods",
    "strategy",
    "zones",
]

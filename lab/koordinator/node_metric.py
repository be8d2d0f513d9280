# SPDX-License-Identifier: Apache-2.0
"""Write and read NodeMetric objects (slo.koordinator.sh/v1alpha1, cluster scoped, named like their node).

Shape, as koordlet writes it (quantities are texts):

    status.updateTime                                      RFC 3339, whole seconds
    status.nodeMetric.{nodeUsage,systemUsage}.resources    {cpu, memory}
    status.podsMetric[]              {namespace, name, podUsage.resources, priority, qos}
    status.hostApplicationMetric[]   {name, usage.resources, priority, qos}
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from batch_resources.koordinator.demand import HostApplicationUsage, NodeLoad, PodUsage
from batch_resources.koordinator.priority import priority_class_or_none
from batch_resources.quantities import parse_quantity, quantity_ceil
from batch_resources.resources import BatchResources

COLLECTION_PATH = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
API_VERSION = "slo.koordinator.sh/v1alpha1"
KIND = "NodeMetric"


def status(load: NodeLoad, update_time: datetime) -> dict[str, Any]:
    """Write the status of a report."""
    total = load.system_used
    for used in (*(pod.used for pod in load.pods), *(application.used for application in load.host_applications)):
        total += used
    return {
        "updateTime": update_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "nodeMetric": {"nodeUsage": _usage(total), "systemUsage": _usage(load.system_used)},
        "podsMetric": [
            {**_identity(pod.key), "podUsage": _usage(pod.used), "priority": str(pod.priority)} for pod in load.pods
        ],
        "hostApplicationMetric": [
            {"name": application.name, "usage": _usage(application.used), "priority": str(application.priority)}
            for application in load.host_applications
        ],
    }


def read_load(node_metric: Mapping[str, Any]) -> NodeLoad:
    """Read the usage of a NodeMetric.

    Raises:
        KeyError: The status has an update time and no `nodeMetric`; koord-manager fails on such an object and leaves
            the node as it is.
        QuantityError: A quantity cannot be read.
    """
    found = node_metric["status"]
    return NodeLoad(
        system_used=_amount(found["nodeMetric"].get("systemUsage")),
        pods=tuple(
            PodUsage(
                key=f"{pod.get('namespace', '')}/{pod.get('name', '')}",
                priority=priority_class_or_none(pod.get("priority")),
                used=_amount(pod.get("podUsage")),
            )
            for pod in found.get("podsMetric") or []
        ),
        host_applications=tuple(
            HostApplicationUsage(
                name=application.get("name", ""),
                priority=priority_class_or_none(application.get("priority")),
                used=_amount(application.get("usage")),
            )
            for application in found.get("hostApplicationMetric") or []
        ),
    )


def update_time(node_metric: Mapping[str, Any] | None) -> datetime | None:
    """Read when koordlet reported last; None when it never did."""
    text = ((node_metric or {}).get("status") or {}).get("updateTime")
    return None if not text else datetime.fromisoformat(text)


def _identity(key: str) -> dict[str, str]:
    namespace, _, name = key.partition("/")
    return {"namespace": namespace, "name": name}


def _usage(amount: BatchResources) -> dict[str, Any]:
    return {"resources": {"cpu": f"{amount.cpu_milli}m", "memory": str(amount.memory_bytes)}}


def _amount(usage: Mapping[str, Any] | None) -> BatchResources:
    resources = (usage or {}).get("resources") or {}
    return BatchResources(
        cpu_milli=int(-(-parse_quantity(resources.get("cpu")) * 1000 // 1)),
        memory_bytes=quantity_ceil(resources.get("memory")),
    )

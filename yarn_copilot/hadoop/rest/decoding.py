# SPDX-License-Identifier: Apache-2.0
"""Read nodes, counts and versions out of the JSON of `/ws/v1/cluster`, whatever odd shape a list has.

A list comes as a list, a single object, an empty object, or null, depending on Hadoop's version and on the number of
entries. What cannot be understood is an error of the whole document: a node left out would look like a node gone.
Source: NodesInfo, NodeInfo, ClusterMetricsInfo, ClusterInfo, ResourceInfo of Hadoop 3.3.6 and 3.5.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from yarn_copilot.hadoop.errors import ROUTER_DOCUMENT, FederationRouterError, ProtocolViolationError
from yarn_copilot.hadoop.model import ClusterMetrics, NodeId, NodeReport, NodeState, Resource, ResourceInformation

BUILT_IN_TYPES: Final = frozenset(("memory-mb", "vcores"))
"""Resource types that every node has, with fields of their own."""

_MISSING: Final = object()


def decode_json(body: bytes) -> Any:
    """Read a JSON document.

    Raises:
        ProtocolViolationError: it is none.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise ProtocolViolationError(f"the answer is no JSON: {error}") from error


def field(document: object, *path: str, default: Any = _MISSING) -> Any:
    """Follow keys into a document.

    Args:
        document: decoded JSON.
        path: keys.
        default: given where a key is absent or null; without one that is an error.

    Raises:
        ProtocolViolationError: a key is absent, or what should hold it is no object.
    """
    found = document
    for key in path:
        if not isinstance(found, dict):
            break
        found = found.get(key)
        if found is None:
            break
    else:
        return found
    if default is not _MISSING:
        return default
    raise ProtocolViolationError(f"the answer has no {'.'.join(path)!r}")


def refuse_router(document: object) -> None:
    """Let pass what one ResourceManager says of itself or of its queues.

    A Federation Router names the sub-cluster around it: `{"subCluster": {...}}`, or a list where there are several.

    Raises:
        FederationRouterError: a Router wrote it.
    """
    if isinstance(document, dict) and "subCluster" in document:
        raise FederationRouterError("yarn-copilot", ROUTER_DOCUMENT)


def entries(document: object, *path: str) -> list[Any]:
    """Read a list in any of its shapes; absent, null and empty are an empty list."""
    found = field(document, *path, default=[])
    if isinstance(found, list):
        return found
    return [found] if found else []


def whole(document: object, *path: str, default: Any = _MISSING) -> int:
    """Read a whole number, also one written as text.

    Raises:
        ProtocolViolationError: it is absent or no whole number.
    """
    found = field(document, *path, default=default)
    number = _whole_or_none(found)
    if number is None:
        raise ProtocolViolationError(f"{'.'.join(path)} is {str(found)[:64]!r}, not a whole number")
    return number


def _whole_or_none(found: object) -> int | None:
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        number = int(found)
        return number if number == float(found) else None
    except (ValueError, OverflowError):
        return None


def resource(document: object) -> Resource:
    """Read a resource vector: memory in MiB, vCores, and the custom types.

    Raises:
        ProtocolViolationError: memory or vCores are missing.
    """
    return Resource(
        memory_mib=whole(document, "memory"), vcores=whole(document, "vCores"), custom=tuple(_custom(document))
    )


def _custom(document: object) -> Iterator[ResourceInformation]:
    for entry in entries(document, "resourceInformations", "resourceInformation"):
        name = str(field(entry, "name"))
        if name not in BUILT_IN_TYPES:
            yield ResourceInformation(name, whole(entry, "value", default=0), str(field(entry, "units", default="")))


def node_reports(document: object) -> list[NodeReport]:
    """Read `/ws/v1/cluster/nodes`.

    Raises:
        ProtocolViolationError: it has another shape.
    """
    if not isinstance(document, dict) or "nodes" not in document:
        raise ProtocolViolationError("the answer has no 'nodes'")
    return [node_report(entry) for entry in entries(document, "nodes", "node")]


def node_report(entry: object) -> NodeReport:
    """Read one node. `capability` is RMNode's, as over RPC; `used` the scheduler's.

    Raises:
        ProtocolViolationError: it has another shape.
    """
    try:
        node_id = NodeId.parse(str(field(entry, "id")))
        state = NodeState[str(field(entry, "state"))]
    except (KeyError, ValueError) as error:
        raise ProtocolViolationError(f"a node cannot be read: {str(error)[:256]}") from error
    used = Resource(
        memory_mib=whole(entry, "usedMemoryMB", default=0),
        vcores=whole(entry, "usedVirtualCores", default=0),
        custom=tuple(_custom(field(entry, "usedResource", default={}))),
    )
    return NodeReport(
        node_id=node_id,
        state=state,
        http_address=str(field(entry, "nodeHTTPAddress", default="")),
        rack=str(field(entry, "rack", default="")),
        capability=_capability(entry, used),
        used=used,
        containers=whole(entry, "numContainers", default=0),
        last_health_report_millis=whole(entry, "lastHealthUpdate", default=0),
        labels=tuple(str(label) for label in entries(entry, "nodeLabels")),
    )


def _capability(entry: object, used: Resource) -> Resource:
    total = field(entry, "totalResource", default=None)
    if total is not None:
        return resource(total)
    # Versions before 3.3 show the scheduler's figures only.
    return Resource(
        memory_mib=used.memory_mib + whole(entry, "availMemoryMB", default=0),
        vcores=used.vcores + whole(entry, "availableVirtualCores", default=0),
    )


def cluster_metrics(document: object) -> ClusterMetrics:
    """Read `/ws/v1/cluster/metrics`.

    Raises:
        ProtocolViolationError: it has another shape.
    """
    metrics = field(document, "clusterMetrics")
    return ClusterMetrics(
        node_managers=whole(metrics, "totalNodes"),
        active=whole(metrics, "activeNodes"),
        lost=whole(metrics, "lostNodes"),
        unhealthy=whole(metrics, "unhealthyNodes"),
        decommissioned=whole(metrics, "decommissionedNodes"),
        rebooted=whole(metrics, "rebootedNodes"),
        decommissioning=whole(metrics, "decommissioningNodes", default=0),
        shutdown=whole(metrics, "shutdownNodes", default=0),
    )

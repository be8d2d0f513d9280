# SPDX-License-Identifier: Apache-2.0
"""Speak ApplicationClientProtocol: what a ResourceManager tells about its nodes and queues (port 8032)."""

from __future__ import annotations

from typing import Final

from yarn_copilot.hadoop.model import ClusterMetrics, QueueInfo, Resource
from yarn_copilot.hadoop.proto import yarn_pb2
from yarn_copilot.hadoop.protocols.parsing import parse

PROTOCOL: Final = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
GET_CLUSTER_NODES: Final = "getClusterNodes"
GET_CLUSTER_METRICS: Final = "getClusterMetrics"
GET_QUEUE_INFO: Final = "getQueueInfo"


def encode_get_cluster_nodes() -> bytes:
    """Ask for the nodes in every state: LOST ones too, which an absent filter means."""
    return yarn_pb2.GetClusterNodesRequest().SerializeToString()


def encode_get_cluster_metrics() -> bytes:
    """Ask for the node counts."""
    return yarn_pb2.GetClusterMetricsRequest().SerializeToString()


def decode_cluster_metrics(body: bytes) -> ClusterMetrics:
    """Read GetClusterMetricsResponse; absent counts are 0.

    Raises:
        ProtocolViolationError: the bytes do not decode.
    """
    metrics = parse(yarn_pb2.GetClusterMetricsResponse, body, GET_CLUSTER_METRICS).cluster_metrics
    return ClusterMetrics(
        node_managers=metrics.node_managers,
        active=metrics.active,
        lost=metrics.lost,
        unhealthy=metrics.unhealthy,
        decommissioned=metrics.decommissioned,
        rebooted=metrics.rebooted,
        decommissioning=metrics.decommissioning,
        shutdown=metrics.shutdown,
    )


def encode_get_queue_info(queue: str) -> bytes:
    """Ask for a queue and all queues below it, without applications."""
    request = yarn_pb2.GetQueueInfoRequest(
        queue_name=queue, include_applications=False, include_child_queues=True, recursive=True
    )
    return request.SerializeToString()


def decode_queue_info(body: bytes, queue: str) -> QueueInfo | None:
    """Read GetQueueInfoResponse; None when the server knows no such queue and answers with nothing.

    Raises:
        ProtocolViolationError: the bytes do not decode.
    """
    message = parse(yarn_pb2.GetQueueInfoResponse, body, GET_QUEUE_INFO)
    if not message.HasField("queue_info"):
        return None
    parent = queue.rpartition(".")[0]
    return _queue_info(message.queue_info, parent)


def _queue_info(message: yarn_pb2.QueueInfo, parent: str) -> QueueInfo:
    name = message.queue_name.rpartition(".")[2]
    # Hadoop 3.3 sends no path.
    path = message.queue_path or (f"{parent}.{name}" if parent else name)
    statistics = message.queue_statistics
    return QueueInfo(
        name=name,
        path=path,
        state=yarn_pb2.QueueState.Name(message.state).removeprefix("Q_"),
        capacity=message.capacity,
        maximum_capacity=message.maximum_capacity,
        current_capacity=message.current_capacity,
        allocated=Resource(statistics.allocated_memory_mib, statistics.allocated_vcores),
        pending=Resource(statistics.pending_memory_mib, statistics.pending_vcores),
        reserved=Resource(statistics.reserved_memory_mib, statistics.reserved_vcores),
        allocated_containers=statistics.allocated_containers,
        pending_containers=statistics.pending_containers,
        children=tuple(_queue_info(child, path) for child in message.child_queues),
        applications_running=statistics.applications_running,
        applications_pending=statistics.applications_pending,
    )

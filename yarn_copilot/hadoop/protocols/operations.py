# SPDX-License-Identifier: Apache-2.0
"""Tell ResourceManagerAdministrationProtocol what is not a capacity: decommissioning, node labels, node attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from yarn_copilot.hadoop.model import AttributeOperation, DecommissionType, NodeAttribute, NodeId
from yarn_copilot.hadoop.proto import operations_pb2
from yarn_copilot.hadoop.protocols.parsing import parse

REFRESH_NODES: Final = "refreshNodes"
CHECK_FOR_DECOMMISSIONING_NODES: Final = "checkForDecommissioningNodes"
REPLACE_LABELS_ON_NODES: Final = "replaceLabelsOnNodes"
MAP_ATTRIBUTES_TO_NODES: Final = "mapAttributesToNodes"
SECONDS_MAX: Final = (1 << 31) - 1


def encode_refresh_nodes(kind: DecommissionType, *, timeout_seconds: int | None = None) -> bytes:
    """Tell the server to read its include and exclude files again.

    Args:
        kind: what happens to nodes that are excluded now; GRACEFUL lets their containers end.
        timeout_seconds: how long GRACEFUL waits; None: as the server is configured; -1: for ever.

    Raises:
        ValueError: the timeout is out of range, or given without GRACEFUL.
    """
    request = operations_pb2.RefreshNodesRequest(decommission_type=kind.name)
    if timeout_seconds is not None:
        if kind is not DecommissionType.GRACEFUL:
            raise ValueError("a timeout belongs to graceful decommissioning alone")
        if not -1 <= timeout_seconds <= SECONDS_MAX:
            raise ValueError(f"timeout of {timeout_seconds} s, allowed are -1 to {SECONDS_MAX}")
        request.decommission_timeout_seconds = timeout_seconds
    return request.SerializeToString()


def encode_check_for_decommissioning_nodes() -> bytes:
    """Ask which nodes are on their way out."""
    return operations_pb2.CheckForDecommissioningNodesRequest().SerializeToString()


def decode_decommissioning_nodes(body: bytes) -> frozenset[NodeId]:
    """Read CheckForDecommissioningNodesResponse.

    Raises:
        ProtocolViolationError: the bytes do not decode.
    """
    message = parse(operations_pb2.CheckForDecommissioningNodesResponse, body, CHECK_FOR_DECOMMISSIONING_NODES)
    return frozenset(NodeId(node_id.host, node_id.port) for node_id in message.decommissioning_nodes)


def encode_replace_labels(labels: Mapping[NodeId, Iterable[str]], *, fail_on_unknown_nodes: bool = True) -> bytes:
    """Give nodes these labels instead of what they have; the labels must exist in the cluster.

    A port of 0 means every NodeManager of the host.
    """
    request = operations_pb2.ReplaceLabelsOnNodesRequest(fail_on_unknown_nodes=fail_on_unknown_nodes)
    for node_id, names in labels.items():
        entry = request.node_to_labels.add(node_labels=names)
        entry.node_id.host, entry.node_id.port = node_id.host, node_id.port
    return request.SerializeToString()


def encode_map_attributes(
    operation: AttributeOperation,
    attributes: Mapping[str, Iterable[NodeAttribute]],
    *,
    fail_on_unknown_nodes: bool = True,
) -> bytes:
    """Change the attributes of hosts (names without a port)."""
    request = operations_pb2.NodesToAttributesMappingRequest(
        operation=operation.name,
        fail_on_unknown_nodes=fail_on_unknown_nodes,
    )
    for host, given in attributes.items():
        entry = request.node_to_attributes.add(node=host)
        for attribute in given:
            added = entry.node_attributes.add(type=operations_pb2.NodeAttribute.STRING, value=attribute.value)
            added.key.prefix, added.key.name = attribute.prefix, attribute.name
    return request.SerializeToString()

# SPDX-License-Identifier: Apache-2.0
"""Speak ResourceManagerAdministrationProtocol: changing what a node offers (port 8033)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from yarn_copilot.hadoop.model import NodeResourceUpdate
from yarn_copilot.hadoop.proto import yarn_pb2
from yarn_copilot.hadoop.protocols import resources

PROTOCOL: Final = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
UPDATE_NODE_RESOURCE: Final = "updateNodeResource"

INT32_MIN: Final = -(1 << 31)
INT32_MAX: Final = (1 << 31) - 1


def encode_update_node_resource(updates: Iterable[NodeResourceUpdate]) -> bytes:
    """Write one batch; each node with an explicit over-commit timeout.

    Raises:
        ValueError: an amount is negative or too large, a timeout is no int32, or a node is named twice (the server
            would keep only one of both).
    """
    request = yarn_pb2.UpdateNodeResourceRequest()
    named = set()
    for update in updates:
        if update.node_id in named:
            raise ValueError(f"node {update.node_id} is named twice in one batch")
        named.add(update.node_id)
        timeout_millis = update.overcommit_timeout_millis
        if not INT32_MIN <= timeout_millis <= INT32_MAX:
            raise ValueError(f"over-commit timeout {timeout_millis} ms of node {update.node_id} is no int32")
        entry = request.node_resource_map.add()
        entry.node_id.host = update.node_id.host
        entry.node_id.port = update.node_id.port
        resources.fill_proto(entry.resource_option.resource, update.resource)
        entry.resource_option.over_commit_timeout = timeout_millis
    return request.SerializeToString()

# SPDX-License-Identifier: Apache-2.0
"""Decode the answer to getClusterNodes, thousands of nodes a second.

An RM writes the same thing the same way, so equal bytes are an equal value. That holds for whole reports (between two
polls most nodes differ in nothing) and inside of them for node ids and resource vectors.
"""

from __future__ import annotations

import sys
from typing import Final

from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeState, Resource
from yarn_copilot.hadoop.proto import yarn_pb2
from yarn_copilot.hadoop.protocols import resources
from yarn_copilot.hadoop.protocols.parsing import parse

METHOD: Final = "getClusterNodes"

_STATES: Final[dict[int, NodeState]] = {int(state): state for state in NodeState}
_CACHE_SPARE: Final = 1024
"""Entries that a cache may hold beyond two for each node before it starts anew."""


class NodeReportDecoder:
    """Decode node lists and reuse what did not change since the last one.

    A report whose bytes did not change is the same object as before, so a reader can skip it by identity.
    """

    def __init__(self) -> None:
        """Start without a last list."""
        self._last: dict[bytes, NodeReport] = {}
        self._node_ids: dict[bytes, NodeId] = {}
        self._resources: dict[bytes, Resource] = {}

    def decode(self, body: bytes) -> list[NodeReport]:
        """Read GetClusterNodesResponse; the order is the server's.

        Raises:
            ProtocolViolationError: the bytes do not decode, or a report lacks its node id.
        """
        message = parse(yarn_pb2.GetClusterNodesResponse, body, METHOD)
        last = self._last
        # A fresh dictionary each time: nodes that are gone must not stay in memory.
        current: dict[bytes, NodeReport] = {}
        for encoded in message.encoded_node_reports:
            current[encoded] = last.get(encoded) or self._report(encoded)
        self._last = current
        limit = 2 * len(current) + _CACHE_SPARE
        if len(self._node_ids) > limit:
            self._node_ids.clear()
        if len(self._resources) > limit:
            self._resources.clear()
        return list(current.values())

    def _report(self, encoded: bytes) -> NodeReport:
        parts = parse(yarn_pb2.NodeReportParts, encoded, METHOD)
        encoded_node_id, encoded_capability, encoded_used = (
            parts.encoded_node_id,
            parts.encoded_capability,
            parts.encoded_used,
        )
        return NodeReport(
            node_id=self._node_ids.get(encoded_node_id) or self._node_id(encoded_node_id),
            # A state that a later Hadoop adds does not decode: the RM knows the node, and it is not one to rely on.
            state=_STATES[parts.node_state] if parts.HasField("node_state") else NodeState.UNHEALTHY,
            http_address=parts.http_address,
            rack=sys.intern(parts.rack_name),
            capability=self._resources.get(encoded_capability) or self._resource(encoded_capability),
            used=self._resources.get(encoded_used) or self._resource(encoded_used),
            containers=parts.containers,
            last_health_report_millis=parts.last_health_report_millis,
            labels=tuple(parts.node_labels),
        )

    def _node_id(self, encoded: bytes) -> NodeId:
        message = parse(yarn_pb2.NodeId, encoded, METHOD)
        if not message.host:
            raise ProtocolViolationError("a node report has no node id")
        node_id = self._node_ids[encoded] = NodeId(sys.intern(message.host), message.port)
        return node_id

    def _resource(self, encoded: bytes) -> Resource:
        resource = self._resources[encoded] = resources.from_proto(parse(yarn_pb2.Resource, encoded, METHOD))
        return resource

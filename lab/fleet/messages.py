# SPDX-License-Identifier: Apache-2.0
"""Write a NodeManager's messages from pieces that are encoded once per node.

A heartbeat differs from the last one only in its response id and the time of its health; building it anew from protobuf
objects would cost more than all the rest of a round.
"""

from __future__ import annotations

import time
from typing import Final

from lab.fleet.proto import tracker_pb2
from yarn_copilot.hadoop.framing import encode_varint
from yarn_copilot.hadoop.model import NodeId, Resource
from yarn_copilot.hadoop.proto import yarn_pb2

PROTOCOL: Final = "org.apache.hadoop.yarn.server.api.ResourceTrackerPB"
REGISTER: Final = "registerNodeManager"
HEARTBEAT: Final = "nodeHeartbeat"
UNREGISTER: Final = "unRegisterNodeManager"

_NODE_STATUS_TAG: Final = b"\x0a"
_RESPONSE_ID_TAG: Final = b"\x10"
_HEALTH_TAG: Final = b"\x22"
_HEALTHY: Final = b"\x08\x01\x12\x00\x18"
"""NodeHealthStatusProto up to the tag of its time: healthy, nothing to report."""

_NO_USE: Final = b"\x08\x00\x10\x00\x1d" + bytes(4)
_UTILIZATION: Final = b"".join(bytes((number << 3 | 2, len(_NO_USE))) + _NO_USE for number in (6, 7))
"""containers_utilization and node_utilization of NodeStatusProto, all zero: pmem, vmem, cpu.

Without both the web service's node list of Hadoop 3.5 ends with a NullPointerException after the first heartbeat.
"""


class MessageWriter:
    """Write the messages of one node."""

    def __init__(self, node_id: NodeId, *, http_port: int) -> None:
        """Encode what stays the same for the node's life."""
        self._node_id = yarn_pb2.NodeId(host=node_id.host, port=node_id.port)
        self._http_port = http_port
        self._status_head = tracker_pb2.NodeStatus(node_id=self._node_id).SerializeToString() + _RESPONSE_ID_TAG
        self._began_at_millis = time.time_ns() // 1_000_000
        self._keys = b""

    def registration(self, resource: Resource) -> bytes:
        """Write RegisterNodeManagerRequest; physical resources are left out since no use is reported."""
        request = tracker_pb2.RegisterNodeManagerRequest(
            node_id=self._node_id, http_port=self._http_port, nm_version="3.5.0"
        )
        request.resource.memory_mib = resource.memory_mib
        request.resource.virtual_cores = resource.vcores
        for entry in resource.custom:
            request.resource.resource_value_map.add(key=entry.name, value=entry.value, units=entry.units)
        return request.SerializeToString()

    def keep_keys(self, answer: tracker_pb2.RegisterNodeManagerResponse) -> None:
        """Remember the two master keys, which every heartbeat repeats."""
        self._keys = tracker_pb2.NodeHeartbeatRequest(
            last_known_container_token_master_key=answer.container_token_master_key,
            last_known_nm_token_master_key=answer.nm_token_master_key,
        ).SerializeToString()

    def heartbeat(self, response_id: int) -> bytes:
        """Write NodeHeartbeatRequest."""
        # A NodeManager's time of the health report goes on with its heartbeats; by that a client tells them apart. One
        # that is sent again repeats it, as this does, so it follows the response id and not the clock.
        health = _HEALTHY + encode_varint(self._began_at_millis + response_id)
        head = self._status_head + encode_varint(response_id) + _HEALTH_TAG
        status = head + encode_varint(len(health)) + health + _UTILIZATION
        return _NODE_STATUS_TAG + encode_varint(len(status)) + status + self._keys

    def farewell(self) -> bytes:
        """Write UnRegisterNodeManagerRequest."""
        return tracker_pb2.UnRegisterNodeManagerRequest(node_id=self._node_id).SerializeToString()

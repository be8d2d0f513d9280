# SPDX-License-Identifier: Apache-2.0
"""Be one NodeManager whose every message a test sends by hand, to any ResourceManager."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lab.fleet import messages
from lab.fleet.proto import tracker_pb2
from yarn_copilot.hadoop import connection
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.model import NodeId, Resource
from yarn_copilot.hadoop.protocols import resources

_SECONDS = 20.0


class HandNode:
    """Register and report when told to; made by `hand_node`.

    Attributes:
        response_id: the id of the last answer that was taken note of, repeated in the next heartbeat.
    """

    def __init__(self, link: connection.Connection, node_id: NodeId, *, http_port: int) -> None:
        """Take the connection to the resource tracker."""
        self.node_id = node_id
        self._told: Resource | None = None
        self.response_id = 0
        self._link = link
        self._writer = messages.MessageWriter(node_id, http_port=http_port)

    def has_adopted(self, resource: Resource) -> bool:
        """Tell whether a total is the last that an answer brought."""
        return self._told == resource

    async def register(self, resource: Resource, *, applications: Sequence[tuple[int, int]] = ()) -> None:
        """Register as a process that has just started.

        Args:
            resource: what its configuration says.
            applications: those whose containers it says it still runs: cluster timestamp and number.
        """
        request = tracker_pb2.RegisterNodeManagerRequest.FromString(self._writer.registration(resource))
        for timestamp, number in applications:
            request.running_applications.add(cluster_timestamp=timestamp, id=number)
        body = await self._link.call(messages.REGISTER, request.SerializeToString(), timeout_seconds=_SECONDS)
        answer = tracker_pb2.RegisterNodeManagerResponse.FromString(body)
        assert answer.node_action == tracker_pb2.NORMAL, answer.diagnostics_message
        self._writer.keep_keys(answer)
        self.response_id = 0

    async def say_farewell(self) -> None:
        """Stop in good order."""
        await self._link.call(messages.UNREGISTER, self._writer.farewell(), timeout_seconds=_SECONDS)

    async def report(self, *, answer_is_lost: bool = False) -> tracker_pb2.NodeHeartbeatResponse:
        """Send one heartbeat.

        Args:
            answer_is_lost: the NodeManager never sees the answer, so its next heartbeat is the same again.
        """
        body = await self._link.call(
            messages.HEARTBEAT, self._writer.heartbeat(self.response_id), timeout_seconds=_SECONDS
        )
        answer = tracker_pb2.NodeHeartbeatResponse.FromString(body)
        assert answer.node_action == tracker_pb2.NORMAL, answer.diagnostics_message
        if not answer_is_lost:
            self.response_id = answer.response_id
            if answer.HasField("resource"):
                self._told = resources.from_proto(answer.resource)
        return answer


@asynccontextmanager
async def hand_node(tracker_address: str, node_id: NodeId, *, http_port: int = 8042) -> AsyncIterator[HandNode]:
    """Connect a node to a resource tracker; nothing is sent yet."""
    options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=10, max_response_bytes=1_000_000)
    address = Address.parse(tracker_address)
    link = await connection.open_connection(address, protocol=messages.PROTOCOL, options=options)
    try:
        yield HandNode(link, node_id, http_port=http_port)
    finally:
        await link.aclose()

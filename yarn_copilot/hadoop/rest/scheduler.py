# SPDX-License-Identifier: Apache-2.0
"""Read what the ResourceManager's scheduler works with, node by node.

The node list, over RPC or REST, shows a new total before the scheduler does; used plus available is the scheduler's own
(available is negative while a node is over-committed). Each node is asked for by itself: one odd node makes the whole
list fail. Utilisation and the health report's time change only by a heartbeat of the NodeManager. Satisfies the port
`SchedulerReader` of `yarn_copilot.controller.ports` by shape. Source: NodeInfo and ClusterInfo of the ResourceManager's
web services.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.model import NodeId, Resource, SchedulerReading
from yarn_copilot.hadoop.rest import decoding
from yarn_copilot.hadoop.rest.transport import Request, WebTransport

PARALLEL_READS: Final = 16
_ROOT: Final = "/ws/v1/cluster"


class RestSchedulerReader:
    """Be the reader of one cluster; belongs to one event loop."""

    def __init__(self, transport: WebTransport) -> None:
        """Take the transport, which this reader owns from now on."""
        self._transport = transport

    async def aclose(self) -> None:
        """Close the session."""
        await self._transport.aclose()

    async def read_scheduler(self, node_ids: Collection[NodeId]) -> Mapping[NodeId, SchedulerReading]:
        """Read the nodes named; those that the ResourceManager does not know are missing.

        The answer is empty where another ResourceManager became active meanwhile.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        before = await self._incarnation()
        gate = asyncio.Semaphore(PARALLEL_READS)

        async def read(node_id: NodeId) -> SchedulerReading | None:
            async with gate:
                return await self._read(node_id, before)

        wanted = list(node_ids)
        found = await asyncio.gather(*(read(node_id) for node_id in wanted))
        if not before or await self._incarnation() != before:
            return {}
        return {node_id: reading for node_id, reading in zip(wanted, found, strict=True) if reading is not None}

    async def _incarnation(self) -> str:
        """Name the process that is active; empty where the address in use is not.

        This path alone is answered by a standby too, so the role is part of the answer.
        """
        address = self._transport.current_address
        document = await self._transport.call(Request(method="GET", path=f"{_ROOT}/info"))
        decoding.refuse_router(document)
        info = decoding.field(document, "clusterInfo")
        if decoding.field(info, "haState", default="ACTIVE") != "ACTIVE":
            # A path that a standby refuses makes the transport move on; the next read finds the active one.
            await self._transport.call(Request(method="GET", path=f"{_ROOT}/metrics"))
            return ""
        return f"{address} {decoding.whole(info, 'startedOn')}"

    async def _read(self, node_id: NodeId, incarnation: str) -> SchedulerReading | None:
        path = f"{_ROOT}/nodes/{quote(str(node_id), safe=':')}"
        try:
            document = await self._transport.call(Request(method="GET", path=path))
        except errors.RemoteCallError as error:
            if "NotFoundException" in error.class_name:
                return None
            raise
        return parse_node(document, incarnation)


def parse_node(document: object, incarnation: str) -> SchedulerReading:
    """Read the answer for one node.

    Args:
        document: `{"node": {...}}`, decoded.
        incarnation: names the ResourceManager that answered.

    Raises:
        ProtocolViolationError: a figure is missing or no whole number.
    """
    node = decoding.field(document, "node")
    used = Resource(decoding.whole(node, "usedMemoryMB"), decoding.whole(node, "usedVirtualCores"))
    total = Resource(
        used.memory_mib + decoding.whole(node, "availMemoryMB"),
        used.vcores + decoding.whole(node, "availableVirtualCores"),
    )
    heard = (
        decoding.field(node, "lastHealthUpdate", default=None),
        decoding.field(node, "resourceUtilization", default=None),
    )
    return SchedulerReading(total, used, msgspec.json.encode(heard).decode(), incarnation)

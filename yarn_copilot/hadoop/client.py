# SPDX-License-Identifier: Apache-2.0
"""Ask and tell the ResourceManager of one cluster.

Satisfies the port `ResourceManager` of `yarn_copilot.controller.ports` by shape. Two connections per active
ResourceManager, one for each protocol; any number of calls at once on each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from yarn_copilot.hadoop import connection, errors, failover
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import ClusterConfiguration
from yarn_copilot.hadoop.model import ClusterMetrics, NodeReport, NodeResourceUpdate, QueueInfo
from yarn_copilot.hadoop.protocols import administration, application_client, node_reports


class _SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()


class ResourceManagerClient:
    """Be a cluster's ResourceManager, wherever its active instance is; belongs to one event loop."""

    def __init__(
        self,
        cluster: ClusterConfiguration,
        *,
        user: str,
        call_timeout_seconds: float = 4.0,
        connect_timeout_seconds: float = 2.0,
        max_response_bytes: int = 134_217_728,
        clock: failover.MonotonicClock | None = None,
    ) -> None:
        """Remember addresses and deadlines; connections open with the first call.

        Args:
            cluster: addresses, from `configuration.read_clusters`.
            user: effective user of every call; must be in yarn.admin.acl for updates.
            call_timeout_seconds: deadline of one method of this class, connects and rotation included.
            connect_timeout_seconds: deadline of one TCP connect.
            max_response_bytes: largest response accepted.
            clock: injected by tests.
        """
        self.cluster = cluster
        self._call_timeout_seconds = call_timeout_seconds
        self._options = connection.ConnectionOptions(
            user=user, connect_timeout_seconds=connect_timeout_seconds, max_response_bytes=max_response_bytes
        )
        self._clock = clock or _SystemClock()
        self._client_port = self._caller(cluster.client_addresses, application_client.PROTOCOL)
        self._admin_port = self._caller(cluster.admin_addresses, administration.PROTOCOL)
        self._node_reports = node_reports.NodeReportDecoder()

    async def __aenter__(self) -> ResourceManagerClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """List the nodes in all states; a report that did not change is the same object as in the last list.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        body = await self._read(application_client.GET_CLUSTER_NODES, application_client.encode_get_cluster_nodes())
        return self._node_reports.decode(body)

    async def get_cluster_metrics(self) -> ClusterMetrics:
        """Count the nodes by state.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        body = await self._read(application_client.GET_CLUSTER_METRICS, application_client.encode_get_cluster_metrics())
        return application_client.decode_cluster_metrics(body)

    async def get_queue_info(self, queue: str) -> QueueInfo:
        """Read a queue with all queues below it.

        Args:
            queue: `root`, a leaf's short name, or a path like `root.a.b`.

        Raises:
            RemoteCallError: the cluster has no such queue.
            HadoopRPCError: no answer, or one that does not decode.
        """
        body = await self._read(application_client.GET_QUEUE_INFO, application_client.encode_get_queue_info(queue))
        info = application_client.decode_queue_info(body, queue)
        if info is None:
            raise errors.RemoteCallError("", f"no queue {queue!r}", method=application_client.GET_QUEUE_INFO)
        return info

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Send one batch; the RM applies it later, so read back to be sure.

        Raises:
            UnrecognizedNodeError: the RM does not know one node; nothing was applied.
            AccessDeniedError: the user is not in yarn.admin.acl.
            ValueError: an amount or timeout does not fit its field, or a node is named twice.
            HadoopRPCError: no answer; `may_have_been_applied` says whether the batch can still take effect.
        """
        if not updates:
            return
        request = administration.encode_update_node_resource(updates)
        await self._admin_port.call(
            administration.UPDATE_NODE_RESOURCE, request, timeout_seconds=self._call_timeout_seconds, is_read=False
        )

    async def aclose(self) -> None:
        """Close the connections; calls in flight fail with `ClientClosedError`."""
        await self._client_port.aclose()
        await self._admin_port.aclose()

    async def _read(self, method: str, request: bytes) -> bytes:
        return await self._client_port.call(method, request, timeout_seconds=self._call_timeout_seconds, is_read=True)

    def _caller(self, addresses: Sequence[Address], protocol: str) -> failover.FailoverCaller:
        async def connect(address: Address) -> connection.Connection:
            return await connection.open_connection(address, protocol=protocol, options=self._options)

        return failover.FailoverCaller(addresses, connect=connect, clock=self._clock)

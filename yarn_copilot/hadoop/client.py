# SPDX-License-Identifier: Apache-2.0
"""Ask and tell the ResourceManager of one cluster.

Satisfies the port `ResourceManager` of `yarn_copilot.controller.ports` by shape. Two connections per active
ResourceManager, one for each protocol; any number of calls at once on each. Both go to the same instance: what one of
them finds out, the other knows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final

from yarn_copilot.hadoop import connection, errors, failover
from yarn_copilot.hadoop.active import ActiveOne
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.authentication import Identity
from yarn_copilot.hadoop.configuration import ClusterConfiguration
from yarn_copilot.hadoop.model import (
    ApplicationReport,
    ApplicationState,
    AttributeOperation,
    ClusterMetrics,
    DecommissionType,
    NodeAttribute,
    NodeId,
    NodeReport,
    NodeResourceUpdate,
    QueueInfo,
    ServiceStatus,
)
from yarn_copilot.hadoop.protocols import (
    administration,
    application_client,
    applications,
    delegation,
    ha_service,
    node_reports,
    operations,
)
from yarn_copilot.hadoop.sasl.tokens import DelegationToken
from yarn_copilot.hadoop.searching import Probe

CLIENT_PROBE: Final = Probe(application_client.GET_CLUSTER_METRICS, application_client.encode_get_cluster_metrics())
ADMIN_PROBE: Final = Probe(
    operations.CHECK_FOR_DECOMMISSIONING_NODES, operations.encode_check_for_decommissioning_nodes()
)
"""Only the active ResourceManager answers these, and they change nothing."""


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
        identity: Identity | None = None,
        clock: failover.MonotonicClock | None = None,
    ) -> None:
        """Remember addresses and deadlines; connections open with the first call.

        Args:
            cluster: addresses, from `configuration.read_clusters`.
            user: effective user of every call; must be in yarn.admin.acl for updates.
            call_timeout_seconds: deadline of one method of this class, connects and rotation included.
            connect_timeout_seconds: deadline of one TCP connect.
            max_response_bytes: largest response accepted.
            identity: who calls, where a user name is not enough: Kerberos, tokens, proxy users. None: `user`, with
                simple authentication.
            clock: injected by tests.
        """
        self.cluster = cluster
        self._call_timeout_seconds = call_timeout_seconds
        self._options = connection.ConnectionOptions(
            user=user,
            connect_timeout_seconds=connect_timeout_seconds,
            max_response_bytes=max_response_bytes,
            identity=identity,
        )
        self._clock = clock or _SystemClock()
        self._active = ActiveOne()
        self._client_port = self._caller(cluster.client_addresses, application_client.PROTOCOL, CLIENT_PROBE)
        self._admin_port = self._caller(cluster.admin_addresses, administration.PROTOCOL, ADMIN_PROBE)
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
        await self._administer(administration.UPDATE_NODE_RESOURCE, request)

    async def get_applications(
        self, *, states: Iterable[ApplicationState] = (), queues: Iterable[str] = (), limit: int | None = None
    ) -> Sequence[ApplicationReport]:
        """List applications, by default all that the ResourceManager remembers.

        Args:
            states: only these; none: all.
            queues: only these, named as they were at submission (Hadoop 3.3 compares texts); none: all.
            limit: at most so many.

        Raises:
            ValueError: the limit is not positive.
            HadoopRPCError: no answer, or one that does not decode.
        """
        request = applications.encode_get_applications(states=states, queues=queues, limit=limit)
        return applications.decode_applications(await self._read(applications.GET_APPLICATIONS, request))

    async def get_nodes_to_labels(self) -> Mapping[NodeId, tuple[str, ...]]:
        """Read the labels of the nodes that have some; a port of 0 stands for the whole host.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        request = applications.encode_get_nodes_to_labels()
        return applications.decode_nodes_to_labels(await self._read(applications.GET_NODES_TO_LABELS, request))

    async def get_nodes_to_attributes(self) -> Mapping[str, tuple[NodeAttribute, ...]]:
        """Read the attributes of all hosts, by name without a port; a host without any may be missing.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        body = await self._read(applications.GET_NODES_TO_ATTRIBUTES, applications.encode_get_nodes_to_attributes())
        return applications.decode_nodes_to_attributes(body)

    async def replace_labels_on_nodes(
        self, labels: Mapping[NodeId, Iterable[str]], *, fail_on_unknown_nodes: bool = True
    ) -> None:
        """Give nodes these labels instead of what they have.

        Raises:
            RemoteCallError: a label or node is unknown, or labels are kept elsewhere than in the ResourceManager.
            HadoopRPCError: no answer.
        """
        request = operations.encode_replace_labels(labels, fail_on_unknown_nodes=fail_on_unknown_nodes)
        await self._administer(operations.REPLACE_LABELS_ON_NODES, request)

    async def map_attributes_to_nodes(
        self,
        operation: AttributeOperation,
        attributes: Mapping[str, Iterable[NodeAttribute]],
        *,
        fail_on_unknown_nodes: bool = True,
    ) -> None:
        """Change attributes of hosts, given by name without a port.

        Raises:
            RemoteCallError: a host is unknown, or an attribute is not allowed.
            HadoopRPCError: no answer.
        """
        request = operations.encode_map_attributes(operation, attributes, fail_on_unknown_nodes=fail_on_unknown_nodes)
        await self._administer(operations.MAP_ATTRIBUTES_TO_NODES, request)

    async def refresh_nodes(
        self, kind: DecommissionType = DecommissionType.NORMAL, *, timeout_seconds: int | None = None
    ) -> None:
        """Let the ResourceManager read its include and exclude files again.

        Args:
            kind: GRACEFUL lets the containers of excluded nodes end, up to the timeout.
            timeout_seconds: for GRACEFUL; None: as the server is configured.

        Raises:
            ValueError: the timeout is out of range, or given without GRACEFUL.
            HadoopRPCError: refused, or no answer.
        """
        request = operations.encode_refresh_nodes(kind, timeout_seconds=timeout_seconds)
        await self._administer(operations.REFRESH_NODES, request)

    async def check_for_decommissioning_nodes(self) -> frozenset[NodeId]:
        """List the nodes that are being decommissioned gracefully; administrators only.

        Raises:
            HadoopRPCError: refused, no answer, or one that does not decode.
        """
        request = operations.encode_check_for_decommissioning_nodes()
        body = await self._administer(operations.CHECK_FOR_DECOMMISSIONING_NODES, request, is_read=True)
        return operations.decode_decommissioning_nodes(body)

    async def get_delegation_token(self, renewer: str) -> DelegationToken:
        """Get a token with which the caller can authenticate at the client port without Kerberos.

        Only a connection that was opened with Kerberos is given one.

        Args:
            renewer: user that may renew and cancel it.

        Raises:
            HadoopRPCError: refused, no answer, or one that does not decode.
        """
        body = await self._read(delegation.GET_DELEGATION_TOKEN, delegation.encode_get_delegation_token(renewer))
        return delegation.decode_delegation_token(body)

    async def get_service_status(self, rm_id: str) -> ServiceStatus:
        """Ask one ResourceManager of a pair for its state, over a connection of its own; administrators only.

        Raises:
            ValueError: the cluster has no such id.
            UnsupportedCallError: it runs without high availability.
            HadoopRPCError: refused, no answer, or one that does not decode.
        """
        addresses = [one.admin for one in self.cluster.resource_managers if one.rm_id == rm_id]
        if not addresses:
            raise ValueError(f"cluster {self.cluster.id} has no ResourceManager {rm_id!r}")
        link = await connection.open_connection(addresses[0], protocol=ha_service.PROTOCOL, options=self._options)
        try:
            body = await link.call(
                ha_service.GET_SERVICE_STATUS,
                ha_service.encode_get_service_status(),
                timeout_seconds=self._call_timeout_seconds,
            )
        finally:
            await link.aclose()
        return ha_service.decode_service_status(body)

    async def aclose(self) -> None:
        """Close the connections; calls in flight fail with `ClientClosedError`."""
        await self._client_port.aclose()
        await self._admin_port.aclose()

    async def _read(self, method: str, request: bytes) -> bytes:
        return await self._client_port.call(method, request, timeout_seconds=self._call_timeout_seconds, is_read=True)

    async def _administer(self, method: str, request: bytes, *, is_read: bool = False) -> bytes:
        return await self._admin_port.call(method, request, timeout_seconds=self._call_timeout_seconds, is_read=is_read)

    def _caller(self, addresses: Sequence[Address], protocol: str, probe: Probe) -> failover.FailoverCaller:
        async def connect(address: Address) -> connection.Connection:
            return await connection.open_connection(address, protocol=protocol, options=self._options)

        return failover.FailoverCaller(addresses, connect=connect, clock=self._clock, probe=probe, active=self._active)

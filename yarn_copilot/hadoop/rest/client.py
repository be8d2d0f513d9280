# SPDX-License-Identifier: Apache-2.0
"""Ask and tell the ResourceManager of one cluster over its web services.

Satisfies the port `ResourceManager` of `yarn_copilot.controller.ports` by shape. Weaker than RPC: one node a call, no
admin ACL, custom resource types are set to zero by every update (so a node that has any is not written), and one odd
node can hide all others from a reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.model import ClusterMetrics, NodeId, NodeReport, NodeResourceUpdate, QueueInfo
from yarn_copilot.hadoop.rest import decoding, node_list, queues
from yarn_copilot.hadoop.rest.transport import Request, WebTransport

logger = logging.getLogger(__name__)

PARALLEL_UPDATES: Final = 16
_INT32_MAX: Final = 2_147_483_647
_ROOT: Final = "/ws/v1/cluster"


class CustomTypesError(errors.NodeRefusedError):
    """Say that a node was not written, because REST would set its custom resource types to zero; nothing was sent."""

    def __init__(self, node_id: NodeId, names: Sequence[str]) -> None:
        super().__init__(
            "yarn-copilot",
            f"{node_id} has {', '.join(names)}, and REST would set that to zero; use transport rpc",
        )
        self.node_id = node_id


class PartialUpdateError(errors.HadoopRPCError):
    """Say that a batch was sent in part; which updates took effect shows with the next read."""

    retryable = True
    may_have_been_applied = True


class RestResourceManagerClient:
    """Be a cluster's ResourceManager over HTTP, wherever its active instance is; belongs to one event loop."""

    def __init__(self, transport: WebTransport) -> None:
        """Take the transport, which this client owns from now on."""
        self._transport = transport
        self._refused: set[NodeId] = set()

    async def __aenter__(self) -> RestResourceManagerClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """List the nodes in all states.

        Raises:
            NodeListError: the ResourceManager cannot write the list, because of one node's report.
            HadoopRPCError: no answer, or one that does not decode.
        """
        return await self._transport.read(Request(method="GET", path=f"{_ROOT}/nodes"), node_list.decode_node_list)

    async def get_cluster_metrics(self) -> ClusterMetrics:
        """Count the nodes by state.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        return decoding.cluster_metrics(await self._get("/metrics"))

    async def get_queue_info(self, queue: str) -> QueueInfo:
        """Read a queue with all queues below it.

        Args:
            queue: `root`, a leaf's short name, or a path like `root.a.b`.

        Raises:
            RemoteCallError: the cluster has no such queue.
            HadoopRPCError: no answer, or one that does not decode.
        """
        found = queues.find_queue(queues.queue_tree(await self._get("/scheduler")), queue)
        if found is None:
            raise errors.RemoteCallError("", f"no queue {queue[:64]!r}", method="GET /scheduler")
        return found

    async def get_partition_use(self) -> Mapping[str, queues.PartitionUse]:
        """Read use and pending resources by partition; the default partition is the empty text.

        Raises:
            HadoopRPCError: no answer, no permission, or a Federation Router, so that demand is unknown; not zero.
        """
        return queues.partition_use(await self._get("/scheduler"))

    async def get_applications(self, *, states: Sequence[str] = ("RUNNING",), limit: int = 1000) -> list[Any]:
        """List applications as the web service shows them, without their single requests.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        parameters = {"states": ",".join(states), "limit": str(limit), "deSelects": "resourceRequests"}
        document = await self._get("/apps", parameters)
        if not isinstance(document, dict) or "apps" not in document:
            raise errors.ProtocolViolationError("the answer has no 'apps'")
        return decoding.entries(document, "apps", "app")

    async def get_version(self) -> str:
        """Read the version of a ResourceManager, active or not.

        Raises:
            HadoopRPCError: no answer, or one that does not decode.
        """
        return str(decoding.field(await self._get("/info"), "clusterInfo", "resourceManagerVersion"))

    async def refuse_router(self) -> None:
        """Make sure that a ResourceManager answers, active or not.

        Raises:
            FederationRouterError: a Router answers in its place.
            HadoopRPCError: no answer.
        """
        await self._get("/info")

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Send each update in a call of its own, after all nodes were found in a fresh list.

        A Federation Router would pass them on; it is refused, as over RPC.

        All of it ends within the deadline of one call, since the caller's right to write may end soon after. What was
        not sent by then is for the next time.

        Raises:
            FederationRouterError: a Router answered; nothing was sent.
            UnrecognizedNodeError: the RM does not list one node as active; nothing was sent.
            CustomTypesError: a node has custom types; nothing was sent.
            AccessDeniedError: the user may not call; nothing was applied.
            ValueError: an amount or timeout does not fit its field, or a node is named twice.
            PartialUpdateError: some updates were sent, and one of them failed.
            CallTimeoutError: the deadline passed; some updates may have been sent.
            HadoopRPCError: no answer.
        """
        if not updates:
            return
        _check_values(updates)
        seconds = self._transport.call_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._update(updates)
        except TimeoutError as error:
            raise errors.CallTimeoutError(f"{len(updates)} updates did not end within {seconds:g} s") from error

    async def _update(self, updates: Sequence[NodeResourceUpdate]) -> None:
        await self.refuse_router()
        listed = {report.node_id: report for report in await self.get_cluster_nodes()}
        for update in updates:
            self._check_node(update.node_id, listed.get(update.node_id))
        await self._send_first_then_rest(updates)

    def _check_node(self, node_id: NodeId, report: NodeReport | None) -> None:
        if report is None or not report.state.is_active:
            state = "not listed" if report is None else report.state.name
            raise errors.UnrecognizedNodeError("yarn-copilot", f"unrecognized node: {node_id} ({state})")
        custom = [f"{entry.name}={entry.value}" for entry in report.capability.custom if entry.value]
        if not custom:
            self._refused.discard(node_id)
            return
        refusal = CustomTypesError(node_id, custom)
        if node_id not in self._refused:
            self._refused.add(node_id)
            logger.warning("A node is not written: %s", refusal.message, extra={"node_id": str(node_id)})
        raise refusal

    async def _send_first_then_rest(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Send one alone, so that a refusal that concerns all of them leaves nothing half done; then the others."""
        await self._send(updates[0])
        gate = asyncio.Semaphore(PARALLEL_UPDATES)

        async def send(update: NodeResourceUpdate) -> None:
            async with gate:
                await self._send(update)

        results = await asyncio.gather(*(send(update) for update in updates[1:]), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            if not isinstance(failure, errors.HadoopRPCError):
                raise failure
        if failures:
            raise PartialUpdateError(
                f"{len(failures)} of {len(updates)} updates were not carried out: {str(failures[0])[:256]}"
            ) from failures[0]

    async def _send(self, update: NodeResourceUpdate) -> None:
        node_id = quote(str(update.node_id), safe=":")
        # Exactly this shape: with anything around it the ResourceManager would read 0 MB and kill every container.
        body = {
            "resource": {"memory": update.resource.memory_mib, "vCores": update.resource.vcores},
            "overCommitTimeout": update.overcommit_timeout_millis,
        }
        try:
            await self._transport.call(Request(method="POST", path=f"{_ROOT}/nodes/{node_id}/resource", body=body))
        except errors.RemoteCallError as error:
            if "NotFoundException" in error.class_name:
                refusal = errors.UnrecognizedNodeError(error.class_name, f"unrecognized node: {update.node_id}")
                raise refusal from error
            raise

    async def _get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        request = Request(method="GET", path=_ROOT + path, parameters=parameters or {})
        document = await self._transport.call(request)
        decoding.refuse_router(document)
        return document

    async def aclose(self) -> None:
        """Close the session; later calls fail with `ClientClosedError`."""
        await self._transport.aclose()


def _check_values(updates: Sequence[NodeResourceUpdate]) -> None:
    if len({update.node_id for update in updates}) != len(updates):
        raise ValueError("a node is named twice in one batch")
    for update in updates:
        amounts = (update.resource.memory_mib, update.resource.vcores)
        if not all(0 <= amount <= _INT32_MAX for amount in amounts):
            raise ValueError(f"{update.node_id}: {amounts} does not fit 0 to {_INT32_MAX}")
        if not -1 <= update.overcommit_timeout_millis <= _INT32_MAX:
            raise ValueError(f"{update.node_id}: timeout {update.overcommit_timeout_millis} does not fit")

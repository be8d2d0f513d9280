# SPDX-License-Identifier: Apache-2.0
"""Translate the three protocols of a ResourceManager to and from its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lab.embedded.yarn.faults import STANDBY_EXCEPTION
from lab.embedded.yarn.queues import QueueTree
from lab.embedded.yarn.resource_manager import (
    HeartbeatAnswer,
    ResourceManagerState,
    RMNode,
    UnknownNodeError,
)
from lab.embedded.yarn.rpc_server import Method, Refusal
from lab.fleet.proto import tracker_pb2
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, NodeState, Resource, ResourceInformation
from yarn_copilot.hadoop.proto import yarn_pb2

CLIENT_PROTOCOL: Final = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
ADMIN_PROTOCOL: Final = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
TRACKER_PROTOCOL: Final = "org.apache.hadoop.yarn.server.api.ResourceTrackerPB"
YARN_EXCEPTION: Final = "org.apache.hadoop.yarn.exceptions.YarnException"
WHOLE_TREE: Final = 100

Now = Callable[[], float]


class ClientService:
    """Answer questions about nodes and queues."""

    def __init__(self, state: Callable[[], ResourceManagerState], queues: QueueTree, now: Now) -> None:
        """Take the state by a function, since a restart replaces it."""
        self._state = state
        self._queues = queues
        self._now = now
        self._reports: dict[NodeId, tuple[object, bytes]] = {}

    def methods(self) -> Mapping[str, Method]:
        """Give method names to functions."""
        return {
            "getClusterNodes": self.get_cluster_nodes,
            "getClusterMetrics": self.get_cluster_metrics,
            "getQueueInfo": self.get_queue_info,
        }

    def get_cluster_nodes(self, body: bytes, _user: str) -> bytes:
        """List nodes; without a filter in all states."""
        wanted = {int(state) for state in yarn_pb2.GetClusterNodesRequest.FromString(body).node_states}
        state, now = self._state(), self._now()
        response = yarn_pb2.GetClusterNodesResponse()
        for node in (*state.nodes.values(), *state.inactive.values()):
            if not wanted or node.state in wanted:
                response.encoded_node_reports.append(self._report(node, now))
        return response.SerializeToString()

    def get_cluster_metrics(self, _body: bytes, _user: str) -> bytes:
        """Count nodes by state."""
        state = self._state()
        counts = dict.fromkeys(NodeState, 0)
        for node in (*state.nodes.values(), *state.inactive.values()):
            counts[node.state] += 1
        response = yarn_pb2.GetClusterMetricsResponse()
        metrics = response.cluster_metrics
        metrics.node_managers = len(state.nodes)
        metrics.active = counts[NodeState.RUNNING]
        metrics.lost = counts[NodeState.LOST]
        metrics.unhealthy = counts[NodeState.UNHEALTHY]
        metrics.decommissioned = counts[NodeState.DECOMMISSIONED]
        metrics.rebooted = counts[NodeState.REBOOTED]
        metrics.decommissioning = counts[NodeState.DECOMMISSIONING]
        metrics.shutdown = counts[NodeState.SHUTDOWN]
        return response.SerializeToString()

    def get_queue_info(self, body: bytes, _user: str) -> bytes:
        """Describe a queue; an unknown one gets an empty answer, as from the real server."""
        request = yarn_pb2.GetQueueInfoRequest.FromString(body)
        response = yarn_pb2.GetQueueInfoResponse()
        path = self._queues.path_of(request.queue_name)
        if path is not None:
            state = self._state()
            depth = (WHOLE_TREE if request.recursive else 1) if request.include_child_queues else 0
            info = self._queues.describe(
                path,
                containers=state.running_containers(),
                asks=state.asks,
                cluster=state.cluster_total(),
                depth=depth,
            )
            response.queue_info.CopyFrom(info)
        return response.SerializeToString()

    def _report(self, node: RMNode, now: float) -> bytes:
        """Write a node report, or take the last one where nothing changed."""
        used, containers = node.scheduler.visible_use(now)
        key = (node.state, node.capability, used, containers, node.http_port)
        cached = self._reports.get(node.node_id)
        if cached is not None and cached[0] == key:
            return cached[1]
        report = yarn_pb2.NodeReport(
            http_address=f"{node.node_id.host}:{node.http_port}",
            rack_name="/default-rack",
            node_state=f"NS_{node.state.name}",
            containers=containers,
            health_report="",
            last_health_report_millis=1,
        )
        report.node_id.host, report.node_id.port = node.node_id.host, node.node_id.port
        write_resource(report.used, used)
        write_resource(report.capability, node.capability)
        encoded = report.SerializeToString()
        self._reports[node.node_id] = (key, encoded)
        return encoded


class AdminService:
    """Take changes of node resources."""

    def __init__(
        self,
        state: Callable[[], ResourceManagerState],
        take: Callable[[list[NodeResourceUpdate], str], None],
        admins: Callable[[], frozenset[str] | None],
    ) -> None:
        """Take where accepted batches go, and who may send them (None: everybody)."""
        self._state = state
        self._take = take
        self._admins = admins

    def methods(self) -> Mapping[str, Method]:
        """Give method names to functions."""
        return {"updateNodeResource": self.update_node_resource}

    def guarded(
        self, methods: Mapping[str, Method], *, rm_id: str, is_active: Callable[[], bool]
    ) -> Mapping[str, Method]:
        """Let only administrators call methods, and only on the active ResourceManager; checked in this order."""

        def guard(name: str, method: Method) -> Method:
            def checked(body: bytes, user: str) -> bytes:
                self._check_admin(name, user)
                if not is_active():
                    raise Refusal(STANDBY_EXCEPTION, f"ResourceManager {rm_id} is not Active!")
                return method(body, user)

            return checked

        return {name: guard(name, method) for name, method in methods.items()}

    def _check_admin(self, method: str, user: str) -> None:
        admins = self._admins()
        if admins is not None and user not in admins:
            raise Refusal(
                YARN_EXCEPTION,
                "org.apache.hadoop.security.AccessControlException: "
                f"User {user} doesn't have permission to call '{method}'",
            )

    def update_node_resource(self, body: bytes, user: str) -> bytes:
        """Accept a batch whole or refuse it whole; it takes effect later."""
        request = yarn_pb2.UpdateNodeResourceRequest.FromString(body)
        updates = {}
        for entry in request.node_resource_map:
            option = entry.resource_option
            node_id = NodeId(entry.node_id.host, entry.node_id.port)
            # An absent timeout reads as 0, as in Java.
            updates[node_id] = NodeResourceUpdate(node_id, read_resource(option.resource), option.over_commit_timeout)
        try:
            self._state().check_known(updates)
        except UnknownNodeError as error:
            raise Refusal(
                YARN_EXCEPTION,
                "Resource update get failed on all nodes due to change resource on an unrecognized node: "
                f"{error.node_id}",
            ) from error
        self._take(list(updates.values()), user)
        return yarn_pb2.UpdateNodeResourceResponse().SerializeToString()


class TrackerService:
    """Take in NodeManagers of other processes."""

    def __init__(self, state: Callable[[], ResourceManagerState], now: Now, heartbeat_millis: int) -> None:
        """Take the interval that NodeManagers are told to keep."""
        self._state = state
        self._now = now
        self._heartbeat_millis = heartbeat_millis
        self._key = tracker_pb2.MasterKey(key_id=1, key_bytes=b"lab")

    def methods(self) -> Mapping[str, Method]:
        """Give method names to functions."""
        return {
            "registerNodeManager": self.register,
            "nodeHeartbeat": self.heartbeat,
            "unRegisterNodeManager": self.unregister,
        }

    def register(self, body: bytes, _user: str) -> bytes:
        """Take a node in."""
        request = tracker_pb2.RegisterNodeManagerRequest.FromString(body)
        node_id = NodeId(request.node_id.host, request.node_id.port)
        answer = self._state().register(
            node_id, read_resource(request.resource), http_port=request.http_port, now=self._now()
        )
        response = tracker_pb2.RegisterNodeManagerResponse(
            node_action=answer.action.name,
            rm_identifier=1,
            diagnostics_message=answer.diagnostics,
            rm_version="3.5.0",
        )
        response.container_token_master_key.CopyFrom(self._key)
        response.nm_token_master_key.CopyFrom(self._key)
        return response.SerializeToString()

    def heartbeat(self, body: bytes, _user: str) -> bytes:
        """Take a report."""
        status = tracker_pb2.NodeHeartbeatRequest.FromString(body).node_status
        node_id = NodeId(status.node_id.host, status.node_id.port)
        healthy = status.node_health_status.is_node_healthy
        answer = self._state().heartbeat(node_id, status.response_id, now=self._now(), healthy=healthy)
        return self._heartbeat_response(answer).SerializeToString()

    def unregister(self, body: bytes, _user: str) -> bytes:
        """Let a node go."""
        node_id = tracker_pb2.UnRegisterNodeManagerRequest.FromString(body).node_id
        self._state().unregister(NodeId(node_id.host, node_id.port))
        return b""

    def _heartbeat_response(self, answer: HeartbeatAnswer) -> tracker_pb2.NodeHeartbeatResponse:
        response = tracker_pb2.NodeHeartbeatResponse(
            response_id=answer.response_id,
            node_action=answer.action.name,
            next_heartbeat_interval_millis=self._heartbeat_millis,
        )
        if answer.diagnostics:
            response.diagnostics_message = answer.diagnostics
        if answer.resource is not None:
            write_resource(response.resource, answer.resource)
        return response


def read_resource(message: yarn_pb2.Resource) -> Resource:
    """Read a vector as the server does: memory and vcores only from their own fields."""
    custom = tuple(
        ResourceInformation(entry.key, entry.value, entry.units)
        for entry in message.resource_value_map
        if entry.key not in ("memory-mb", "vcores")
    )
    return Resource(message.memory_mib, message.virtual_cores, custom)


def write_resource(message: yarn_pb2.Resource, resource: Resource) -> None:
    """Write a vector as the server does: every type again in the map, with its unit."""
    message.memory_mib = resource.memory_mib
    message.virtual_cores = resource.vcores
    message.resource_value_map.add(key="memory-mb", value=resource.memory_mib, units="Mi")
    message.resource_value_map.add(key="vcores", value=resource.vcores, units="")
    for entry in resource.custom:
        message.resource_value_map.add(key=entry.name, value=entry.value, units=entry.units)

# SPDX-License-Identifier: Apache-2.0
"""Answer what operators ask and tell beside capacities: applications, decommissioning, labels, attributes, HA state.

Source: AdminService, NodesListManager, CommonNodeLabelsManager, NodeAttributesManagerImpl of Hadoop 3.5.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lab.embedded.yarn.containers import EmbeddedContainer
from lab.embedded.yarn.resource_manager import ResourceManagerState
from lab.embedded.yarn.rpc_server import Method, Refusal
from yarn_copilot.hadoop.model import NodeId, NodeState
from yarn_copilot.hadoop.proto import operations_pb2

HA_PROTOCOL: Final = "org.apache.hadoop.ha.HAServiceProtocol"
IO_EXCEPTION: Final = "java.io.IOException"
YARN_EXCEPTION: Final = "org.apache.hadoop.yarn.exceptions.YarnException"
CLUSTER_TIMESTAMP: Final = 1_700_000_000_000

Now = Callable[[], float]


@dataclass(slots=True)
class Register:
    """Hold what operators have said.

    Attributes:
        excluded: hosts in the exclude file.
        cluster_labels: labels that exist.
        labels: labels of nodes; port 0 stands for a whole host.
        attributes: host to attributes, name to value.
    """

    excluded: set[str] = field(default_factory=set)
    cluster_labels: set[str] = field(default_factory=set)
    labels: dict[NodeId, set[str]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)


class OperationsService:
    """Serve the three protocols' further methods."""

    def __init__(self, state: Callable[[], ResourceManagerState], register: Register, now: Now) -> None:
        """Take the state by a function, since a restart replaces it."""
        self._state = state
        self._register = register
        self._now = now

    def client_methods(self) -> Mapping[str, Method]:
        """Give method names of the client protocol to functions."""
        return {
            "getApplications": self.get_applications,
            "getNodeToLabels": self.get_nodes_to_labels,
            "getNodesToAttributes": self.get_nodes_to_attributes,
        }

    def admin_methods(self) -> Mapping[str, Method]:
        """Give method names of the administration protocol to functions."""
        return {
            "refreshNodes": self.refresh_nodes,
            "checkForDecommissioningNodes": self.check_for_decommissioning_nodes,
            "addToClusterNodeLabels": self.add_to_cluster_node_labels,
            "replaceLabelsOnNodes": self.replace_labels_on_nodes,
            "mapAttributesToNodes": self.map_attributes_to_nodes,
        }

    def get_applications(self, body: bytes, _user: str) -> bytes:
        """List applications by number; filters by state and queue, and a limit."""
        request = operations_pb2.GetApplicationsRequest.FromString(body)
        response = operations_pb2.GetApplicationsResponse()
        for report in self._applications():
            leaf = report.queue.rpartition(".")[2]
            if request.application_states and report.state not in request.application_states:
                continue
            if request.queues and report.queue not in request.queues and leaf not in request.queues:
                continue
            if not request.HasField("limit") or len(response.applications) < request.limit:
                response.applications.append(report)
        return response.SerializeToString()

    def refresh_nodes(self, body: bytes, _user: str) -> bytes:
        """Begin, do, or take back what the exclude list says."""
        request = operations_pb2.RefreshNodesRequest.FromString(body)
        state = self._state()
        for node in list(state.nodes.values()):
            is_excluded = node.node_id.host in self._register.excluded
            if is_excluded and request.decommission_type != operations_pb2.GRACEFUL:
                state.deactivate(node.node_id, NodeState.DECOMMISSIONED)
            elif is_excluded and node.state is NodeState.RUNNING:
                state.decommission(node.node_id)
            elif not is_excluded and node.state is NodeState.DECOMMISSIONING:
                state.recommission(node.node_id, now=self._now())
        return b""

    def check_for_decommissioning_nodes(self, _body: bytes, _user: str) -> bytes:
        """List the nodes on their way out."""
        response = operations_pb2.CheckForDecommissioningNodesResponse()
        for node in self._state().nodes.values():
            if node.state is NodeState.DECOMMISSIONING:
                response.decommissioning_nodes.add(host=node.node_id.host, port=node.node_id.port)
        return response.SerializeToString()

    def add_to_cluster_node_labels(self, body: bytes, _user: str) -> bytes:
        """Make one label: field 2 of the request holds a message with the name in field 1, both shorter than 128 bytes.

        The product never sends this; tests do.
        """
        self._register.cluster_labels.add(body[4 : 4 + body[3]].decode())
        return b""

    def replace_labels_on_nodes(self, body: bytes, _user: str) -> bytes:
        """Set labels, all or nothing."""
        request = operations_pb2.ReplaceLabelsOnNodesRequest.FromString(body)
        wanted = {NodeId(one.node_id.host, one.node_id.port): set(one.node_labels) for one in request.node_to_labels}
        known_hosts = {node_id.host for node_id in self._state().nodes}
        if request.fail_on_unknown_nodes and any(node_id.host not in known_hosts for node_id in wanted):
            raise Refusal(IO_EXCEPTION, "Following nodes does not exist")
        if unknown := set().union(*wanted.values()) - self._register.cluster_labels:
            raise Refusal(
                IO_EXCEPTION,
                "Not all labels being replaced contained by known label collections, please check, "
                f"new labels=[{', '.join(sorted(unknown))}]",
            )
        self._register.labels.update(wanted)
        return b""

    def get_nodes_to_labels(self, _body: bytes, _user: str) -> bytes:
        """Tell which node has which labels."""
        response = operations_pb2.GetNodesToLabelsResponse()
        for node_id, labels in self._register.labels.items():
            if labels:
                entry = response.node_to_labels.add(node_labels=sorted(labels))
                entry.node_id.host, entry.node_id.port = node_id.host, node_id.port
        return response.SerializeToString()

    def get_nodes_to_attributes(self, _body: bytes, _user: str) -> bytes:
        """Tell which host has which attributes."""
        response = operations_pb2.GetNodesToAttributesResponse()
        for host, attributes in self._register.attributes.items():
            entry = response.nodes_to_attributes.add(node=host)
            for name, value in attributes.items():
                added = entry.node_attributes.add(value=value)
                added.key.prefix, added.key.name = "rm.yarn.io", name
        return response.SerializeToString()

    def map_attributes_to_nodes(self, body: bytes, _user: str) -> bytes:
        """Change attributes of hosts."""
        request = operations_pb2.NodesToAttributesMappingRequest.FromString(body)
        known = {node_id.host for node_id in self._state().nodes}
        unknown = [one.node for one in request.node_to_attributes if one.node not in known]
        if unknown and request.fail_on_unknown_nodes:
            raise Refusal(IO_EXCEPTION, f"Following nodes does not exist:{unknown}")
        for one in request.node_to_attributes:
            given = {attribute.key.name: attribute.value for attribute in one.node_attributes}
            held = self._register.attributes.setdefault(one.node, {})
            if request.operation == operations_pb2.REPLACE:
                held.clear()
            if request.operation == operations_pb2.REMOVE:
                for name in given:
                    held.pop(name, None)
            else:
                # What a host has already keeps its value, as at a ResourceManager.
                held.update({name: value for name, value in given.items() if name not in held})
        return b""

    def _applications(self) -> list[operations_pb2.ApplicationReport]:
        state = self._state()
        running: dict[int, list[EmbeddedContainer]] = {}
        queues = {one.application: one.queue for one in state.finished}
        queues.update({one.application: one.queue for one in state.asks})
        for container in state.running_containers():
            running.setdefault(container.application, []).append(container)
            queues[container.application] = container.queue
        waiting = {ask.application for ask in state.asks}
        return [
            _report(number, queue, running.get(number, []), is_waiting=number in waiting)
            for number, queue in sorted(queues.items())
        ]


class HAService:
    """Tell the state of one ResourceManager of a pair."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        """Take the state by a function."""
        self._is_active = is_active

    def methods(self) -> Mapping[str, Method]:
        """Give method names to functions."""
        return {"getServiceStatus": self.get_service_status}

    def get_service_status(self, _body: bytes, _user: str) -> bytes:
        """Answer ACTIVE or STANDBY."""
        state = operations_pb2.ACTIVE if self._is_active() else operations_pb2.STANDBY
        response = operations_pb2.GetServiceStatusResponse(state=state, ready_to_become_active=True)
        return response.SerializeToString()


def _report(
    number: int, queue: str, containers: list[EmbeddedContainer], *, is_waiting: bool
) -> operations_pb2.ApplicationReport:
    report = operations_pb2.ApplicationReport(
        user="alice",
        queue=queue.rpartition(".")[2],
        name=f"application-{number}",
        application_type="YARN",
        state="RUNNING" if containers or is_waiting else "FINISHED",
        start_millis=CLUSTER_TIMESTAMP + number,
        finish_millis=0 if containers or is_waiting else CLUSTER_TIMESTAMP + number + 1,
    )
    report.application_id.id = number
    report.application_id.cluster_timestamp = CLUSTER_TIMESTAMP
    report.usage.used_containers = len(containers)
    report.usage.used.memory_mib = sum(one.resource.memory_mib for one in containers)
    report.usage.used.virtual_cores = sum(one.resource.vcores for one in containers)
    return report

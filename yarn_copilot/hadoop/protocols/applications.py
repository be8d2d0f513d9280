# SPDX-License-Identifier: Apache-2.0
"""Ask ApplicationClientProtocol for applications and node labels (port 8032)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.model import ApplicationReport, ApplicationState, NodeAttribute, NodeId
from yarn_copilot.hadoop.proto import operations_pb2
from yarn_copilot.hadoop.protocols import resources
from yarn_copilot.hadoop.protocols.parsing import parse

GET_APPLICATIONS: Final = "getApplications"
GET_NODES_TO_LABELS: Final = "getNodeToLabels"
GET_NODES_TO_ATTRIBUTES: Final = "getNodesToAttributes"
_STATES: Final[dict[int, ApplicationState]] = {
    int(state): state for state in ApplicationState if state is not ApplicationState.UNKNOWN
}


def encode_get_applications(
    *, states: Iterable[ApplicationState] = (), queues: Iterable[str] = (), limit: int | None = None
) -> bytes:
    """Ask for applications; without states and queues for all, at most `limit` of them.

    Raises:
        ValueError: the limit is not positive.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}, must be at least 1")
    request = operations_pb2.GetApplicationsRequest(application_states=[state.name for state in states], queues=queues)
    if limit is not None:
        request.limit = limit
    return request.SerializeToString()


def decode_applications(body: bytes) -> list[ApplicationReport]:
    """Read GetApplicationsResponse; the order is the server's.

    Raises:
        ProtocolViolationError: the bytes do not decode, or a report lacks its id.
    """
    message = parse(operations_pb2.GetApplicationsResponse, body, GET_APPLICATIONS)
    return [_report(report) for report in message.applications]


def encode_get_nodes_to_labels() -> bytes:
    """Ask which labels the nodes have."""
    return operations_pb2.GetNodesToLabelsRequest().SerializeToString()


def decode_nodes_to_labels(body: bytes) -> dict[NodeId, tuple[str, ...]]:
    """Read GetNodesToLabelsResponse; nodes without labels are not in it.

    Raises:
        ProtocolViolationError: the bytes do not decode.
    """
    message = parse(operations_pb2.GetNodesToLabelsResponse, body, GET_NODES_TO_LABELS)
    return {
        NodeId(entry.node_id.host, entry.node_id.port): tuple(sorted(entry.node_labels))
        for entry in message.node_to_labels
    }


def encode_get_nodes_to_attributes() -> bytes:
    """Ask which attributes the hosts have, all of them."""
    return operations_pb2.GetNodesToAttributesRequest().SerializeToString()


def decode_nodes_to_attributes(body: bytes) -> dict[str, tuple[NodeAttribute, ...]]:
    """Read GetNodesToAttributesResponse, attributes by host; a host without any may be missing.

    Raises:
        ProtocolViolationError: the bytes do not decode.
    """
    message = parse(operations_pb2.GetNodesToAttributesResponse, body, GET_NODES_TO_ATTRIBUTES)
    return {
        entry.node: tuple(NodeAttribute(each.key.name, each.value, each.key.prefix) for each in entry.node_attributes)
        for entry in message.nodes_to_attributes
    }


def _report(report: operations_pb2.ApplicationReport) -> ApplicationReport:
    if not report.HasField("application_id"):
        raise ProtocolViolationError("an application report has no id")
    usage = report.usage
    return ApplicationReport(
        # The form that Hadoop prints: the number has at least four digits.
        id=f"application_{report.application_id.cluster_timestamp}_{report.application_id.id:04d}",
        name=report.name,
        user=report.user,
        queue=report.queue,
        type=report.application_type,
        state=_STATES.get(report.state, ApplicationState.UNKNOWN)
        if report.HasField("state")
        else ApplicationState.UNKNOWN,
        progress=report.progress,
        start_millis=report.start_millis,
        finish_millis=report.finish_millis,
        # -1 where the caller may not see the application.
        containers=max(0, usage.used_containers),
        used=resources.from_proto(usage.used),
        reserved=resources.from_proto(usage.reserved),
    )

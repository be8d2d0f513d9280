# SPDX-License-Identifier: Apache-2.0
"""Test requests and answers of the two interfaces."""

from __future__ import annotations

from typing import Any

import pytest

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.model import (
    FAR_OVERCOMMIT_TIMEOUT_MILLIS,
    ClusterMetrics,
    NodeId,
    NodeReport,
    NodeResourceUpdate,
    NodeState,
    Resource,
    ResourceInformation,
)
from yarn_copilot.hadoop.proto import yarn_pb2
from yarn_copilot.hadoop.protocols import administration, application_client, node_reports

NODE = NodeId("nm-0", 8041)
GPU = ResourceInformation("yarn.io/gpu", 2, "")


def encoded_report(host: str = "nm-0", memory_mib: int = 4096, state: int | None = 2) -> bytes:
    """Give a report as a server writes it, map of resource types included."""
    report = yarn_pb2.NodeReport(http_address=f"{host}:8042", rack_name="/r", containers=1, last_health_report_millis=5)
    report.node_id.host, report.node_id.port = host, 8041
    report.capability.memory_mib, report.capability.virtual_cores = memory_mib, 4
    report.capability.resource_value_map.add(key="memory-mb", value=memory_mib, units="Mi")
    report.capability.resource_value_map.add(key="vcores", value=4, units="")
    report.capability.resource_value_map.add(key="yarn.io/gpu", value=2, units="")
    report.used.memory_mib, report.used.virtual_cores = 1024, 1
    report.node_labels.append("gpu")
    # Field 7 by hand, so that states unknown to this program can be written.
    return report.SerializeToString() + (b"" if state is None else b"\x38" + bytes((state,)))


def node_list(*reports: bytes) -> bytes:
    """Give the answer that holds these reports."""
    return yarn_pb2.GetClusterNodesResponse(encoded_node_reports=reports).SerializeToString()


def update(**changes: Any) -> NodeResourceUpdate:
    """Give a valid update with some fields changed."""
    fields: dict[str, Any] = {"node_id": NODE, "resource": Resource(1024, 1)}
    return NodeResourceUpdate(**{**fields, **changes})


def test_node_report_is_read_whole() -> None:
    (report,) = node_reports.NodeReportDecoder().decode(node_list(encoded_report()))
    assert report == NodeReport(
        node_id=NODE,
        state=NodeState.RUNNING,
        http_address="nm-0:8042",
        rack="/r",
        capability=Resource(4096, 4, (GPU,)),
        used=Resource(1024, 1),
        containers=1,
        last_health_report_millis=5,
        labels=("gpu",),
    )


def test_report_that_did_not_change_is_the_same_object() -> None:
    decoder = node_reports.NodeReportDecoder()
    kept, changed = decoder.decode(node_list(encoded_report("a"), encoded_report("b")))

    again = decoder.decode(node_list(encoded_report("a"), encoded_report("b", memory_mib=1)))

    assert again[0] is kept
    assert again[1] != changed
    assert again[1].node_id is changed.node_id


def test_caches_do_not_grow_for_ever() -> None:
    decoder = node_reports.NodeReportDecoder()
    for round_number in range(30):
        reports = [encoded_report(f"n{round_number}-{i}", memory_mib=round_number * 1000 + i) for i in range(100)]
        assert len(decoder.decode(node_list(*reports))) == 100
    assert max(len(decoder._node_ids), len(decoder._resources)) <= 2 * 100 + 1024


@pytest.mark.parametrize("state", [None, 99], ids=["absent", "of a later version"])
def test_unknown_state_counts_as_unhealthy(state: int | None) -> None:
    (report,) = node_reports.NodeReportDecoder().decode(node_list(encoded_report(state=state)))
    assert report.state is NodeState.UNHEALTHY


def test_empty_list_has_no_nodes() -> None:
    assert node_reports.NodeReportDecoder().decode(b"") == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x0a\xff", id="list is cut"),
        pytest.param(b"\x0a\x02\x0a\x09", id="report is cut"),
        pytest.param(node_list(b""), id="no node id"),
        pytest.param(node_list(b"\x0a\x02\x0a\x09"), id="node id is cut"),
    ],
)
def test_broken_node_list_is_refused(body: bytes) -> None:
    with pytest.raises(errors.ProtocolViolationError):
        node_reports.NodeReportDecoder().decode(body)


def test_all_states_are_asked_for_by_an_empty_request() -> None:
    assert application_client.encode_get_cluster_nodes() == b""


def test_metrics_are_read_and_absent_counts_are_zero() -> None:
    body = b"\x0a\x06" + b"\x08\x09" + b"\x18\x07" + b"\x40\x02"  # node_managers 9, active 7, shutdown 2
    assert application_client.decode_cluster_metrics(body) == ClusterMetrics(
        node_managers=9, active=7, lost=0, unhealthy=0, decommissioned=0, rebooted=0, decommissioning=0, shutdown=2
    )


def test_queue_request_asks_for_everything_below_without_applications() -> None:
    assert application_client.encode_get_queue_info("root") == b"\x0a\x04root" + b"\x10\x00" + b"\x18\x01" + b"\x20\x01"


def test_queues_of_hadoop_3_3_get_their_paths_from_their_parents() -> None:
    response = yarn_pb2.GetQueueInfoResponse()
    response.queue_info.queue_name = "root"
    response.queue_info.state = yarn_pb2.Q_RUNNING
    child = response.queue_info.child_queues.add(queue_name="root.batch", state=yarn_pb2.Q_STOPPED)
    child.child_queues.add(queue_name="etl", state=yarn_pb2.Q_DRAINING)

    root = application_client.decode_queue_info(response.SerializeToString(), "root")

    assert root is not None
    assert (root.path, root.state) == ("root", "RUNNING")
    assert (root.children[0].name, root.children[0].path, root.children[0].state) == ("batch", "root.batch", "STOPPED")
    assert root.children[0].children[0].path == "root.batch.etl"


def test_queue_statistics_are_read() -> None:
    response = yarn_pb2.GetQueueInfoResponse()
    info = response.queue_info
    info.queue_name, info.queue_path, info.state = "etl", "root.batch.etl", yarn_pb2.Q_RUNNING
    info.queue_statistics.allocated_memory_mib, info.queue_statistics.allocated_vcores = 10, 1
    info.queue_statistics.pending_memory_mib, info.queue_statistics.pending_vcores = 20, 2
    info.queue_statistics.reserved_memory_mib, info.queue_statistics.reserved_vcores = 30, 3
    info.queue_statistics.allocated_containers, info.queue_statistics.pending_containers = 4, 5

    queue = application_client.decode_queue_info(response.SerializeToString(), "etl")

    assert queue is not None
    assert (queue.allocated, queue.pending, queue.reserved) == (Resource(10, 1), Resource(20, 2), Resource(30, 3))
    assert (queue.allocated_containers, queue.pending_containers) == (4, 5)


def test_empty_answer_means_no_such_queue() -> None:
    assert application_client.decode_queue_info(b"", "nope") is None


def test_update_always_carries_a_timeout_the_far_one_by_default() -> None:
    request = yarn_pb2.UpdateNodeResourceRequest.FromString(administration.encode_update_node_resource([update()]))
    option = request.node_resource_map[0].resource_option
    assert option.HasField("over_commit_timeout")
    assert option.over_commit_timeout == FAR_OVERCOMMIT_TIMEOUT_MILLIS


def test_custom_types_are_copied_with_their_units() -> None:
    custom = (GPU, ResourceInformation("example.com/disk", 7, "Gi"))
    encoded = administration.encode_update_node_resource([update(resource=Resource(1024, 1, custom))])

    resource = yarn_pb2.UpdateNodeResourceRequest.FromString(encoded).node_resource_map[0].resource_option.resource

    assert [(entry.key, entry.value, entry.units) for entry in resource.resource_value_map] == [
        ("yarn.io/gpu", 2, ""),
        ("example.com/disk", 7, "Gi"),
    ]


@pytest.mark.parametrize(
    ("updates", "text"),
    [
        pytest.param([update(resource=Resource(-1, 1))], "memory-mb is -1", id="negative memory"),
        pytest.param([update(resource=Resource(1, -1))], "vcores is -1", id="negative vcores"),
        pytest.param([update(resource=Resource(1, 2**31))], "vcores is 2147483648", id="vcores too large"),
        pytest.param([update(resource=Resource(2**63, 1))], "memory-mb is", id="memory too large"),
        pytest.param(
            [update(resource=Resource(1, 1, (ResourceInformation("g", -5),)))], "g is -5", id="custom negative"
        ),
        pytest.param([update(overcommit_timeout_millis=2**31)], "no int32", id="timeout too large"),
        pytest.param([update(), update()], "named twice", id="node twice"),
    ],
)
def test_update_that_no_field_can_hold_is_refused(updates: list[NodeResourceUpdate], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        administration.encode_update_node_resource(updates)

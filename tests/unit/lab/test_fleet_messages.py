# SPDX-License-Identifier: Apache-2.0
"""A heartbeat of the fleet is the one that protobuf would write, and tells itself apart from the one before."""

from __future__ import annotations

from lab.fleet.messages import MessageWriter
from lab.fleet.proto import tracker_pb2
from yarn_copilot.hadoop.model import NodeId


def _status(writer: MessageWriter, response_id: int) -> tracker_pb2.NodeStatus:
    return tracker_pb2.NodeHeartbeatRequest.FromString(writer.heartbeat(response_id)).node_status


def test_a_heartbeat_can_be_read_back_whatever_the_length_of_its_numbers() -> None:
    writer = MessageWriter(NodeId("a.example", 8041), http_port=8042)
    for response_id in (0, 127, 128, 1 << 20):
        status = _status(writer, response_id)
        assert (status.node_id.host, status.node_id.port) == ("a.example", 8041)
        assert status.response_id == response_id
        assert status.node_health_status.is_node_healthy


def test_the_time_of_the_health_report_goes_on_with_new_heartbeats_only() -> None:
    writer = MessageWriter(NodeId("a.example", 8041), http_port=8042)
    first, again, second = (_status(writer, number).node_health_status for number in (7, 7, 8))
    assert first == again
    assert second.last_health_report_millis > first.last_health_report_millis

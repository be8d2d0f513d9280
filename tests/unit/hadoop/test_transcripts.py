# SPDX-License-Identifier: Apache-2.0
"""Replay the main calls as real ResourceManagers answered them (`python -m lab.hadoop.call_recording`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.embedded.yarn import wire
from lab.hadoop import call_recording
from tests.contract.hadoop.differences import BEHAVIOURS
from yarn_copilot.hadoop import errors, framing, versions
from yarn_copilot.hadoop.model import HAServiceState, NodeId, NodeReport, NodeState, QueueInfo
from yarn_copilot.hadoop.proto import yarn_pb2
from yarn_copilot.hadoop.protocols import application_client, ha_service, node_reports

FOLDER = Path(__file__).parents[2] / "data" / "calls"
RECORDINGS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
NAMES = [call.name for call in call_recording.calls(call_recording.UNKNOWN)]
EVERY_VERSION = pytest.mark.parametrize("version", versions.TESTED)


def said(version: str, name: str, side: str) -> bytes:
    """Give all that one side sent during a call."""
    chunks = RECORDINGS[version]["calls"][name]["chunks"]
    return b"".join(bytes.fromhex(chunk["hex"]) for chunk in chunks if chunk["from"] == side)


def answer(version: str, name: str) -> framing.Response:
    """Decode the answer, which comes in pieces of one byte."""
    decoder = framing.ResponseDecoder(max_frame_bytes=1_000_000)
    responses = [found for byte in said(version, name, "server") for found in decoder.receive(bytes((byte,)))]
    assert len(responses) == 1
    return responses[0]


def refusal(version: str, name: str) -> errors.RemoteCallError:
    """Give the error that a recorded refusal becomes."""
    response = answer(version, name)
    assert response.status is framing.Status.ERROR
    return errors.from_remote_exception(response.exception_class_name, response.error_message)


def body(version: str, name: str) -> bytes:
    """Give the message of a recorded success."""
    response = answer(version, name)
    assert response.status is framing.Status.SUCCESS
    return response.body


def test_every_tested_version_was_recorded_with_every_call() -> None:
    assert set(RECORDINGS) == set(versions.TESTED)
    assert {version: list(recording["calls"]) for version, recording in RECORDINGS.items()} == dict.fromkeys(
        RECORDINGS, NAMES
    )


@EVERY_VERSION
@pytest.mark.parametrize("name", NAMES)
def test_request_is_made_again_byte_by_byte(version: str, name: str) -> None:
    recorded = RECORDINGS[version]["calls"][name]
    (call,) = [one for one in call_recording.calls(NodeId.parse(RECORDINGS[version]["node_id"])) if one.name == name]
    assert call.request.hex() == recorded["body"]
    sent = said(version, name, "client")
    length = int.from_bytes(sent[wire.HEADER_BYTES : wire.HEADER_BYTES + 4], "big")
    client_id = wire.read_request(sent[wire.HEADER_BYTES + 4 :][:length]).client_id
    context = framing.connection_context_frame(client_id=client_id, protocol=call.protocol, effective_user=call.user)
    encoder = framing.RequestEncoder(client_id=client_id, protocol=call.protocol)
    assert sent == framing.connection_header() + context + encoder.call_frame(0, call.method, call.request)


@EVERY_VERSION
def test_recorded_node_list_is_read(version: str) -> None:
    (report,) = node_reports.NodeReportDecoder().decode(body(version, "nodes"))
    assert isinstance(report, NodeReport)
    assert str(report.node_id) == RECORDINGS[version]["node_id"]
    assert (report.state, report.rack, report.containers) == (NodeState.RUNNING, "/default-rack", 0)
    assert (report.capability.memory_mib, report.capability.vcores, report.used.memory_mib) == (1024, 1, 0)
    assert report.http_address.startswith(f"{report.node_id.host}:")


@EVERY_VERSION
def test_recorded_queues_are_read_with_their_paths(version: str) -> None:
    def paths(queue: QueueInfo) -> set[str]:
        return {queue.path}.union(*(paths(child) for child in queue.children))

    root = application_client.decode_queue_info(body(version, "queues"), "root")
    assert root is not None
    assert paths(root) == {"root", "root.batch", "root.batch.etl", "root.batch.adhoc", "root.interactive"}
    message = yarn_pb2.GetQueueInfoResponse.FromString(body(version, "queues"))
    assert bool(message.queue_info.queue_path) is BEHAVIOURS[version].tells_queue_paths


@EVERY_VERSION
def test_recorded_update_was_accepted_with_an_empty_message(version: str) -> None:
    assert body(version, "update") == b""


@EVERY_VERSION
def test_recorded_refusals_are_told_apart(version: str) -> None:
    unknown = refusal(version, "update-of-unknown-node")
    assert isinstance(unknown, errors.UnrecognizedNodeError)
    assert unknown.node_id == call_recording.UNKNOWN
    denied = refusal(version, "update-by-no-administrator")
    assert type(denied) is errors.AccessDeniedError
    assert "User bob doesn't have permission" in denied.message
    standby = refusal(version, "update-on-standby")
    assert type(standby) is errors.StandbyError
    assert standby.retryable
    assert not any(one.may_have_been_applied for one in (unknown, denied, standby))


@EVERY_VERSION
def test_recorded_states_of_a_pair_are_read(version: str) -> None:
    active = ha_service.decode_service_status(body(version, "status-of-active"))
    standby = ha_service.decode_service_status(body(version, "status-of-standby"))
    assert (active.state, standby.state) == (HAServiceState.ACTIVE, HAServiceState.STANDBY)

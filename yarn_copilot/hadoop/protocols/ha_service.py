# SPDX-License-Identifier: Apache-2.0
"""Speak HAServiceProtocol: what a ResourceManager of a pair says about itself (admin port, administrators only).

A ResourceManager without high availability does not know this protocol.
"""

from __future__ import annotations

from typing import Final

from yarn_copilot.hadoop.model import HAServiceState, ServiceStatus
from yarn_copilot.hadoop.proto import operations_pb2
from yarn_copilot.hadoop.protocols.parsing import parse

PROTOCOL: Final = "org.apache.hadoop.ha.HAServiceProtocol"
GET_SERVICE_STATUS: Final = "getServiceStatus"


def encode_get_service_status() -> bytes:
    """Ask for the state."""
    return operations_pb2.GetServiceStatusRequest().SerializeToString()


def decode_service_status(body: bytes) -> ServiceStatus:
    """Read GetServiceStatusResponse.

    Raises:
        ProtocolViolationError: the bytes do not decode.
    """
    message = parse(operations_pb2.GetServiceStatusResponse, body, GET_SERVICE_STATUS)
    return ServiceStatus(
        state=HAServiceState(message.state) if message.HasField("state") else HAServiceState.UNKNOWN,
        is_ready_to_become_active=message.ready_to_become_active,
        not_ready_reason=message.not_ready_reason,
    )

# SPDX-License-Identifier: Apache-2.0
"""Ask ApplicationClientProtocol for a delegation token (port 8032)."""

from __future__ import annotations

from typing import Final

from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.proto import operations_pb2
from yarn_copilot.hadoop.protocols.parsing import parse
from yarn_copilot.hadoop.sasl.tokens import DelegationToken

GET_DELEGATION_TOKEN: Final = "getDelegationToken"  # noqa: S105  (the name of a method)


def encode_get_delegation_token(renewer: str) -> bytes:
    """Ask for a token for the caller that `renewer` may renew."""
    return operations_pb2.GetDelegationTokenRequest(renewer=renewer).SerializeToString()


def decode_delegation_token(body: bytes) -> DelegationToken:
    """Read GetDelegationTokenResponse.

    Raises:
        ProtocolViolationError: the bytes do not decode, or hold no token.
    """
    message = parse(operations_pb2.GetDelegationTokenResponse, body, GET_DELEGATION_TOKEN)
    if not message.HasField("token") or not message.IsInitialized():
        raise ProtocolViolationError("the answer holds no delegation token")
    token = message.token
    return DelegationToken(token.identifier, token.password, token.kind, token.service)

# SPDX-License-Identifier: Apache-2.0
"""Write and read RpcSasl messages.

Each travels in a frame of its own with call id -33; from the server as the message of a successful response.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from yarn_copilot.hadoop import framing
from yarn_copilot.hadoop.errors import REMOTE_TEXT_LIMIT, ProtocolViolationError
from yarn_copilot.hadoop.proto import rpc_pb2

State = rpc_pb2.RpcSasl.State
AUTHS_MAX: Final = 32
"""Ways to authenticate that one server may offer; Hadoop has three."""


class Auth(Struct, frozen=True):
    """Hold one way to authenticate that a server offers.

    Attributes:
        method: SIMPLE, TOKEN or KERBEROS.
        mechanism: SASL name, empty for SIMPLE.
        protocol: first part of the server's Kerberos principal.
        server_id: second part of it; for tokens the realm of the digest.
        challenge: first challenge, sent ahead; None where the server sends none.
    """

    method: str
    mechanism: str = ""
    protocol: str = ""
    server_id: str = ""
    challenge: bytes | None = None

    def __str__(self) -> str:
        return f"{self.method[:REMOTE_TEXT_LIMIT]}/{self.mechanism[:REMOTE_TEXT_LIMIT]}" if self.mechanism else "SIMPLE"


class SaslMessage(Struct, frozen=True):
    """Hold one RpcSasl message; `token` is None where the field is absent."""

    state: State
    token: bytes | None = None
    auths: tuple[Auth, ...] = ()


def encode_frame(state: State, *, token: bytes | None = None, auths: Iterable[Auth] = ()) -> bytes:
    """Give the frame of one message to the server; challenges are never sent back."""
    message = rpc_pb2.RpcSasl(state=state)
    if token is not None:
        message.token = token
    for auth in auths:
        added = message.auths.add(method=auth.method, mechanism=auth.mechanism)
        added.protocol = auth.protocol
        added.server_id = auth.server_id
    return framing.sasl_frame(message.SerializeToString())


def decode(response: framing.Response) -> SaslMessage:
    """Read the message of a server's frame.

    Raises:
        ProtocolViolationError: the frame is no SASL frame, or its message does not decode.
    """
    if response.call_id != framing.CALL_ID_SASL:
        raise ProtocolViolationError(f"frame with call id {response.call_id} where a SASL message is due")
    message = rpc_pb2.RpcSasl()
    try:
        message.ParseFromString(response.body)
    except DecodeError as error:
        raise ProtocolViolationError(f"SASL message does not decode ({len(response.body)} bytes)") from error
    if not message.IsInitialized():
        raise ProtocolViolationError("SASL message lacks its state, or an offer lacks its method")
    if len(message.auths) > AUTHS_MAX:
        raise ProtocolViolationError(f"SASL message has {len(message.auths)} offers, at most {AUTHS_MAX} are accepted")
    return SaslMessage(
        state=message.state,
        token=message.token if message.HasField("token") else None,
        auths=tuple(_auth(auth) for auth in message.auths),
    )


def _auth(auth: rpc_pb2.RpcSasl.Auth) -> Auth:
    return Auth(
        method=auth.method,
        mechanism=auth.mechanism,
        protocol=auth.protocol,
        server_id=auth.server_id,
        challenge=auth.challenge if auth.HasField("challenge") else None,
    )

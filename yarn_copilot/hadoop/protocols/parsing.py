# SPDX-License-Identifier: Apache-2.0
"""Decode protobuf messages without letting protobuf's exceptions out."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from yarn_copilot.hadoop.errors import ProtocolViolationError

MessageT = TypeVar("MessageT", bound=Message)


def parse(kind: type[MessageT], body: bytes, method: str) -> MessageT:
    """Decode one message.

    Raises:
        ProtocolViolationError: protobuf refuses the bytes.
    """
    message = kind()
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise ProtocolViolationError(f"the answer to {method} does not decode ({len(body)} bytes)") from error
    return message

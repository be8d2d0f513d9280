# SPDX-License-Identifier: Apache-2.0
"""Put frames on the wire and take them off: as they are, or protected by a security layer.

With a layer every frame travels inside RpcSasl messages of state WRAP: the protected bytes are a stream of their own,
in which one frame may be cut over several messages and several frames may share one. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from yarn_copilot.hadoop import framing
from yarn_copilot.hadoop.errors import ProtocolViolationError
from yarn_copilot.hadoop.sasl import messages
from yarn_copilot.hadoop.sasl.messages import State
from yarn_copilot.hadoop.sasl.protection import SecurityLayer

PROTECTION_OVERHEAD_BYTES = 65_536
"""What a layer may add to a frame, far more than any does."""


class Codec(Protocol):
    """Be one connection's way of sending and receiving frames."""

    def encode(self, frames: bytes) -> bytes:
        """Give the bytes to send for one or several whole frames."""

    def receive(self, data: bytes) -> Iterator[framing.Response]:
        """Take bytes of the server and give the responses they complete; errors as `ResponseDecoder.receive`."""

    def end(self) -> None:
        """Say that the stream has ended; errors as `ResponseDecoder.end`."""


class PlainCodec:
    """Send frames as they are."""

    def __init__(self, *, max_frame_bytes: int) -> None:
        """Start at a frame boundary."""
        decoder = framing.ResponseDecoder(max_frame_bytes=max_frame_bytes)
        self.receive = decoder.receive
        self.end = decoder.end

    def encode(self, frames: bytes) -> bytes:
        """Give the frames themselves."""
        return frames


class ProtectedCodec:
    """Send frames inside a security layer."""

    def __init__(self, layer: SecurityLayer, *, max_frame_bytes: int) -> None:
        """Start right after the handshake."""
        self._layer = layer
        self._outer = framing.ResponseDecoder(max_frame_bytes=max_frame_bytes + PROTECTION_OVERHEAD_BYTES)
        self._inner = framing.ResponseDecoder(max_frame_bytes=max_frame_bytes)

    def encode(self, frames: bytes) -> bytes:
        """Protect frames, in as many messages as the peer's limit makes necessary."""
        limit = self._layer.max_plain_bytes
        return b"".join(
            messages.encode_frame(State.WRAP, token=self._layer.wrap(frames[start : start + limit]))
            for start in range(0, len(frames), limit)
        )

    def receive(self, data: bytes) -> Iterator[framing.Response]:
        """Open messages and give the responses inside; a refusal that ends the connection may come unprotected."""
        for outer in self._outer.receive(data):
            if outer.status is framing.Status.FATAL:
                yield outer
                continue
            message = messages.decode(outer)
            if message.state != State.WRAP or not message.token:
                raise ProtocolViolationError(f"SASL state {message.state} where a protected message is due")
            yield from self._inner.receive(self._layer.unwrap(message.token))

    def end(self) -> None:
        """Say that the stream has ended."""
        self._outer.end()
        self._inner.end()

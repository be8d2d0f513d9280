# SPDX-License-Identifier: Apache-2.0
"""Send calls without waiting for each: answers come to a function, together with what was sent along.

`yarn_copilot.hadoop.connection` gives every call a future and a deadline; for 5,000 heartbeats a second that is most
of the time spent, and a fleet needs neither.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Generic, TypeVar

from yarn_copilot.hadoop import framing
from yarn_copilot.hadoop.errors import ProtocolViolationError

TokenT = TypeVar("TokenT")
MAX_FRAME_BYTES = 1_048_576


class Link(asyncio.Protocol, Generic[TokenT]):
    """Be one connection; made by `loop.create_connection`."""

    def __init__(self, protocol: str, user: str, *, on_answer: Callable[[TokenT, framing.Response], None]) -> None:
        """Take the function that gets each answer with the token of its call."""
        client_id = uuid.uuid4().bytes
        self._encoder = framing.RequestEncoder(client_id=client_id, protocol=protocol)
        self._decoder = framing.ResponseDecoder(max_frame_bytes=MAX_FRAME_BYTES)
        self._preamble = framing.connection_header() + framing.connection_context_frame(
            client_id=client_id, protocol=protocol, effective_user=user
        )
        self._on_answer = on_answer
        self._tokens: dict[int, TokenT] = {}
        self._next_call_id = 0
        self._unsent: list[bytes] = []
        self._last_answer: asyncio.Future[None] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def queue_call(self, method: str, request: bytes, token: TokenT) -> None:
        """Add a call to the next `flush`."""
        call_id = self._next_call_id
        self._next_call_id = (call_id + 1) & framing.CALL_ID_MASK
        self._tokens[call_id] = token
        self._unsent.append(self._encoder.call_frame(call_id, method, request))

    def flush(self) -> None:
        """Send what is queued, in one piece."""
        if self._unsent and self._transport is not None:
            self._transport.write(self._preamble + b"".join(self._unsent))
            self._preamble = b""
            self._unsent.clear()

    async def all_answered(self) -> None:
        """Wait until no answer is to come any more; at once where the connection has ended."""
        if self._tokens and not self.closed.done():
            self._last_answer = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._last_answer, self.closed], return_when=asyncio.FIRST_COMPLETED)

    def abandon(self) -> list[TokenT]:
        """Close; give the tokens of calls that got no answer."""
        if self._transport is not None:
            self._transport.abort()
        tokens = list(self._tokens.values())
        self._tokens.clear()
        return tokens

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101 - asyncio's own promise for TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand out the answers that are complete."""
        try:
            for response in self._decoder.receive(data):
                token = self._tokens.pop(response.call_id, None)
                if token is not None:
                    self._on_answer(token, response)
            if self._last_answer is not None and not self._tokens and not self._last_answer.done():
                self._last_answer.set_result(None)
        except ProtocolViolationError:
            self.abandon()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end; why does not matter, the fleet connects again."""
        if not self.closed.done():
            self.closed.set_result(None)

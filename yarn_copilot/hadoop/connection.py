# SPDX-License-Identifier: Apache-2.0
"""Carry many calls at once over one TCP connection to one protocol of one server.

`open_connection` connects, authenticates where the cluster wants that, and gives a `Connection`.

One reader task owns the receiving side and the map from call id to waiter. When it ends, for whatever reason, every
waiter fails. Nothing waits without a deadline. Calls belong to one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from yarn_copilot.hadoop import errors, framing
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.authentication import Identity, authenticate
from yarn_copilot.hadoop.codec import Codec, PlainCodec, ProtectedCodec
from yarn_copilot.hadoop.sasl.negotiation import SIMPLE, Outcome

READ_BYTES: Final = 262_144
"""Bytes asked from the socket at once; a node list of 5,000 nodes has about 900 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """Say how to open connections.

    Attributes:
        user: effective user of every call with simple authentication; always sent.
        connect_timeout_seconds: deadline of name resolution, TCP connect and handshake together.
        max_response_bytes: largest frame accepted.
        identity: who calls where more than a user name is needed; None: `user`, with simple authentication.
    """

    user: str
    connect_timeout_seconds: float
    max_response_bytes: int
    identity: Identity | None = None


class Connection:
    """Be one open connection; made by `open_connection`."""

    def __init__(
        self,
        address: Address,
        protocol: str,
        options: ConnectionOptions,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        outcome: Outcome | None = None,
    ) -> None:
        """Take over a connected socket and start the reader task.

        Args:
            address: the server's.
            protocol: Java interface name.
            options: limits and identity.
            streams: the socket.
            outcome: what the handshake has agreed on; None: there was none.
        """
        client_id = uuid.uuid4().bytes
        identity = options.identity or Identity(user=options.user)
        established = outcome.established if outcome else None
        effective_user, real_user = identity.context_users(outcome.method if outcome else SIMPLE)
        self.address = address
        self.method = outcome.method if outcome else SIMPLE
        self.lifetime_seconds = established.lifetime_seconds if established else None
        """How long the handshake's agreement held when it was made; None: without an end."""
        self.unknown_responses = 0
        self._reader, self._writer = streams
        self._encoder = framing.RequestEncoder(client_id=client_id, protocol=protocol)
        self._codec: Codec = PlainCodec(max_frame_bytes=options.max_response_bytes)
        if established is not None and established.layer is not None:
            self._codec = ProtectedCodec(established.layer, max_frame_bytes=options.max_response_bytes)
        # The server may refuse the header and close at once; sent alone, its answer would be lost in a broken pipe.
        # So header and context wait for the first call.
        self._header = b"" if outcome else framing.connection_header()
        self._context = framing.connection_context_frame(
            client_id=client_id, protocol=protocol, effective_user=effective_user, real_user=real_user
        )
        self._waiters: dict[int, asyncio.Future[framing.Response]] = {}
        self._next_call_id = 0
        self._received_frames = 0
        self._is_retired = False
        self._end: Callable[[], errors.HadoopRPCError] | None = None
        self._reader_task = asyncio.create_task(self._read_responses(), name=f"hadoop-rpc-reader {address}")

    @property
    def is_usable(self) -> bool:
        """Tell whether a new call may be put on this connection."""
        return self._end is None and not self._is_retired

    @property
    def calls_in_flight(self) -> int:
        """Count calls that wait for their response."""
        return len(self._waiters)

    async def call(self, method: str, request: bytes, *, timeout_seconds: float) -> bytes:
        """Send one call and wait for its response.

        Args:
            method: Java method name.
            request: serialized request message.
            timeout_seconds: deadline of sending and waiting together.

        Returns:
            The serialized response message.

        Raises:
            CallTimeoutError: no response in time. Where nothing at all arrived meanwhile the connection takes no more
                calls, since the peer may be gone without a word.
            ConnectError: the connection had ended before; nothing was sent.
            ConnectionLostError: the connection ended.
            ProtocolViolationError: the server broke the protocol.
            RemoteCallError: the server answered with an exception; its subclass says which.
        """
        if self._end is not None:
            raise errors.ConnectError(f"{method}: nothing was sent, {self._end()}")
        call_id = self._next_call_id
        self._next_call_id = (call_id + 1) & framing.CALL_ID_MASK
        waiter: asyncio.Future[framing.Response] = asyncio.get_running_loop().create_future()
        self._waiters[call_id] = waiter
        frames_before = self._received_frames
        try:
            async with asyncio.timeout(timeout_seconds):
                self._writer.write(self._encode(self._encoder.call_frame(call_id, method, request), method))
                await self._drain()
                response = await waiter
        except TimeoutError as error:
            if self._received_frames == frames_before:
                self._is_retired = True
            raise errors.CallTimeoutError(
                f"{method} on {self.address}: no answer within {timeout_seconds:.3g} s"
            ) from error
        finally:
            del self._waiters[call_id]
            if self._is_retired and not self._waiters:
                self._writer.close()
        if response.status is not framing.Status.SUCCESS:
            raise errors.from_remote_exception(
                response.exception_class_name, response.error_message, method=f"{method} on {self.address}"
            )
        return response.body

    def retire(self) -> None:
        """Take no more calls and close as soon as the last one has ended."""
        self._is_retired = True
        if not self._waiters:
            self._writer.close()

    async def aclose(self) -> None:
        """Close the socket and wait for the reader task; calls in flight fail with `ClientClosedError`."""
        self._finish(lambda: errors.ClientClosedError(f"connection to {self.address} was closed by this side"))
        self._reader_task.cancel()
        await asyncio.wait([self._reader_task])
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _encode(self, call_frame: bytes, method: str) -> bytes:
        """Give the bytes of a call, before the first one with header and context."""
        header, self._header = self._header, b""
        context, self._context = self._context, b""
        try:
            return header + self._codec.encode(context + call_frame)
        except errors.AuthenticationError as error:
            # What the layer would sign next has no partner any more: the session is over, nothing was sent.
            text = f"{method}: nothing was sent, the session with {self.address} is over: {error}"
            self._finish(lambda: errors.ConnectionLostError(text))
            raise errors.ConnectError(text) from error

    async def _drain(self) -> None:
        """Wait for room in the send buffer; a broken socket is reported by the reader, which fails the waiter."""
        with contextlib.suppress(OSError):
            await self._writer.drain()

    async def _read_responses(self) -> None:
        """Read until the connection ends, then fail every waiter."""
        end: Callable[[], errors.HadoopRPCError] = self._lost("closed by the server")
        try:
            while data := await self._reader.read(READ_BYTES):
                for response in self._codec.receive(data):
                    self._received_frames += 1
                    if response.status is framing.Status.FATAL:
                        end = self._refused(response)
                        return
                    self._deliver(response)
            self._codec.end()
        except errors.TruncatedFrameError as error:
            end = self._lost(str(error))
        except (errors.ProtocolViolationError, errors.AuthenticationError) as error:
            end = self._violated(error)
        except OSError as error:
            end = self._lost(error.strerror or type(error).__name__)
        finally:
            self._finish(end)

    def _deliver(self, response: framing.Response) -> None:
        waiter = self._waiters.get(response.call_id)
        if waiter is None or waiter.done():
            # A late answer to a call that timed out, or a confused server: nobody waits for it.
            self.unknown_responses += 1
            return
        waiter.set_result(response)

    def _finish(self, end: Callable[[], errors.HadoopRPCError]) -> None:
        """Close the socket and fail the waiters; the first reason given stays."""
        if self._end is None:
            self._end = end
        self._writer.close()
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_exception(self._end())
                # The caller may be cancelled before it looks; asyncio must not complain then.
                waiter.exception()

    def _lost(self, why: str) -> Callable[[], errors.HadoopRPCError]:
        return lambda: errors.ConnectionLostError(f"connection to {self.address} ended: {why}")

    def _violated(
        self, error: errors.ProtocolViolationError | errors.AuthenticationError
    ) -> Callable[[], errors.HadoopRPCError]:
        kind, text = type(error), f"{self.address}: {error}"
        return lambda: kind(text)

    def _refused(self, response: framing.Response) -> Callable[[], errors.HadoopRPCError]:
        def refused() -> errors.HadoopRPCError:
            return errors.from_remote_exception(
                response.exception_class_name,
                response.error_message,
                method=f"connection to {self.address} refused",
            )

        return refused


async def open_connection(address: Address, *, protocol: str, options: ConnectionOptions) -> Connection:
    """Resolve the host anew, connect, authenticate if the identity needs it, and start reading.

    Without authentication the first call carries the handshake.

    Raises:
        AuthenticationError: the two sides do not agree on who they are.
        ConnectError: no connection within the deadline of `options`.
        ProtocolViolationError: the peer does not speak this protocol.
        RemoteCallError: the server refused the connection.
    """
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(options.connect_timeout_seconds):
            reader, writer = await asyncio.open_connection(address.host, address.port, limit=READ_BYTES)
            # asyncio sets TCP_NODELAY itself on TCP sockets; stated here because latency depends on it.
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            outcome = None
            if options.identity is not None and options.identity.needs_handshake:
                outcome = await authenticate(options.identity, address, reader, writer)
        return Connection(address, protocol, options, (reader, writer), outcome)
    except TimeoutError as error:
        _abort(writer)
        step = "cannot connect to" if writer is None else "no end of the handshake with"
        raise errors.ConnectError(
            f"{step} {address}: no answer within {options.connect_timeout_seconds:.3g} s"
        ) from error
    except (OSError, UnicodeError) as error:
        _abort(writer)
        raise errors.ConnectError(f"cannot connect to {address}: {error}") from error
    except BaseException:
        _abort(writer)
        raise


def _abort(writer: asyncio.StreamWriter | None) -> None:
    """Close a socket that carries nothing yet, at once."""
    if writer is not None:
        writer.transport.abort()

# SPDX-License-Identifier: Apache-2.0
"""Serve one Hadoop RPC port on loopback."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping

from lab.embedded.yarn import wire
from lab.embedded.yarn.faults import Fault, FaultScript
from lab.embedded.yarn.sasl_server import Authentication, Session
from lab.embedded.yarn.stream import Stream
from yarn_copilot.hadoop.proto import rpc_pb2

Method = Callable[[bytes, str], bytes]
"""Takes the request message and the effective user, gives the response message or raises `Refusal`."""


class Refusal(Exception):
    """Answer a call with a Java exception."""

    def __init__(self, class_name: str, message: str) -> None:
        super().__init__(message)
        self.class_name = class_name
        self.message = message


class RPCServer:
    """Listen, read frames, call methods, answer; faults and counters are shared with the other ports."""

    def __init__(
        self,
        services: Mapping[str, Mapping[str, Method]],
        *,
        calls: Counter[str],
        faults: FaultScript,
        host: str = "127.0.0.1",
        authentication: Authentication | None = None,
    ) -> None:
        """Remember what to serve; `start` listens.

        Args:
            services: protocol name to the methods of the protocol.
            calls: counts calls by method.
            faults: what is to go wrong.
            host: address to listen on.
            authentication: what connections must prove; None: nothing.
        """
        self._services = services
        self._host = host
        self.authentication = authentication
        self._calls = calls
        self._faults = faults
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._conversations: set[asyncio.Task[None]] = set()
        self._late_answers: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections_accepted = 0
        self.idle_close_seconds: float | None = None

    @property
    def open_connections(self) -> int:
        """Count connections that are open now."""
        return len(self._connections)

    async def start(self) -> None:
        """Listen on loopback: on a free port the first time, on the same one after a stop."""
        self._server = await asyncio.start_server(self._serve, self._host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close port and connections; calls being answered are dropped."""
        if self._server is not None:
            self._server.close()
            for task in self._late_answers:
                task.cancel()
            # Closed connections end their conversations; asyncio 3.11 complains about cancelled ones.
            self.close_connections()
            if ending := self._conversations | self._late_answers:
                await asyncio.wait(ending)
            await self._server.wait_closed()
            self._server = None

    def close_connections(self) -> None:
        """Close every connection, as a server does with idle ones."""
        for writer in list(self._connections):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._conversations.add(task)
            task.add_done_callback(self._conversations.discard)
        self.connections_accepted += 1
        self._connections.add(writer)
        try:
            await self._converse(reader, writer)
        except (asyncio.IncompleteReadError, OSError, TimeoutError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        header = await reader.readexactly(wire.HEADER_BYTES)
        if header[:4] in (b"GET ", b"POST", b"HEAD"):
            writer.write(wire.HTTP_ANSWER)
            return
        session = None
        if header == wire.SASL_HEADER:
            session = await self._handshake(reader, writer)
            if session is None:
                return
        elif header == wire.EXPECTED_HEADER and self.authentication is not None:
            writer.write(self.authentication.refuse_simple())
            return
        elif header != wire.EXPECTED_HEADER:
            stranger = wire.Request(-1, b"", -1)
            writer.write(
                wire.failure(
                    stranger,
                    "org.apache.hadoop.ipc.RPC$VersionMismatch",
                    "Server IPC version 9 cannot communicate with client",
                    is_fatal=True,
                )
            )
            return
        stream = Stream(reader, writer, session)
        user = session.user if session else ""
        while True:
            request = await self._next_request(stream)
            if request.context is not None:
                user = self._user_of(request.context, session)
            elif request.call_id >= 0 and not await self._answer(request, user, stream):
                return

    async def _handshake(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Session | None:
        """Run SASL; None where the client was refused."""
        authentication = self.authentication or Authentication()
        stream = Stream(reader, writer, None)
        exchange = authentication.begin()
        while exchange.session is None:
            message = wire.read_sasl(await stream.read_frame(self.idle_close_seconds))
            answer = exchange.receive(message)
            writer.write(answer)
            await writer.drain()
            if exchange.is_refused:
                return None
        return exchange.session

    @staticmethod
    def _user_of(context: rpc_pb2.IpcConnectionContext, session: Session | None) -> str:
        named = context.user_info.effective_user
        if session is not None and session.user and named and named != session.user:
            raise OSError("a token speaks for its owner alone")
        return named or (session.user if session else "")

    async def _next_request(self, stream: Stream) -> wire.Request:
        try:
            return wire.read_request(await stream.read_frame(self.idle_close_seconds))
        except wire.BadRequestError as error:
            raise OSError(str(error)) from error

    async def _answer(self, request: wire.Request, user: str, writer: Stream) -> bool:
        """Answer a call; tells whether the connection goes on."""
        self._calls[request.method] += 1
        fault = self._faults.take(request.method)
        if fault is None:
            writer.write(self._execute(request, user))
            await writer.drain()
            return True
        if fault.delay_seconds:
            task = asyncio.create_task(self._answer_badly(request, user, writer, fault))
            self._late_answers.add(task)
            task.add_done_callback(self._late_answers.discard)
            return True
        await self._answer_badly(request, user, writer, fault)
        return not fault.closes

    async def _answer_badly(self, request: wire.Request, user: str, writer: Stream, fault: Fault) -> None:
        frame = self._execute(request, user) if fault.is_executed else wire.success(request, b"")
        if fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault.is_silent:
            return
        if fault.exception is not None:
            frame = wire.failure(request, *fault.exception, is_fatal=fault.is_fatal)
        if fault.spoil is not None:
            frame = fault.spoil(frame, request)
        with contextlib.suppress(OSError):
            writer.write(frame)
            await writer.drain()

    def _execute(self, request: wire.Request, user: str) -> bytes:
        methods = self._services.get(request.protocol)
        if methods is None:
            return wire.failure(
                request, "org.apache.hadoop.ipc.RpcNoSuchProtocolException", f"Unknown protocol: {request.protocol}"
            )
        method = methods.get(request.method)
        if method is None:
            return wire.failure(
                request,
                "org.apache.hadoop.ipc.RpcNoSuchMethodException",
                f"Unknown method {request.method} called on {request.protocol} protocol.",
            )
        try:
            return wire.success(request, method(request.body, user))
        except Refusal as refusal:
            return wire.failure(request, refusal.class_name, refusal.message)

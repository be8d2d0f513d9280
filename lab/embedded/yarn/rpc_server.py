# SPDX-License-Identifier: Apache-2.0
"""Serve one Hadoop RPC port on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import Counter
from collections.abc import Callable, Mapping

from lab.embedded.yarn import wire
from lab.embedded.yarn.faults import Fault, FaultScript

Method = Callable[[bytes, str], bytes]
"""Takes the request message and the effective user, gives the response message or raises `Refusal`."""

MAX_FRAME_BYTES = 134_217_728


class Refusal(Exception):
    """Answer a call with a Java exception."""

    def __init__(self, class_name: str, message: str) -> None:
        super().__init__(message)
        self.class_name = class_name
        self.message = message


class RPCServer:
    """Listen, read frames, call methods, answer; faults and counters are shared with the other ports."""

    def __init__(
        self, protocol: str, methods: Mapping[str, Method], *, calls: Counter[str], faults: FaultScript
    ) -> None:
        """Remember what to serve; `start` listens."""
        self._protocol = protocol
        self._methods = methods
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
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
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
        if header != wire.EXPECTED_HEADER:
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
        user = ""
        while True:
            request = await self._next_request(reader)
            if request.context is not None:
                user = request.context.user_info.effective_user
            elif request.call_id >= 0 and not await self._answer(request, user, writer):
                return

    async def _next_request(self, reader: asyncio.StreamReader) -> wire.Request:
        async with asyncio.timeout(self.idle_close_seconds):
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            if not 0 <= length <= MAX_FRAME_BYTES:
                raise OSError("frame of a wrong length")
            frame = await reader.readexactly(length)
        try:
            return wire.read_request(frame)
        except wire.BadRequestError as error:
            raise OSError(str(error)) from error

    async def _answer(self, request: wire.Request, user: str, writer: asyncio.StreamWriter) -> bool:
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

    async def _answer_badly(self, request: wire.Request, user: str, writer: asyncio.StreamWriter, fault: Fault) -> None:
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
        if request.protocol != self._protocol:
            return wire.failure(
                request, "org.apache.hadoop.ipc.RpcNoSuchProtocolException", f"Unknown protocol: {request.protocol}"
            )
        method = self._methods.get(request.method)
        if method is None:
            return wire.failure(
                request,
                "org.apache.hadoop.ipc.RpcNoSuchMethodException",
                f"Unknown method {request.method} called on {self._protocol} protocol.",
            )
        try:
            return wire.success(request, method(request.body, user))
        except Refusal as refusal:
            return wire.failure(request, refusal.class_name, refusal.message)

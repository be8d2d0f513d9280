# SPDX-License-Identifier: Apache-2.0
"""Read and write frames of one connection, protected where its SASL session says so."""

from __future__ import annotations

import asyncio
import struct

from lab.embedded.yarn import wire
from lab.embedded.yarn.sasl_server import Session
from yarn_copilot.hadoop.proto import rpc_pb2

MAX_FRAME_BYTES = 134_217_728


class Stream:
    """Be the frames of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: Session | None) -> None:
        """Take a socket and what its handshake agreed on."""
        self._reader = reader
        self._writer = writer
        self._layer = session.layer if session else None
        self._pieces = session.pieces if session else 1
        self._inner = bytearray()

    async def read_frame(self, idle_seconds: float | None) -> bytes:
        """Read one frame without its length; TimeoutError after so many seconds of silence."""
        async with asyncio.timeout(idle_seconds):
            if self._layer is None:
                return await self._read_outer()
            while len(self._inner) < 4 or len(self._inner) < 4 + struct.unpack_from(">i", self._inner)[0]:
                message = wire.read_sasl(await self._read_outer())
                if message.state != rpc_pb2.RpcSasl.WRAP:
                    raise OSError("a protected message is due")
                self._inner += self._layer.unwrap(message.token)
            (length,) = struct.unpack_from(">i", self._inner)
            frame = bytes(self._inner[4 : 4 + length])
            del self._inner[: 4 + length]
            return frame

    def write(self, data: bytes) -> None:
        """Send whole frames, or what a fault made of them."""
        if self._layer is None:
            self._writer.write(data)
            return
        size = max(1, -(-len(data) // self._pieces))
        for start in range(0, len(data), size):
            token = self._layer.wrap(data[start : start + size])
            self._writer.write(wire.sasl(rpc_pb2.RpcSasl(state=rpc_pb2.RpcSasl.WRAP, token=token)))

    async def drain(self) -> None:
        """Wait for room in the send buffer."""
        await self._writer.drain()

    async def _read_outer(self) -> bytes:
        (length,) = struct.unpack(">i", await self._reader.readexactly(4))
        if not 0 <= length <= MAX_FRAME_BYTES:
            raise OSError("frame of a wrong length")
        return await self._reader.readexactly(length)

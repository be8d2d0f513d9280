# SPDX-License-Identifier: Apache-2.0
"""Serve an aiohttp application under the limits that a server beside other people's work needs.

A connection must send its first request within some seconds, there are only so many of them, lines and bodies are
bounded, a slow body ends with 408. Whatever goes wrong is answered as JSON with one sentence.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from nm_proxy.copilot.answers import Problem
from nm_proxy.copilot.asks import MAX_BODY_BYTES, AskError
from yarn_copilot.errors import YarnCopilotError

logger = logging.getLogger(__name__)

FIRST_REQUEST_SECONDS: Final = 5.0
BODY_SECONDS: Final = 5.0
MAX_CONNECTIONS: Final = 64
_KEEPALIVE_SECONDS: Final = 15.0
_MAX_LINE: Final = 4096
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServerStartError(YarnCopilotError):
    """Say that an address or a socket's path cannot be listened on."""


class Listener:
    """Hold one listening application; start one of both kinds, once."""

    def __init__(self, app: web.Application) -> None:
        self._waiting: set[asyncio.BaseProtocol] = set()
        app.middlewares.append(self._note_request())
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            shutdown_timeout=1.0,
            max_line_size=_MAX_LINE,
            max_field_size=_MAX_LINE,
        )
        self._server: asyncio.AbstractServer | None = None

    async def serve_unix(self, bound: socket.socket) -> None:
        """Serve on a bound unix socket."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._protocol, sock=bound)

    async def serve_tcp(self, address: str, port: int, tls: ssl.SSLContext | None, *, section: str = "copilot") -> int:
        """Serve on a TCP port and give its number.

        Args:
            address: to bind to.
            port: 0 picks a free one.
            tls: None is plain HTTP.
            section: of the settings, in which address and port are.

        Raises:
            ServerStartError: the address is in use, not of this machine, or may not be used.
        """
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._protocol,
                address,
                port,
                ssl=tls,
                ssl_handshake_timeout=FIRST_REQUEST_SECONDS if tls else None,
            )
        except OSError as error:
            await self._runner.cleanup()
            raise ServerStartError(
                f"cannot listen on {address}:{port} ({error.strerror or error}); "
                f"set {section}.bind_address and {section}.port to a free address of this pod"
            ) from error
        return int(self._server.sockets[0].getsockname()[1])

    async def aclose(self) -> None:
        """Stop listening and end open connections."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _protocol(self) -> asyncio.BaseProtocol:
        """Make the protocol of a new connection and put it under the limits."""
        server = self._runner.server
        assert server is not None  # noqa: S101 - set by setup()
        protocol = server()
        is_too_many = len(server.connections) >= MAX_CONNECTIONS
        self._waiting.add(protocol)
        asyncio.get_running_loop().call_later(
            0.01 if is_too_many else FIRST_REQUEST_SECONDS, self._end_if_waiting, protocol
        )
        return protocol

    def _end_if_waiting(self, protocol: web.RequestHandler) -> None:
        if protocol in self._waiting:
            self._waiting.discard(protocol)
            if protocol.transport is not None:
                protocol.transport.abort()

    def _note_request(self) -> Middleware:
        @web.middleware
        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._waiting.discard(request.protocol)
            return await handler(request)

        return note


def json_answer(answer: object, status: int = 200) -> web.Response:
    """Shape a response."""
    return web.Response(
        body=msgspec.json.encode(answer), status=status, content_type="application/json", headers=_HEADERS
    )


async def read_body(request: web.Request) -> bytes:
    """Read a bounded body within a bounded time.

    Raises:
        web.HTTPRequestTimeout: it came too slowly.
        web.HTTPRequestEntityTooLarge: it is too large.
    """
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError as error:
        raise web.HTTPRequestTimeout(reason=f"the body did not come within {BODY_SECONDS:g} s") from error


def guard(endpoints: str) -> Middleware:
    """Turn whatever goes wrong into a JSON sentence.

    Args:
        endpoints: what exists, for whoever asks for something else.
    """

    @web.middleware
    async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except AskError as error:
            return json_answer(Problem(str(error)), 400)
        except web.HTTPMethodNotAllowed as error:
            response = json_answer(Problem(f"{error.method} is not allowed here"), 405)
            response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
            return response
        except web.HTTPNotFound:
            return json_answer(Problem(f"no such path; there are {endpoints}"), 404)
        except web.HTTPRequestEntityTooLarge:
            return json_answer(Problem(f"the body is larger than {MAX_BODY_BYTES} bytes"), 413)
        except web.HTTPException as error:
            return json_answer(Problem(error.reason), error.status)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except YarnCopilotError as error:
            logger.warning("A request failed", extra={"path": request.path[:256], "error": str(error)})
            return json_answer(Problem(str(error)), 500)
        except Exception:
            logger.exception("A request failed", extra={"path": request.path[:256]})
            return json_answer(Problem("internal error; the log of nm-proxy has the details"), 500)

    return answer_errors

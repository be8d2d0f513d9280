# SPDX-License-Identifier: Apache-2.0
"""Serve health, metrics, the read-only JSON API and one page over HTTP/1.1.

Nothing can be changed here: only GET and HEAD exist, bodies are not read, paths are bounded. Errors are JSON with
one sentence. The same server runs on a standby.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from yarn_copilot.controller.api import answers, page
from yarn_copilot.controller.api.reader import ControllerReader
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.observability import metrics as metrics_module
from yarn_copilot.observability.metrics import Metrics

logger = logging.getLogger(__name__)

_MAX_LINE: Final = 4096
_MAX_NAME: Final = 253
_KEEPALIVE_SECONDS: Final = 30.0
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_ENDPOINTS: Final = (
    "/healthz, /readyz, /metrics, /api/v1/status, /api/v1/nodes, /api/v1/nodes/NAME, "
    "/api/v1/nodes/NAME/explain, /api/v1/clusters, /api/v1/queues"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServerStartError(YarnCopilotError):
    """Say that the address cannot be listened on."""


class APIServer:
    """Hold the listening server; one per process."""

    def __init__(self, reader: ControllerReader, metrics: Metrics, *, bind_address: str, port: int) -> None:
        """Prepare; nothing listens before `start`. Port 0 picks a free one."""
        self._runner = web.AppRunner(
            build_app(reader, metrics),
            access_log=None,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            shutdown_timeout=1.0,
            max_line_size=_MAX_LINE,
            max_field_size=_MAX_LINE,
        )
        self._bind_address = bind_address
        self._port = port

    async def start(self) -> int:
        """Start to listen.

        Returns:
            The port.

        Raises:
            ServerStartError: the address is in use, not of this machine, or may not be used.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._bind_address, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ServerStartError(
                f"cannot listen on {self._bind_address}:{self._port} ({error.strerror or error}); "
                "set server.bind_address and server.port to a free address of this machine"
            ) from error
        self._port = int(self._runner.addresses[0][1])
        logger.info("Serving health, metrics and the API", extra={"address": self._bind_address, "port": self._port})
        return self._port

    async def aclose(self) -> None:
        """Stop listening and end open connections."""
        await self._runner.cleanup()


def build_app(reader: ControllerReader, metrics: Metrics) -> web.Application:
    """Build the application; see `APIServer` for the one that listens."""
    endpoints = _Endpoints(reader, metrics)
    app = web.Application(middlewares=[_guard(reader)], client_max_size=1024)
    app.router.add_get("/", endpoints.page)
    app.router.add_get("/healthz", endpoints.healthz)
    app.router.add_get("/readyz", endpoints.readyz)
    app.router.add_get("/metrics", endpoints.metrics)
    app.router.add_get("/api/v1/status", endpoints.status)
    app.router.add_get("/api/v1/nodes", endpoints.nodes)
    app.router.add_get("/api/v1/nodes/{name}", endpoints.node)
    app.router.add_get("/api/v1/nodes/{name}/explain", endpoints.explain)
    app.router.add_get("/api/v1/clusters", endpoints.clusters)
    app.router.add_get("/api/v1/queues", endpoints.queues)
    return app


class _Endpoints:
    def __init__(self, reader: ControllerReader, metrics: Metrics) -> None:
        self._reader = reader
        self._metrics = metrics

    async def healthz(self, request: web.Request) -> web.Response:
        answer = answers.health(self._reader)
        return _json(answer, 200 if answer.ok else 503)

    async def readyz(self, request: web.Request) -> web.Response:
        answer = answers.readiness(self._reader)
        return _json(answer, 200 if answer.ok else 503)

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """Send one family at a time: between two, other tasks (the lease's renewal) get their turn."""
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": metrics_module.CONTENT_TYPE})
        await response.prepare(request)
        for chunk in self._metrics.chunks():
            await response.write(chunk)
            await asyncio.sleep(0)
        await response.write_eof()
        return response

    async def status(self, request: web.Request) -> web.Response:
        return _json(answers.status(self._reader))

    async def nodes(self, request: web.Request) -> web.Response:
        return _json(answers.nodes(self._reader))

    async def node(self, request: web.Request) -> web.Response:
        name = request.match_info["name"][:_MAX_NAME]
        answer = answers.node(self._reader, name)
        return _json(answer) if answer else self._unknown_node(name)

    async def explain(self, request: web.Request) -> web.Response:
        name = request.match_info["name"][:_MAX_NAME]
        answer = answers.explain(self._reader, name)
        return _json(answer) if answer else self._unknown_node(name)

    async def clusters(self, request: web.Request) -> web.Response:
        return _json(answers.clusters(self._reader))

    async def queues(self, request: web.Request) -> web.Response:
        return _json(answers.queues(self._reader))

    async def page(self, request: web.Request) -> web.Response:
        return web.Response(
            text=page.PAGE,
            content_type="text/html",
            charset="utf-8",
            headers={**_HEADERS, "Content-Security-Policy": page.CONTENT_SECURITY_POLICY},
        )

    def _unknown_node(self, name: str) -> web.Response:
        message = f"node {name!r} is not known: it does not exist, or nothing joins it to YARN; see /api/v1/nodes"
        return _json(answers.error(self._reader, message), 404)


def _json(answer: answers.Answer, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(answer), status=status, content_type="application/json", headers=_HEADERS
    )


def _guard(reader: ControllerReader) -> Middleware:
    """Turn whatever goes wrong into a JSON sentence."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPMethodNotAllowed as error:
            response = _json(answers.error(reader, f"{request.method} is not allowed: this API only reads"), 405)
            response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
            return response
        except web.HTTPNotFound:
            return _json(answers.error(reader, f"no such path; there are {_ENDPOINTS}"), 404)
        except web.HTTPException as error:
            return _json(answers.error(reader, error.reason), error.status)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            logger.exception("An API request failed", extra={"path": request.path[:_MAX_NAME]})
            return _json(answers.error(reader, "internal error; the controller's log has the details"), 500)

    return guard

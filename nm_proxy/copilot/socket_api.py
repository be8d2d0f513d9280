# SPDX-License-Identifier: Apache-2.0
"""Serve koordlet or an operator over a unix socket, compatible with the protocol that the Go bridge published.

GET /health, /information, /v1/containers, /v1/container?containerID=; POST /v1/killContainer,
/v1/killContainersByResource. Who may call is the kernel's word on the peer, not a header.
"""

from __future__ import annotations

import asyncio
import logging
import socket as sockets
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from nm_proxy.copilot import answers, unix_socket
from nm_proxy.copilot.asks import MAX_BODY_BYTES, checked_container_id, parse_kill_by_resource, parse_kill_container
from nm_proxy.copilot.node import CopilotNode
from nm_proxy.copilot.serving import Listener, guard, json_answer, read_body

logger = logging.getLogger(__name__)

_ENDPOINTS: Final = (
    "/health, /information, /v1/containers, /v1/container?containerID=, /v1/killContainer, /v1/killContainersByResource"
)
_ASKED_BY: Final = "api"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SocketAPI:
    """Hold the socket; one per process."""

    def __init__(self, node: CopilotNode, path: Path, *, allowed_uids: Collection[int]) -> None:
        """Prepare; nothing listens before `start`."""
        self._path = path
        self._listener = Listener(build_app(node, allowed_uids))
        self._socket: sockets.socket | None = None

    async def start(self) -> None:
        """Start to listen.

        Raises:
            ServerStartError: the path cannot be used.
        """
        self._socket = unix_socket.bind(self._path)
        await self._listener.serve_unix(self._socket)
        logger.info("Serving containers on a socket", extra={"socket": str(self._path)})

    async def aclose(self) -> None:
        """Stop listening and remove the socket."""
        if self._socket is None:
            return
        await self._listener.aclose()
        self._socket.close()
        unix_socket.remove(self._path)


def build_app(node: CopilotNode, allowed_uids: Collection[int]) -> web.Application:
    """Build the application; see `SocketAPI` for the one that listens."""
    endpoints = _Endpoints(node)
    app = web.Application(middlewares=[guard(_ENDPOINTS), _only(allowed_uids)], client_max_size=MAX_BODY_BYTES)
    app.router.add_get("/health", endpoints.health)
    app.router.add_get("/information", endpoints.information)
    app.router.add_get("/v1/containers", endpoints.containers)
    app.router.add_get("/v1/container", endpoints.container)
    app.router.add_post("/v1/killContainer", endpoints.kill_container)
    app.router.add_post("/v1/killContainersByResource", endpoints.kill_by_resource)
    return app


class _Endpoints:
    def __init__(self, node: CopilotNode) -> None:
        self._node = node

    async def health(self, request: web.Request) -> web.Response:
        return json_answer(answers.Health(status="ok", node_manager=self._node.view().answering.value))

    async def information(self, request: web.Request) -> web.Response:
        return json_answer(answers.Information())

    async def containers(self, request: web.Request) -> web.Response:
        return json_answer([answers.container_info(one) for one in await self._node.containers()])

    async def container(self, request: web.Request) -> web.Response:
        container_id = checked_container_id(request.query.get("containerID"))
        container = await asyncio.to_thread(self._node.catalog.one, container_id)
        if container is None:
            return _unknown(container_id)
        return json_answer(answers.container_info(container))

    async def kill_container(self, request: web.Request) -> web.Response:
        container_id = parse_kill_container(await read_body(request))
        timeout_seconds = self._node.kill_timeout_seconds()
        ended = await self._node.killer.end(container_id, timeout_seconds=timeout_seconds, asked_by=_ASKED_BY)
        if ended is None:
            return _unknown(container_id)
        if ended.error:
            return json_answer(answers.Problem(ended.error), 500)
        return json_answer(answers.killed(ended))

    async def kill_by_resource(self, request: web.Request) -> web.Response:
        asked = parse_kill_by_resource(await read_body(request), self._node.largest_ask())
        timeout_seconds = self._node.kill_timeout_seconds()
        room = await self._node.killer.make_room(asked, timeout_seconds=timeout_seconds, asked_by=_ASKED_BY)
        return json_answer(answers.killed_by_resource(room))


def _unknown(container_id: str) -> web.Response:
    """Answer 400, the published server's status for a container that it does not know."""
    return json_answer(answers.Problem(f"no processes of {container_id} are in a cgroup here"), 400)


def _only(allowed_uids: Collection[int]) -> Middleware:
    """Let only some users in, by the kernel's word."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        transport_socket = request.transport.get_extra_info("socket") if request.transport else None
        peer = unix_socket.peer_of(transport_socket) if transport_socket else None
        if peer is None or peer.uid not in allowed_uids:
            uid = peer.uid if peer else "unknown"
            logger.warning("Refused a caller", extra={"uid": uid, "pid": peer.pid if peer else "unknown"})
            return json_answer(answers.Problem(f"user {uid} may not call; see copilot.allowed_uids"), 403)
        return await handler(request)

    return check

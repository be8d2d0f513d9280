# SPDX-License-Identifier: Apache-2.0
"""Answer /ws/v1/node/{info,containers,apps} as a NodeManager does, or as a broken one does."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from aiohttp import web

from lab.embedded.node_manager import documents


class Mood(StrEnum):
    """Choose how the pages are answered."""

    FINE = "fine"
    HANGS = "hangs"
    DRIPS = "drips"
    CUTS = "cuts"
    BABBLES = "babbles"
    ENORMOUS = "enormous"
    FAILS = "fails"
    UNAUTHORIZED = "unauthorized"
    REDIRECTS = "redirects"


@dataclass
class EmbeddedNodeManager:
    """Be one NodeManager's web application; `async with` starts and stops it.

    Attributes:
        containers: by id; each has `state`, `memory_mib`, `vcores` and perhaps `opportunistic`.
        mood: how to answer.
        calls: paths asked for.
        single_as_object: write a list of one as a bare object, as Jersey 1 can.
    """

    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    mood: Mood = Mood.FINE
    calls: list[str] = field(default_factory=list)
    single_as_object: bool = False
    challenge: str = "Negotiate"
    node_id: str = "localhost:8041"
    url: str = ""
    port: int = 0

    def add(self, name: str, *, vcores: int = 2, memory_mib: int = 1024, opportunistic: bool = False) -> None:
        """Add a running container."""
        self.containers[name] = {
            "state": "RUNNING",
            "vcores": vcores,
            "memory_mib": memory_mib,
            "opportunistic": opportunistic,
        }

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        app = web.Application()
        app.router.add_get("/ws/v1/node/{page}", self._page)
        self._waiting = asyncio.Event()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self.url = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Stop to listen."""
        self._waiting.set()
        await self._runner.cleanup()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(str(request.rel_url))
        match self.mood:
            case Mood.HANGS:
                await self._waiting.wait()
                return web.Response(status=503)
            case Mood.DRIPS:
                return await self._drip(request)
            case Mood.CUTS:
                return await self._cut(request)
            case Mood.BABBLES:
                return web.Response(text="<html>There is no NodeManager here</html>", content_type="text/html")
            case Mood.ENORMOUS:
                return web.Response(body=b'{"containers": "' + b"x" * 2_000_000 + b'"}')
            case Mood.FAILS:
                return web.json_response({"RemoteException": {"message": "NullPointerException"}}, status=500)
            case Mood.UNAUTHORIZED:
                return web.Response(status=401, headers={"WWW-Authenticate": self.challenge})
            case Mood.REDIRECTS:
                raise web.HTTPTemporaryRedirect("/elsewhere")
        return web.json_response(self._document(request.match_info["page"]))

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not self._waiting.is_set():
            await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(json.dumps(self._document("containers")).encode()[:20])
        if request.transport is not None:
            request.transport.abort()
        return response

    def _document(self, page: str) -> dict[str, Any]:
        if page == "info":
            return documents.info(self.node_id)
        if page == "apps":
            return documents.applications()
        return documents.containers(list(self.containers.items()), single_as_object=self.single_as_object)

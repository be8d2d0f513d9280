# SPDX-License-Identifier: Apache-2.0
"""Serve /healthz, /readyz and /metrics for kubelet and Prometheus; reading only, no secrets in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from msgspec import Struct

from nm_proxy.agent_metrics import CONTENT_TYPE
from nm_proxy.copilot.serving import Listener, guard, json_answer
from nm_proxy.settings import HealthSettings
from nm_proxy.supervisor.conditions import Condition, why_not_healthy, why_not_ready

PATHS: Final = ("/healthz", "/readyz", "/metrics")


class Told(Struct, frozen=True):
    """Shape both probes' answers."""

    ok: bool
    reasons: list[str]
    node_manager: str
    answering: str
    connected: bool
    drain: str
    containers: int | None
    failures: int
    configuration_error: str


class HealthServer:
    """Hold the listening server."""

    def __init__(
        self,
        settings: Callable[[], HealthSettings],
        condition: Callable[[], Awaitable[Condition]],
        metrics: Callable[[], Awaitable[bytes]],
    ) -> None:
        self._settings = settings
        self._condition = condition
        self._metrics = metrics
        app = web.Application(middlewares=[guard(", ".join(PATHS))], client_max_size=1024)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)
        self._listener = Listener(app)

    async def start(self) -> int | None:
        """Listen and give the port; None where no port is configured.

        Raises:
            ServerStartError: the address cannot be used.
        """
        settings = self._settings()
        if settings.port is None:
            return None
        return await self._listener.serve_tcp(settings.bind_address, settings.port, None, section="health")

    async def aclose(self) -> None:
        """Stop listening."""
        await self._listener.aclose()

    async def _healthz(self, _: web.Request) -> web.Response:
        seen = await self._condition()
        reason = why_not_healthy(seen, start_failures=self._settings().start_failures)
        return _answer(seen, [reason] if reason else [])

    async def _readyz(self, _: web.Request) -> web.Response:
        seen = await self._condition()
        return _answer(seen, why_not_ready(seen))

    async def _show_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=await self._metrics(), headers={"Content-Type": CONTENT_TYPE})


def _answer(seen: Condition, reasons: list[str]) -> web.Response:
    told = Told(
        ok=not reasons,
        reasons=reasons,
        node_manager=seen.phase.value,
        answering=seen.answering.value,
        connected=seen.is_connected,
        drain=seen.drain.value,
        containers=seen.containers,
        failures=seen.failures,
        configuration_error=seen.configuration_error,
    )
    return json_answer(told, 503 if reasons else 200)

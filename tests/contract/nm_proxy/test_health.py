# SPDX-License-Identifier: Apache-2.0
"""Health and readiness over HTTP, and an agent that fails and comes back, beside a NodeManager of every mood."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lab.embedded.node_manager.server import EmbeddedNodeManager, Mood
from nm_proxy.agent import Agent, Surroundings
from nm_proxy.agent_settings import AgentSettings
from nm_proxy.clock import SystemClock
from nm_proxy.copilot.serving import ServerStartError
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.rendering.overlay import Overlay
from nm_proxy.settings import HealthSettings, NodeSettings
from nm_proxy.supervisor.agent_runner import AgentRunner
from nm_proxy.supervisor.conditions import Condition, Phase
from nm_proxy.supervisor.health_server import HealthServer
from nm_proxy.supervisor.metrics import SupervisorMetrics
from nm_proxy.supervisor.process import Launcher
from nm_proxy.supervisor.supervisor import Rendering, Supervisor
from tests.contract.nm_proxy.running import until
from tests.unit.nm_proxy.test_killing import KernelSignaller
from tests.unit.nm_proxy.world import Node


class QuickClock(SystemClock):
    """Sleep a hundredth of what is asked."""

    async def sleep(self, seconds: float) -> None:
        """Sleep a little."""
        await asyncio.sleep(seconds / 100)


class Scene:
    """Hold a supervisor whose NodeManager is `sleep`, whose pages are made up, and its health server."""

    def __init__(self, folder: Path, pages: EmbeddedNodeManager) -> None:
        self.node = Node(folder)
        self.refusals = 0
        self.settings = NodeSettings.model_validate(
            {
                "cgroup": {"root": str(self.node.kernel.root)},
                "node_manager": {
                    "url": pages.url,
                    "local_directories": [str(self.node.local)],
                    "poll_interval_seconds": 0.1,
                    "timeout_seconds": 0.5,
                },
                "copilot": {"socket": str(folder / "s" / "copilot.sock")},
                "supervisor": {"restart_min_seconds": 0.1},
                "health": {"bind_address": "127.0.0.1", "port": 0},
            }
        )
        overlay = Overlay(
            properties={}, host="h", port=1, listens_at="h", web_url=pages.url, local_directories=(),
            recovery_directory=None, tracker_ports=frozenset({1}),
            memory_mib=1, vcores=1, minimum_memory_mib=1, minimum_vcores=1,
        )  # fmt: skip
        self.runner = AgentRunner(self.settings, clock=QuickClock(), make=self._make)
        self.supervisor = Supervisor(
            self.settings,
            Launcher(["sleep", "600"], state_dir=folder / "state", user=None),
            Rendering(write=lambda: overlay, environ={"PATH": "/usr/bin:/bin"}, overlay=overlay),
            self.runner,
            clock=QuickClock(),
            metrics=SupervisorMetrics(),
        )
        self.health = HealthServer(
            lambda: self.settings.health, self.supervisor.condition, self.supervisor.render_metrics
        )
        self.port: int | None = None

    def _make(self, settings: AgentSettings) -> Agent:
        if self.refusals:
            self.refusals -= 1
            raise ServerStartError("the socket is in use")
        around = Surroundings(
            files=self.node.kernel,
            mounts=self.node.mounts,
            processes=ProcessReader(str(self.node.kernel.processes.directory)),
            signaller=KernelSignaller(self.node.kernel),
            clock=SystemClock(),
        )
        return Agent(settings, around)

    async def get(self, path: str, method: str = "GET") -> tuple[int, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"http://127.0.0.1:{self.port}{path}") as response,
        ):
            is_json = response.content_type == "application/json"
            return response.status, await (response.json() if is_json else response.text())

    async def reasons(self) -> str:
        return " ".join((await self.get("/readyz"))[1]["reasons"])


@contextlib.asynccontextmanager
async def scene(folder: Path, *, refusals: int = 0) -> AsyncIterator[tuple[Scene, EmbeddedNodeManager]]:
    async with EmbeddedNodeManager() as pages:
        one = Scene(folder, pages)
        one.refusals = refusals
        one.port = await one.health.start()
        task = asyncio.create_task(one.supervisor.run())
        try:
            yield one, pages
        finally:
            one.supervisor.request_stop()
            await asyncio.wait_for(task, 30)
            await one.health.aclose()


async def test_readiness_follows_the_node_managers_mood(tmp_path: Path) -> None:
    async with scene(tmp_path) as (one, pages):
        await until(lambda: _has(one, "no connection to a ResourceManager"), "the pages answer")
        assert (await one.get("/readyz"))[0] == 503
        pages.mood = Mood.HANGS
        await until(lambda: _has(one, "pages: hangs"), "hanging is seen")
        pages.mood = Mood.BABBLES
        await until(lambda: _has(one, "pages: babbles"), "babbling is seen")
        status, told = await one.get("/healthz")
        assert (status, told["ok"], told["node_manager"]) == (200, True, "running")
        assert one.supervisor.process is not None
        assert one.runner.agent is not None
        assert one.runner.agent.reader.view.is_running is True
        status, text = await one.get("/metrics")
        assert status == 200
        for family in (
            "yarn_copilot_node_ready 0.0",
            'manager_phase{phase="running"} 1.0',
            "yarn_copilot_node_containers",
        ):
            assert family in text


async def _has(one: Scene, words: str) -> bool:
    return words in await one.reasons()


async def test_what_nobody_serves_is_named(tmp_path: Path) -> None:
    async with scene(tmp_path) as (one, _):
        assert (await one.get("/healthz", "POST"))[0] == 405
        status, told = await one.get("/v1/kill")
        assert status == 404
        assert "/healthz, /readyz, /metrics" in str(told)


async def test_an_agent_that_cannot_start_is_tried_again_and_shows_in_readiness(tmp_path: Path) -> None:
    async with scene(tmp_path, refusals=20) as (one, _):
        await until(lambda: _has(one, "the agent does not work: the socket is in use"), "the reason is told")
        await until(one.runner.is_serving.is_set, "the agent works")
        assert "the agent" not in await one.reasons()


async def test_a_node_manager_that_ends_is_started_again_until_the_stop(tmp_path: Path) -> None:
    async with scene(tmp_path) as (one, _):
        await until(lambda: one.supervisor.process is not None, "it runs")
        first = one.supervisor.process
        assert first is not None
        first.signal(signal.SIGKILL)
        await until(
            lambda: one.supervisor.process is not None and one.supervisor.process.pid != first.pid, "another one runs"
        )
    assert one.supervisor.process is None
    assert (await one.supervisor.condition()).phase is Phase.STOPPED


async def test_without_a_port_nothing_is_served_and_a_bad_address_is_an_error(tmp_path: Path) -> None:
    async def condition() -> Condition:
        return Condition(phase=Phase.RUNNING)

    async def metrics() -> bytes:
        return b""

    assert await HealthServer(lambda: HealthSettings(port=None), condition, metrics).start() is None
    server = HealthServer(lambda: HealthSettings(bind_address="192.0.2.1"), condition, metrics)
    with pytest.raises(ServerStartError, match=r"set health\.bind_address and health\.port"):
        await server.start()

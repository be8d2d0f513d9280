# SPDX-License-Identifier: Apache-2.0
"""Run a whole agent over a made-up kernel and NodeManager."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiohttp

from lab.embedded.cgroup.processes import FakeProcess
from lab.embedded.node_manager.server import EmbeddedNodeManager
from nm_proxy.agent import Agent, Surroundings
from nm_proxy.agent_settings import AgentSettings
from nm_proxy.clock import SystemClock
from nm_proxy.nodemanager.processes import ProcessReader
from tests.unit.nm_proxy.test_killing import KernelSignaller
from tests.unit.nm_proxy.world import Node, container_id

DEADLINE_SECONDS: Final = 20.0


class RunningNode:
    """Hold a node whose agent runs."""

    def __init__(self, folder: Path, node: Node, pages: EmbeddedNodeManager, **sections: dict[str, Any]) -> None:
        self.node = node
        self.pages = pages
        self.boot = time.time() - 1_000_000.0
        self.task: asyncio.Task[None] | None = None
        self.socket = folder / "s" / "copilot.sock"
        document: dict[str, Any] = {
            "cgroup": {"root": str(node.kernel.root)},
            "node_manager": {
                "url": pages.url,
                "local_directories": [str(node.local)],
                "poll_interval_seconds": 0.2,
                "timeout_seconds": 0.5,
            },
            "parenting": {"interval_seconds": 0.2},
            "copilot": {"socket": str(self.socket), "kill_timeout_seconds": 5},
        }
        for name, section in sections.items():
            document[name] = {**document.get(name, {}), **section}
        self.settings = AgentSettings.model_validate(document)
        self.agent = Agent(
            self.settings,
            Surroundings(
                files=node.kernel,
                mounts=node.mounts,
                processes=ProcessReader(str(node.kernel.processes.directory), boot_time=lambda: self.boot),
                signaller=KernelSignaller(node.kernel),
                clock=SystemClock(),
            ),
        )

    async def end(self) -> None:
        """End the agent, as its death does for all others to see."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    def launch(self, number: int = 2, *, vcores: int = 2, memory_mib: int = 1024, **options: bool) -> FakeProcess:
        """Launch a container: the NodeManager lists it, its process starts, its pid file appears."""
        name = container_id(number)
        self.pages.add(name, vcores=vcores, memory_mib=memory_mib, **options)
        now = time.time()
        self.node.kernel.processes.now_ticks = int((now - self.boot) * 100)
        process = self.node.kernel.processes.start(
            parent=self.node.node_manager.pid, environment={"CONTAINER_ID": name}
        )
        self.node.write_pid_file(name, str(process.pid), at=now)
        return process

    async def settled(self, *numbers: int) -> None:
        """Wait until containers are inside with their limits in force."""
        for number in numbers:
            await until(functools.partial(self._is_done, number), f"container {number} is settled")

    async def call(self, method: str, path: str, body: object = None, **options: Any) -> tuple[int, Any]:
        """Call the socket."""
        connector = aiohttp.UnixConnector(path=str(self.socket))
        async with aiohttp.ClientSession(connector=connector) as session:
            arguments = options if body is None else {"json": body, **options}
            async with session.request(method, f"http://copilot{path}", **arguments) as response:
                return response.status, await response.json()

    def is_alive(self, process: FakeProcess) -> bool:
        """Tell whether a process lives."""
        return process.pid in self.node.kernel.processes.by_pid

    def _is_done(self, number: int) -> bool:
        state = self.agent.adopter.states.get(container_id(number))
        return state is not None and state.is_done


@contextlib.asynccontextmanager
async def running(folder: Path, *, kind: str = "v1", **sections: dict[str, Any]) -> AsyncIterator[RunningNode]:
    """Run an agent; leave the block and it is gone."""
    async with EmbeddedNodeManager() as pages:
        one = RunningNode(folder, Node(folder, kind=kind), pages, **sections)
        one.task = task = asyncio.create_task(one.agent.run())
        serving = asyncio.create_task(one.agent.is_serving.wait())
        try:
            await asyncio.wait([task, serving], return_when=asyncio.FIRST_COMPLETED, timeout=DEADLINE_SECONDS)
            if task.done():
                task.result()
            yield one
        finally:
            serving.cancel()
            task.cancel()
            await asyncio.gather(task, serving, return_exceptions=True)


async def until(holds: Callable[[], bool | Awaitable[bool]], what: str) -> None:
    """Wait for something, looking often."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                result = holds()
                if result if isinstance(result, bool) else await result:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError as error:
        raise AssertionError(f"not within {DEADLINE_SECONDS:g} s: {what}") from error

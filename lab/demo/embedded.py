# SPDX-License-Identifier: Apache-2.0
"""Play on servers inside this process: same wire protocols, placement first fit, containers as records.

The product's controller is a process of its own here too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from batch_resources.resources import YarnResources
from lab.controller import ControllerProcess, Program
from lab.demo.agreement import Aim
from lab.demo.backend import (
    CONTAINER,
    CONTROLLER_USER,
    MACHINE,
    QUEUE,
    DemoNode,
    Settings,
    WriteCounts,
    YarnReading,
)
from lab.demo.health import controller_trouble, read_aims
from lab.embedded.kubernetes import EmbeddedKubernetes
from lab.embedded.kubernetes.calls import WRITES
from lab.embedded.yarn import EmbeddedContainer, EmbeddedYarn
from lab.embedded.yarn.web_service import EmbeddedWebService
from lab.koordinator.api import Credentials
from lab.processes.group import ProcessGroup
from lab.processes.state import StateFolder
from yarn_copilot.hadoop.model import NodeId

_FLOOR: Final = YarnResources(memory_mib=1024, vcores=1)
_PORT: Final = 8041
_OTHER_KINDS: Final = ("leases", "events")


class EmbeddedWorkload:
    """Hold records of containers at an embedded ResourceManager."""

    def __init__(self, yarn: EmbeddedYarn) -> None:
        """Register an application."""
        self._yarn = yarn
        self._application = yarn.new_application()
        self._seen: set[int] = set()

    async def ask(self, count: int) -> None:
        """Ask for containers; heartbeats place them."""
        self._yarn.ask(
            QUEUE,
            memory_mib=CONTAINER.memory_mib,
            vcores=CONTAINER.vcores,
            count=count,
            application=self._application,
        )

    async def withdraw(self) -> None:
        """Take pending asks back."""
        for ask in self._yarn.state.asks:
            if ask.application == self._application:
                ask.count = 0

    async def release(self, count: int) -> None:
        """End the newest containers well."""
        newest = sorted(self._running(), key=lambda container: container.number, reverse=True)
        for container in newest[:count]:
            self._yarn.finish_container(container)

    def held(self) -> int:
        """Count running containers."""
        return len(self._running())

    def started(self) -> int:
        """Count the containers that run or have run."""
        finished = [one for one in self._yarn.state.finished if one.application == self._application]
        return len(self._running()) + len(finished)

    async def killed(self) -> int:
        """Count the containers that a capacity change took away."""
        return len(self._yarn.killed())

    def _running(self) -> list[EmbeddedContainer]:
        return list(self._yarn.running(self._application))


class EmbeddedBackend:
    """Run everything inside `async with`."""

    name = "embedded"

    def __init__(self, node_count: int) -> None:
        """Name the nodes; nothing listens yet."""
        self.floor = _FLOOR
        self.nodes = tuple(
            DemoNode(
                name=f"node-{number}",
                node_id=f"nm-{number}.lab.internal:{_PORT}",
                host_name=f"nm-{number}.lab.internal",
                address=f"127.0.1.{number}",
                capacity=MACHINE,
            )
            for number in range(1, node_count + 1)
        )
        self._kubernetes = EmbeddedKubernetes()
        self._yarn = EmbeddedYarn()
        self._web = EmbeddedWebService(self._yarn)
        self._token = self._kubernetes.add_user(CONTROLLER_USER)
        self._stack = AsyncExitStack()
        self._group: ProcessGroup | None = None
        self._controller: ControllerProcess | None = None
        self.workload = EmbeddedWorkload(self._yarn)

    async def __aenter__(self) -> EmbeddedBackend:
        async with AsyncExitStack() as stack:
            self._group = ProcessGroup(StateFolder())
            stack.push_async_callback(asyncio.to_thread, self._group.close)
            await stack.enter_async_context(self._kubernetes)
            await stack.enter_async_context(self._yarn)
            await stack.enter_async_context(self._web)
            for node in self.nodes:
                self._yarn.add_node(node.host_name, _PORT, memory_mib=_FLOOR.memory_mib, vcores=_FLOOR.vcores)
            scheduler = asyncio.create_task(self._kubernetes.scheduler().run(), name="first-fit-scheduler")
            stack.push_async_callback(_cancel, scheduler)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._controller is not None:
            await asyncio.to_thread(self._controller.terminate)
        await self._stack.aclose()

    def kubernetes(self) -> Credentials:
        """Give the administrator's credentials."""
        return Credentials(server=self._kubernetes.url, token=self._kubernetes.token)

    async def read_yarn(self) -> Mapping[str, YarnReading]:
        """Look at the embedded ResourceManager's own books, as a node report shows them now."""
        readings = {}
        for node in self.nodes:
            known = self._yarn.state.nodes.get(NodeId(node.host_name, _PORT))
            if known is not None:
                used, _ = known.scheduler.visible_use(self._yarn.now())
                total = known.scheduler.total
                readings[node.node_id] = YarnReading(
                    capacity=YarnResources(memory_mib=total.memory_mib, vcores=total.vcores),
                    used=YarnResources(memory_mib=used.memory_mib, vcores=used.vcores),
                )
        return readings

    async def read_aims(self) -> Mapping[str, Aim]:
        """Ask the controller's API."""
        return await asyncio.to_thread(read_aims, self._controller)

    async def start_controller(self, settings: Settings, program: Program | None = None) -> None:
        """Run the product as a process."""
        if self._group is None:
            raise RuntimeError("open the backend first")
        folder = self._group.state.folder("embedded")
        conf_dir = self._yarn.conf_dir(folder / "conf", web_port=self._web.port)
        full: Settings = {
            **settings,
            "kubernetes": {
                "kubeconfig": str(self._kubernetes.kubeconfig(folder / "controller.kubeconfig", token=self._token))
            },
            "hadoop": {**settings["hadoop"], "conf_dir": str(conf_dir)},
            "yarn": {
                **settings["yarn"],
                "floor_memory_mib": self.floor.memory_mib,
                "floor_vcores": self.floor.vcores,
            },
        }
        self._controller = ControllerProcess.in_lab(
            self._group, name="controller", config=full, kubernetes=None, yarn=None, program=program
        )
        self._controller.start()
        await asyncio.to_thread(self._controller.wait_ready)

    async def start_workload(self) -> None:
        """Do nothing: the application is a number."""

    async def controller_trouble(self) -> str | None:
        """Ask the process and its health pages."""
        return await asyncio.to_thread(controller_trouble, self._controller)

    async def count_writes(self) -> WriteCounts:
        """Read the call logs of both servers."""
        calls = self._kubernetes.calls
        other = {kind: calls.writes(kind, user=CONTROLLER_USER) for kind in _OTHER_KINDS}
        return WriteCounts(
            kubernetes=sum(calls.count(verb, "nodes", user=CONTROLLER_USER) for verb in WRITES),
            yarn=self._yarn.calls["updateNodeResource"],
            other={kind: count for kind, count in other.items() if count},
        )


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

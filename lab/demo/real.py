# SPDX-License-Identifier: Apache-2.0
"""Play on real servers: etcd, kube-apiserver, kube-scheduler, a ResourceManager and NodeManagers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from batch_resources.resources import YarnResources
from lab.cluster import Lab
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
from lab.errors import LabError
from lab.hadoop.application import Application
from lab.hadoop.options import YarnOptions
from lab.koordinator.api import Credentials, read_kubeconfig
from lab.kubernetes.credentials import User

_WRITES: Final = frozenset({"create", "update", "patch", "delete"})
_STOP_TIMEOUT_SECONDS: Final = 15.0
_CALL_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)


def lab_users() -> list[User]:
    """Give the user as whom the controller calls, so that its writes can be told apart in the audit log."""
    return [User(name=CONTROLLER_USER, groups=["system:masters"])]


def yarn_options() -> YarnOptions:
    """Give NodeManagers that measure often: it is by what they measure that they are known to have been heard."""
    return YarnOptions(properties={"yarn.nodemanager.resource-monitor.interval-ms": "300"})


class RealWorkload:
    """Drive a real YARN application; its calls only write to a pipe, so they need no thread."""

    def __init__(self, application: Application, backend: RealBackend) -> None:
        """Take over a submitted application."""
        self._application = application
        self._backend = backend

    async def ask(self, count: int) -> None:
        """Ask for containers."""
        self._application.ask(count=count, memory_mib=CONTAINER.memory_mib, vcores=CONTAINER.vcores, queue=QUEUE)

    async def withdraw(self) -> None:
        """Take pending asks back."""
        self._application.cancel_pending(queue=QUEUE)

    async def release(self, count: int) -> None:
        """Give the newest containers back."""
        self._application.release(count, queue=QUEUE)

    def held(self) -> int:
        """Count allocated containers."""
        return len(self._application.allocated())

    def started(self) -> int:
        """Count containers whose process was started."""
        return sum(container.is_running for container in self._application.containers())

    async def killed(self) -> int:
        """Take the larger of two independent counts: exit statuses at the application, preemptions at the RM."""
        found = await self._backend.get_json("/ws/v1/cluster/apps")
        applications = (found.get("apps") or {}).get("app") or []
        preempted = sum(
            int(application.get(key, 0))
            for application in applications
            for key in ("numNonAMContainerPreempted", "numAMContainerPreempted")
        )
        return max(len(self._application.killed()), preempted)


class RealBackend:
    """Use a lab that runs already, inside `async with`."""

    name = "real"

    def __init__(self, lab: Lab) -> None:
        """Name the nodes; nothing is opened yet."""
        self._lab = lab
        options = lab.yarn.options
        self.floor = YarnResources(memory_mib=options.floor_memory_mib, vcores=options.floor_vcores)
        self.nodes = tuple(
            DemoNode(
                name=f"node-{manager.identity.number}",
                node_id=manager.node_id,
                host_name=manager.host_name,
                address=manager.address,
                capacity=MACHINE,
            )
            for manager in lab.yarn.node_managers
        )
        self._session: aiohttp.ClientSession | None = None
        self._controller: ControllerProcess | None = None
        self._application: Application | None = None

    async def __aenter__(self) -> RealBackend:
        self._session = aiohttp.ClientSession(headers={"Accept": "application/json"}, timeout=_CALL_TIMEOUT)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
        await asyncio.to_thread(self._stop_programs)

    @property
    def workload(self) -> RealWorkload:
        """Give the application.

        Raises:
            LabError: It was not submitted yet.
        """
        if self._application is None:
            raise LabError("the application was not submitted yet")
        return RealWorkload(self._application, self)

    def kubernetes(self) -> Credentials:
        """Give the administrator's credentials."""
        return read_kubeconfig(self._lab.kubernetes.kubeconfig)

    async def read_yarn(self) -> Mapping[str, YarnReading]:
        """Read used and available of the scheduler by REST; their sum is the capacity that it works with."""
        found = await self.get_json("/ws/v1/cluster/nodes")
        nodes = (found.get("nodes") or {}).get("node") or []
        return {node["id"]: _reading(node) for node in nodes if node["state"] == "RUNNING"}

    async def get_json(self, path: str) -> dict[str, Any]:
        """GET a path of the RM's web services.

        Raises:
            LabError: It does not answer with JSON.
        """
        if self._session is None:
            raise LabError("the backend is not open")
        try:
            async with self._session.get(self._lab.yarn.rest_url + path) as response:
                response.raise_for_status()
                found: dict[str, Any] = await response.json()
                return found
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise LabError(f"ResourceManager {path}: {error}") from error

    async def read_aims(self) -> Mapping[str, Aim]:
        """Ask the controller's API."""
        return await asyncio.to_thread(read_aims, self._controller)

    async def start_controller(self, settings: Settings, program: Program | None = None) -> None:
        """Run the product with a user of its own."""
        token = self._lab.kubernetes.users[CONTROLLER_USER].token
        self._controller = self._lab.controller(settings, name="controller", token=token, program=program)
        self._controller.start()
        await asyncio.to_thread(self._controller.wait_ready)

    async def start_workload(self) -> None:
        """Submit a real application."""
        self._application = await asyncio.to_thread(lambda: self._lab.submit(queue=QUEUE))

    def _stop_programs(self) -> None:
        """End the controller, then the application; the lab's own end deals with whatever does not listen."""
        if self._controller is not None:
            self._controller.terminate()
        if self._application is not None:
            try:
                self._application.stop(timeout_seconds=_STOP_TIMEOUT_SECONDS)
            except LabError:
                self._application.kill()

    async def controller_trouble(self) -> str | None:
        """Ask the process and its health pages."""
        return await asyncio.to_thread(controller_trouble, self._controller)

    async def count_writes(self) -> WriteCounts:
        """Read the API server's audit log and the RM's own RPC figures."""
        return await asyncio.to_thread(self._count_writes)

    def _count_writes(self) -> WriteCounts:
        counts = Counter(
            request.resource
            for request in self._lab.kubernetes.audit.requests()
            if request.user == CONTROLLER_USER and request.verb in _WRITES
        )
        nodes = counts.pop("nodes", 0)
        return WriteCounts(kubernetes=nodes, yarn=self._lab.yarn.count_update_calls(), other=dict(counts))


def _reading(node: dict[str, Any]) -> YarnReading:
    used = YarnResources(memory_mib=int(node["usedMemoryMB"]), vcores=int(node["usedVirtualCores"]))
    free = YarnResources(memory_mib=int(node["availMemoryMB"]), vcores=int(node["availableVirtualCores"]))
    return YarnReading(capacity=used + free, used=used)

# SPDX-License-Identifier: Apache-2.0
"""Let one suite run against any ResourceManager: where it is, how to restart it, and containers to play with."""

from __future__ import annotations

import asyncio
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from lab.embedded.yarn import EmbeddedContainer, EmbeddedYarn
from lab.embedded.yarn.resource_manager import NodeAction
from lab.fleet import Fleet, FleetOptions
from tests.contract.hadoop.differences import EMBEDDED, Behaviour
from yarn_copilot.hadoop import configuration
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import ClusterConfiguration
from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeResourceUpdate, Resource, ResourceInformation

HEARTBEAT_SECONDS = 0.2
EXPIRY_SECONDS = 4.0
MINIMUM_MEMORY_MIB = 128
NODE_MEMORY_MIB = 4096
NODE_VCORES = 8
CONTAINER_MEMORY_MIB = 512
GPU = "yarn.io/gpu"
OPERATOR = "yarn"
DEADLINE_SECONDS = 30.0

_addresses: Iterator[int] = itertools.count(0)


class Workload(ABC):
    """Be an application with equal containers on the backend's one busy node."""

    @abstractmethod
    def running(self) -> list[int]:
        """List the running containers by start order: 0 is the oldest."""

    @abstractmethod
    def exit_statuses(self) -> list[int]:
        """List how the ended containers ended."""

    @abstractmethod
    async def stop(self) -> None:
        """Take back what was asked for and end its containers."""


Registration = Callable[[Resource], Awaitable[None]]
"""Registers the busy node with a total."""


class RmBackend(ABC):
    """Be a ResourceManager: heartbeats every 0.2 s, nodes LOST after 4 s, 128 MiB and one vcore at least, the custom
    type yarn.io/gpu, only `yarn` may change nodes, queues of the lab, one NodeManager of 4096 MiB and 8 vcores.
    """

    behaviour: Behaviour
    cluster: ClusterConfiguration
    tracker_address: str
    busy_node: NodeId

    @abstractmethod
    async def restart(self) -> None:
        """Stop the ResourceManager and start it again."""

    @abstractmethod
    async def run(
        self, count: int, *, seconds: float | None = None, wait: bool = True, is_alone: bool = False
    ) -> Workload:
        """Start containers of 512 MiB and one vcore on the busy node.

        Args:
            count: how many are asked for.
            seconds: how long each runs; None: until the end.
            wait: return only when all run.
            is_alone: in an application of their own, which ends with them.
        """

    @abstractmethod
    def register_again(self, workload: Workload) -> AbstractAsyncContextManager[Registration]:
        """Keep the busy NodeManager from speaking, and give what registers in its name.

        It says that it still runs the workload's application, as a NodeManager does that was started anew with its
        containers kept. Afterwards the true one is heard again; its containers may be lost then.
        """

    def client(self, user: str = OPERATOR) -> ResourceManagerClient:
        """Give the product's client; use with `async with`."""
        return ResourceManagerClient(self.cluster, user=user, call_timeout_seconds=20, connect_timeout_seconds=10)

    @asynccontextmanager
    async def fleet(self, count: int = 3, *, memory_mib: int = 8192, vcores: int = 8) -> AsyncIterator[Fleet]:
        """Run NodeManagers that no other test uses; afterwards they are SHUTDOWN, so that no container is put there."""
        node_ids = [fresh_node_id() for _ in range(count)]
        gpus = (ResourceInformation(GPU, 2, ""),)
        options = FleetOptions(resource=Resource(memory_mib, vcores, gpus), heartbeat_seconds=HEARTBEAT_SECONDS)
        async with Fleet(self.tracker_address, node_ids, options=options) as fleet:
            yield fleet
            await fleet.say_farewell()


def fresh_node_id() -> NodeId:
    """Name a NodeManager that no other test uses."""
    number = next(_addresses)
    return NodeId(f"10.99.{number // 250}.{number % 250 + 1}", 8041)


class EmbeddedBackend(RmBackend):
    """Be the ResourceManager inside this process."""

    behaviour = EMBEDDED

    def __init__(self, yarn: EmbeddedYarn, directory: Path) -> None:
        self.yarn = yarn
        self.cluster = configuration.read_clusters(yarn.conf_dir(directory))["default"]
        self.tracker_address = yarn.tracker_address
        self.busy_node = yarn.add_node("nm-1", memory_mib=NODE_MEMORY_MIB, vcores=NODE_VCORES).node_id

    async def restart(self) -> None:
        await self.yarn.restart_rm()

    async def run(
        self, count: int, *, seconds: float | None = None, wait: bool = True, is_alone: bool = False
    ) -> Workload:
        application = self.yarn.new_application()
        self.yarn.ask(
            "root.batch.etl",
            memory_mib=CONTAINER_MEMORY_MIB,
            vcores=1,
            count=count,
            application=application,
            seconds=seconds,
        )
        workload = _EmbeddedWorkload(self.yarn, application)
        if wait:
            await until(lambda: done(workload.launched() == count))
        return workload

    @asynccontextmanager
    async def register_again(self, workload: Workload) -> AsyncIterator[Registration]:
        manager = self.yarn.node_managers[self.busy_node]
        manager.is_reachable = False

        async def register(resource: Resource) -> None:
            assert isinstance(workload, _EmbeddedWorkload)
            containers = [one for one in self.yarn.running() if one.node_id == self.busy_node]
            answer = self.yarn.state.register(
                self.busy_node, resource, http_port=manager.http_port, now=self.yarn.now(), containers=containers
            )
            assert answer.action is NodeAction.NORMAL

        yield register
        manager.is_reachable = True


class _EmbeddedWorkload(Workload):
    def __init__(self, yarn: EmbeddedYarn, application: int) -> None:
        self._yarn = yarn
        self._application = application

    def launched(self) -> int:
        return sum(container.is_launched for container in self._yarn.running(self._application))

    def _all(self) -> list[EmbeddedContainer]:
        finished = [one for one in self._yarn.state.finished if one.application == self._application]
        return sorted((*finished, *self._yarn.running(self._application)), key=lambda container: container.number)

    def running(self) -> list[int]:
        return [index for index, container in enumerate(self._all()) if container.is_running]

    def exit_statuses(self) -> list[int]:
        return [int(one.exit_status) for one in self._all() if one.exit_status is not None]

    async def stop(self) -> None:
        self._yarn.end_application(self._application)


async def done(value: bool) -> bool:
    """Give a plain condition to `until`."""
    return value


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = DEADLINE_SECONDS) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: not in time.
    """
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, f"did not become true within {seconds} s"
        await asyncio.sleep(0.02)


async def settled(condition: Callable[[], object]) -> None:
    """Let the event loop run until a condition on in-process state holds.

    Raises:
        AssertionError: not in time.
    """
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the event loop never got there")


async def reports(client: ResourceManagerClient) -> dict[NodeId, NodeReport]:
    """Read the node list by id."""
    return {report.node_id: report for report in await client.get_cluster_nodes()}


async def change(client: ResourceManagerClient, node_id: NodeId, resource: Resource, *, timeout_millis: int) -> None:
    """Send one update and wait until the ResourceManager shows it."""
    await client.update_node_resource([NodeResourceUpdate(node_id, resource, timeout_millis)])

    async def is_shown() -> bool:
        shown = (await reports(client))[node_id].capability
        return (shown.memory_mib, shown.vcores) == (resource.memory_mib, resource.vcores)

    await until(is_shown)

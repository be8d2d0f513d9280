# SPDX-License-Identifier: Apache-2.0
"""Be the backend of the Hadoop suites with the real ResourceManager of a lab."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lab.cluster import Lab
from lab.hadoop.application import Application
from tests.contract.hadoop.backend import (
    CONTAINER_MEMORY_MIB,
    HEARTBEAT_SECONDS,
    Registration,
    RmBackend,
    Workload,
    done,
    until,
)
from tests.contract.hadoop.differences import BEHAVIOURS
from tests.contract.hadoop.hand_node import hand_node
from yarn_copilot.hadoop import configuration
from yarn_copilot.hadoop.model import NodeId, Resource

QUEUE = "root.batch.etl"


def label_store(folder: Path) -> dict[str, str]:
    """Let a ResourceManager have node labels, and keep them in a folder."""
    return {
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.fs-store.root-dir": f"file://{folder}/labels",
    }


class SharedApplication:
    """Keep one application for many tests: submitting one costs two starts of Java."""

    def __init__(self, lab: Lab) -> None:
        """Submit nothing yet."""
        self._lab = lab
        self._application: Application | None = None

    def submit(self) -> Application:
        """Submit an application of its own."""
        return self._lab.submit(queue=QUEUE)

    def get(self) -> Application:
        """Give the application, which is submitted by the first who needs it."""
        if self._application is None:
            self._application = self.submit()
        return self._application

    def stop(self) -> None:
        """End it; the next who needs one gets another."""
        if self._application is not None:
            self._application.stop()
            self._application = None


class RealBackend(RmBackend):
    """Be the lab's ResourceManager."""

    def __init__(self, lab: Lab, applications: SharedApplication) -> None:
        self._lab = lab
        self._applications = applications
        self.behaviour = BEHAVIOURS[lab.hadoop_version]
        self.cluster = configuration.read_clusters(lab.yarn.conf_dir)["default"]
        self.tracker_address = lab.yarn.tracker_address
        self.busy_node = NodeId.parse(lab.yarn.node_managers[0].node_id)

    async def restart(self) -> None:
        await asyncio.to_thread(self._applications.stop)
        await asyncio.to_thread(self._lab.yarn.stop_rm)
        await asyncio.to_thread(self._lab.yarn.start_rm)

    async def run(
        self, count: int, *, seconds: float | None = None, wait: bool = True, is_alone: bool = False
    ) -> Workload:
        application = await asyncio.to_thread(self._applications.submit if is_alone else self._applications.get)
        workload = _RealWorkload(application, is_alone=is_alone)
        if not wait:
            workload.ask(count, seconds)
            return workload
        # One after another: the ResourceManager tells age by milliseconds, and those of one moment are equally young.
        for number in range(1, count + 1):
            workload.ask(1, seconds)
            await asyncio.to_thread(
                application.wait_for,
                lambda wanted=number: workload.started() == wanted,  # type: ignore[misc]
                what=f"container {number} of {count} runs",
            )
        # A heartbeat tells the scheduler that they run; before it they cannot be chosen to die.
        await asyncio.sleep(2 * HEARTBEAT_SECONDS)
        return workload

    @asynccontextmanager
    async def register_again(self, workload: Workload) -> AsyncIterator[Registration]:
        assert isinstance(workload, _RealWorkload)
        manager = self._lab.yarn.node_managers[0]
        http_port = manager.identity.ports.web
        async with hand_node(self.tracker_address, self.busy_node, http_port=http_port) as node:

            async def register(resource: Resource) -> None:
                await node.register(resource, applications=[workload.application_number()])

            manager.pause()
            try:
                yield register
            finally:
                manager.resume()


class _RealWorkload(Workload):
    def __init__(self, application: Application, *, is_alone: bool) -> None:
        self._application = application
        self._asks: set[int] = set()
        self._is_alone = is_alone

    def ask(self, count: int, seconds: float | None) -> None:
        self._asks.add(
            self._application.ask(count=count, memory_mib=CONTAINER_MEMORY_MIB, vcores=1, duration_seconds=seconds)
        )

    def running(self) -> list[int]:
        # Allocations of one moment may come in any order; the number at an id's end tells their age.
        own = [one for one in self._application.containers() if one.ask in self._asks]
        containers = sorted(own, key=lambda container: container.id)
        return [index for index, container in enumerate(containers) if container.exit_status is None]

    def started(self) -> int:
        return sum(one.ask in self._asks for one in self._application.running())

    def exit_statuses(self) -> list[int]:
        ended = [one for one in self._application.completed() if one.ask in self._asks]
        return [one.exit_status for one in ended if one.exit_status is not None]

    def application_number(self) -> tuple[int, int]:
        _, timestamp, number = self._application.application_ids[QUEUE].split("_")
        return int(timestamp), int(number)

    async def stop(self) -> None:
        if self._is_alone:
            await asyncio.to_thread(self._application.stop)
            return
        self._application.cancel_pending()
        for container in self._application.allocated():
            if container.ask in self._asks:
                self._application.release_container(container)
        await until(lambda: done(not self.running()))

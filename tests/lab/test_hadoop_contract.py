# SPDX-License-Identifier: Apache-2.0
"""Run the suites of the Hadoop adapter against the real ResourceManager of the lab."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from lab.cluster import Lab
from lab.hadoop.application import Application
from lab.hadoop.options import YarnOptions
from tests.contract.hadoop.backend import (
    CONTAINER_MEMORY_MIB,
    EXPIRY_SECONDS,
    GPU,
    HEARTBEAT_SECONDS,
    MINIMUM_MEMORY_MIB,
    NODE_MEMORY_MIB,
    NODE_VCORES,
    OPERATOR,
    RmBackend,
    Workload,
)
from tests.contract.hadoop.suite_capacity import *  # noqa: F403
from tests.contract.hadoop.suite_nodes import *  # noqa: F403
from yarn_copilot.hadoop import configuration
from yarn_copilot.hadoop.model import NodeId


class RealBackend(RmBackend):
    """Be the lab's ResourceManager."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.cluster = configuration.read_clusters(lab.yarn.conf_dir)["default"]
        self.tracker_address = lab.yarn.tracker_address
        self.busy_node = NodeId.parse(lab.yarn.node_managers[0].node_id)

    async def restart(self) -> None:
        await asyncio.to_thread(self._lab.yarn.stop_rm)
        await asyncio.to_thread(self._lab.yarn.start_rm)

    async def run(self, count: int, *, seconds: float | None = None, wait: bool = True) -> Workload:
        application = await asyncio.to_thread(self._lab.submit, queue="root.batch.etl")
        application.ask(count=count, memory_mib=CONTAINER_MEMORY_MIB, vcores=1, duration_seconds=seconds)
        if wait:
            await asyncio.to_thread(application.wait_running, count)
            # A heartbeat tells the scheduler that they run; before it they cannot be chosen to die.
            await asyncio.sleep(2 * HEARTBEAT_SECONDS)
        return _RealWorkload(application)


class _RealWorkload(Workload):
    def __init__(self, application: Application) -> None:
        self._application = application

    def running(self) -> list[int]:
        containers = self._application.containers()
        return [index for index, container in enumerate(containers) if container.exit_status is None]

    def exit_statuses(self) -> list[int]:
        return [one.exit_status for one in self._application.completed() if one.exit_status is not None]

    async def stop(self) -> None:
        await asyncio.to_thread(self._application.stop)


@pytest.fixture(scope="module")
def yarn_lab() -> Iterator[Lab]:
    """Run a ResourceManager and one NodeManager as the suites expect them."""
    options = YarnOptions(
        floor_memory_mib=NODE_MEMORY_MIB,
        floor_vcores=NODE_VCORES,
        minimum_memory_mib=MINIMUM_MEMORY_MIB,
        heartbeat_millis=int(HEARTBEAT_SECONDS * 1000),
        expiry_millis=int(EXPIRY_SECONDS * 1000),
        administrators=OPERATOR,
        properties={"yarn.resource-types": GPU},
    )
    with Lab(kubernetes=False, node_managers=1, yarn_options=options) as lab:
        yield lab


@pytest.fixture
def rm_backend(yarn_lab: Lab) -> RmBackend:
    """Give the lab's ResourceManager to the suites."""
    return RealBackend(yarn_lab)

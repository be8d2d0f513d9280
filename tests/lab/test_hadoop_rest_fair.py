# SPDX-License-Identifier: Apache-2.0
"""A real ResourceManager with the FairScheduler, over REST: what its queues wait for, and updates of its nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from tests.contract.hadoop.backend import until
from tests.lab.test_hadoop_rest import busy_node, diagnose, rest_client
from yarn_copilot.cli.doctor.findings import Check, Severity
from yarn_copilot.hadoop import configuration
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import NodeResourceUpdate, QueueInfo, Resource
from yarn_copilot.hadoop.rest.demand import PartitionDemandReader
from yarn_copilot.hadoop.rest.queues import find_queue

SCHEDULER = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"
QUEUE = "root.batch.etl"
CONTAINER = Resource(512, 1)


@pytest.fixture
def fair_lab() -> Iterator[Lab]:
    """Run the ResourceManager and a NodeManager with room for two containers."""
    options = YarnOptions(
        floor_memory_mib=2 * CONTAINER.memory_mib,
        floor_vcores=2,
        properties={
            "yarn.resourcemanager.scheduler.class": SCHEDULER,
            "yarn.resource-types.memory-mb.increment-allocation": "128",
        },
    )
    with Lab(kubernetes=False, node_managers=1, yarn_options=options) as lab:
        yield lab


def figures(tree: QueueInfo) -> tuple[Resource, Resource, int, int]:
    """Give what the queue of the test holds and waits for."""
    queue = find_queue(tree, QUEUE)
    assert queue is not None
    held = Resource(queue.allocated.memory_mib, queue.allocated.vcores)
    return held, queue.pending, queue.allocated_containers, queue.pending_containers


def times(count: int) -> Resource:
    return Resource(count * CONTAINER.memory_mib, count * CONTAINER.vcores)


async def test_demand_and_updates_of_a_fair_scheduler_over_rest(fair_lab: Lab) -> None:
    application = fair_lab.submit(queue=QUEUE)
    cluster = configuration.read_clusters(fair_lab.yarn.conf_dir)["default"]
    async with rest_client(fair_lab) as rest, ResourceManagerClient(cluster, user="yarn") as rpc:
        application.ask(count=5, memory_mib=CONTAINER.memory_mib, vcores=CONTAINER.vcores)
        node = busy_node(fair_lab)
        for running in (2, 3):
            await rest.update_node_resource([NodeResourceUpdate(node, times(running))])
            application.wait_running(running)
            expected = (times(running), times(5 - running), running, 5 - running)

            async def is_told(expected: object = expected) -> bool:
                return figures(await rest.get_queue_info("root")) == expected

            async def is_told_over_rpc(expected: object = expected) -> bool:
                return figures(await rpc.get_queue_info("root")) == expected

            await until(is_told)
            await until(is_told_over_rpc)
        assert await PartitionDemandReader(rest).read() is None
    application.stop()
    found = {one.check: one for one in await diagnose(fair_lab)}
    assert found[Check.CALCULATOR].severity is Severity.NOTE
    assert "FairScheduler" in found[Check.CALCULATOR].found

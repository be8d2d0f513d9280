# SPDX-License-Identifier: Apache-2.0
"""Say what registrations and heartbeats do to totals and use: what `tests/model` assumes, on any ResourceManager.

Import the functions into a test module that gives `rm_backend`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from tests.contract.hadoop.backend import (
    CONTAINER_MEMORY_MIB,
    HEARTBEAT_SECONDS,
    Registration,
    RmBackend,
    change,
    fresh_node_id,
    reports,
    until,
)
from tests.contract.hadoop.hand_node import hand_node
from tests.contract.hadoop.suite_capacity import FULL, LARGER, busy, is_running
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import FAR_OVERCOMMIT_TIMEOUT_MILLIS, NodeId, Resource, ResourceInformation

FAR = FAR_OVERCOMMIT_TIMEOUT_MILLIS
FRESH = Resource(8192, 8, (ResourceInformation("yarn.io/gpu", 0, ""),))
LESS = Resource(3000, 3, (ResourceInformation("yarn.io/gpu", 0, ""),))
NO_USE = (0, 0, 0)
WHOLE_USE = (4 * CONTAINER_MEMORY_MIB, 4, 4)
TIMES = 20
"""A total that differs hides the use for milliseconds only, so one look would prove little."""


async def test_total_whose_answer_was_lost_is_told_again_and_until_then_not_adopted(rm_backend: RmBackend) -> None:
    async with rm_backend.client() as client, hand_node(rm_backend.tracker_address, fresh_node_id()) as node:
        await node.register(FRESH)
        await node.report()
        await change(client, node.node_id, LESS, timeout_millis=FAR)
        lost = await node.report(answer_is_lost=True)
        assert lost.HasField("resource")
        # The ResourceManager has heard the node, yet the node still has its old total.
        assert (await reports(client))[node.node_id].capability == LESS
        assert not node.has_adopted(LESS)
        repeated = await node.report()
        assert repeated.response_id == lost.response_id
        assert node.has_adopted(LESS)
        assert not (await node.report()).HasField("resource")
        await node.say_farewell()


async def test_node_that_registers_anew_while_it_is_known_has_the_total_of_its_registration(
    rm_backend: RmBackend,
) -> None:
    async with rm_backend.client() as client, hand_node(rm_backend.tracker_address, fresh_node_id()) as node:
        await node.register(FRESH)
        await change(client, node.node_id, LESS, timeout_millis=FAR)
        await node.register(FRESH)

        async def is_back() -> bool:
            return (await reports(client))[node.node_id].capability == FRESH

        await until(is_back)
        # What it is told for the update that it has not heard of is the total in force, not the one of the update.
        await node.report()
        assert node.has_adopted(FRESH)
        await node.say_farewell()


async def test_node_that_registers_again_hides_its_use_only_when_its_total_differs(rm_backend: RmBackend) -> None:
    async with busy(rm_backend) as (client, workload):
        async with rm_backend.register_again(workload) as register:
            same = await shown_while(repeat(register, [FULL] * TIMES), client, rm_backend.busy_node)
            totals = [LARGER, FULL] * (TIMES // 2)
            differing = await shown_while(repeat(register, totals), client, rm_backend.busy_node)
            report = (await reports(client))[rm_backend.busy_node]
            assert same == {WHOLE_USE}
            assert differing <= {WHOLE_USE, NO_USE}
            assert (report.used.memory_mib, report.used.vcores, report.containers) == WHOLE_USE
            assert report.capability.memory_mib == FULL.memory_mib
            assert workload.running() == [0, 1, 2, 3]
        # The true one is told that its heartbeats do not follow on, and begins anew without its containers.
        await until(lambda: is_running(client, rm_backend))


async def repeat(register: Registration, totals: Iterable[Resource]) -> None:
    """Register again and again, with time between in which use may be shown."""
    for total in totals:
        await register(total)
        await asyncio.sleep(0.01)


async def shown_while(
    doing: Awaitable[None], client: ResourceManagerClient, node_id: NodeId
) -> set[tuple[int, int, int]]:
    """Collect every use of a node that is shown while something is done, and for a heartbeat after it."""
    seen = set()

    async def watch() -> None:
        while True:
            report = (await reports(client))[node_id]
            seen.add((report.used.memory_mib, report.used.vcores, report.containers))

    watching = asyncio.create_task(watch())
    await doing
    await asyncio.sleep(HEARTBEAT_SECONDS)
    watching.cancel()
    await asyncio.wait([watching])
    return seen

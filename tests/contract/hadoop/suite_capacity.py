# SPDX-License-Identifier: Apache-2.0
"""Say what a change of capacity does to containers; runs against the embedded and against a real ResourceManager.

Import the functions into a test module that gives `rm_backend`. Every test begins with a node of 4096 MiB and
four containers of 512 MiB on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.contract.hadoop.backend import (
    CONTAINER_MEMORY_MIB,
    HEARTBEAT_SECONDS,
    NODE_MEMORY_MIB,
    NODE_VCORES,
    RmBackend,
    Workload,
    change,
    done,
    reports,
    until,
)
from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import FAR_OVERCOMMIT_TIMEOUT_MILLIS, NodeReport, NodeState, Resource

FAR = FAR_OVERCOMMIT_TIMEOUT_MILLIS
PREEMPTED = -102
WATCH_SECONDS = 8 * HEARTBEAT_SECONDS
"""A due kill comes with the next heartbeat; whatever lives for so many of them lives on."""

FULL = Resource(NODE_MEMORY_MIB, NODE_VCORES)
LARGER = Resource(NODE_MEMORY_MIB + 1024, NODE_VCORES)
TWO_FIT = Resource(2 * CONTAINER_MEMORY_MIB, NODE_VCORES)
ONE_FITS = Resource(CONTAINER_MEMORY_MIB, NODE_VCORES)


@asynccontextmanager
async def busy(
    backend: RmBackend, *, armed: bool = False, never_armed: bool = False
) -> AsyncIterator[tuple[ResourceManagerClient, Workload]]:
    """Give the node its full capacity, then run four containers.

    Args:
        backend: where.
        armed: set a deadline that has passed already, by a growth, which kills nothing.
        never_armed: have no deadline at all; only a scheduler node made anew has none, so the ResourceManager restarts.
            Otherwise the deadline is a far one.
    """
    async with backend.client() as client:
        # The test before may have ended with a node that registers anew.
        await until(lambda: is_registered(client, backend))
        await change(client, backend.busy_node, LARGER, timeout_millis=FAR)
        await change(client, backend.busy_node, FULL, timeout_millis=FAR)
        if never_armed:
            await asyncio.sleep(4 * HEARTBEAT_SECONDS)  # the NodeManager must have heard of it to register with it
            await backend.restart()
        await until(lambda: is_running(client, backend))
        workload = await backend.run(4)
        try:
            if armed:
                await change(client, backend.busy_node, LARGER, timeout_millis=0)
            yield client, workload
        finally:
            await workload.stop()
            await change(client, backend.busy_node, FULL, timeout_millis=FAR)  # as others expect it


async def is_registered(client: ResourceManagerClient, backend: RmBackend) -> bool:
    """Tell whether the ResourceManager knows the node."""
    report = await _report(client, backend)
    return report is not None and report.state is NodeState.RUNNING


async def is_running(client: ResourceManagerClient, backend: RmBackend) -> bool:
    """Tell whether the node has come back with its full capacity."""
    report = await _report(client, backend)
    return (
        report is not None
        and report.state is NodeState.RUNNING
        and report.capability.memory_mib == FULL.memory_mib
        and report.used.memory_mib == 0
    )


async def _report(client: ResourceManagerClient, backend: RmBackend) -> NodeReport | None:
    try:
        return (await reports(client)).get(backend.busy_node)
    except errors.ConnectError:
        return None


async def assert_nothing_dies(workload: Workload) -> None:
    """Watch for several heartbeats."""
    await asyncio.sleep(WATCH_SECONDS)
    assert (workload.running(), workload.exit_statuses()) == ([0, 1, 2, 3], [])


async def assert_youngest_died(workload: Workload, *, left: list[int]) -> None:
    """Wait until only the oldest are left."""
    await until(lambda: done(workload.running() == left))
    assert workload.exit_statuses() == [PREEMPTED] * (4 - len(left))


async def test_shrink_with_timeout_zero_kills_the_youngest_at_once(rm_backend: RmBackend) -> None:
    async with busy(rm_backend) as (client, workload):
        await change(client, rm_backend.busy_node, TWO_FIT, timeout_millis=0)
        await assert_youngest_died(workload, left=[0, 1])


async def test_shrink_of_vcores_kills_until_they_fit(rm_backend: RmBackend) -> None:
    async with busy(rm_backend) as (client, workload):
        await change(client, rm_backend.busy_node, Resource(NODE_MEMORY_MIB, 3), timeout_millis=0)
        await assert_youngest_died(workload, left=[0, 1, 2])


async def test_shrink_with_a_timeout_kills_when_it_has_passed(rm_backend: RmBackend) -> None:
    async with busy(rm_backend) as (client, workload):
        await change(client, rm_backend.busy_node, TWO_FIT, timeout_millis=int(WATCH_SECONDS * 2000))
        await assert_nothing_dies(workload)
        await assert_youngest_died(workload, left=[0, 1])


async def test_timeout_sticks_even_from_a_growth(rm_backend: RmBackend) -> None:
    async with busy(rm_backend, armed=True) as (client, workload):
        await assert_nothing_dies(workload)
        await change(client, rm_backend.busy_node, TWO_FIT, timeout_millis=-1)
        await assert_youngest_died(workload, left=[0, 1])


async def test_far_deadline_disarms_an_armed_node_for_good(rm_backend: RmBackend) -> None:
    async with busy(rm_backend, armed=True) as (client, workload):
        await change(client, rm_backend.busy_node, TWO_FIT, timeout_millis=FAR)
        await assert_nothing_dies(workload)
        await change(client, rm_backend.busy_node, ONE_FITS, timeout_millis=-1)
        await assert_nothing_dies(workload)


async def test_equal_value_is_ignored_with_its_timeout_and_a_negative_one_kills_nothing_on_a_node_never_armed(
    rm_backend: RmBackend,
) -> None:
    async with busy(rm_backend, never_armed=True) as (client, workload):
        await change(client, rm_backend.busy_node, FULL, timeout_millis=0)
        await change(client, rm_backend.busy_node, TWO_FIT, timeout_millis=-1)
        await assert_nothing_dies(workload)


async def test_use_is_shown_whole_or_not_at_all_around_updates(rm_backend: RmBackend) -> None:
    whole = (4 * CONTAINER_MEMORY_MIB, 4, 4)
    async with busy(rm_backend) as (client, workload):
        seen = set()
        for step in range(40):
            await change(client, rm_backend.busy_node, Resource(FULL.memory_mib + 1 + step, 8), timeout_millis=FAR)
            for _ in range(3):
                report = (await reports(client))[rm_backend.busy_node]
                seen.add((report.used.memory_mib, report.used.vcores, report.containers))
        await asyncio.sleep(HEARTBEAT_SECONDS)
        report = (await reports(client))[rm_backend.busy_node]
        assert seen <= {(0, 0, 0), whole}
        assert (report.used.memory_mib, report.used.vcores, report.containers) == whole
        assert workload.running() == [0, 1, 2, 3]


async def test_freed_room_below_a_lowered_capacity_is_not_refilled(rm_backend: RmBackend) -> None:
    async with busy(rm_backend) as (client, held):
        passing = await rm_backend.run(60, seconds=1.0, wait=False)
        try:
            await until(lambda: done(len(passing.running()) >= 2))
            await change(client, rm_backend.busy_node, ONE_FITS, timeout_millis=FAR)
            await until(lambda: done(not passing.running()))
            ended = len(passing.exit_statuses())
            await asyncio.sleep(WATCH_SECONDS)
            assert len(passing.exit_statuses()) == ended
            assert (await reports(client))[rm_backend.busy_node].used.memory_mib == 4 * CONTAINER_MEMORY_MIB
            assert set(passing.exit_statuses()) <= {0}
            assert held.running() == [0, 1, 2, 3]
        finally:
            await passing.stop()


async def test_queue_counts_what_it_holds_and_waits_for(rm_backend: RmBackend) -> None:
    async with busy(rm_backend) as (client, _held):
        more = await rm_backend.run(10, wait=False)
        try:

            async def is_counted() -> bool:
                leaf = await client.get_queue_info("root.batch.etl")
                return (leaf.allocated, leaf.allocated_containers) == (Resource(8 * CONTAINER_MEMORY_MIB, 8), 8) and (
                    leaf.pending,
                    leaf.pending_containers,
                ) == (Resource(6 * CONTAINER_MEMORY_MIB, 6), 6)

            await until(is_counted)
        finally:
            await more.stop()

        async def nothing_waits() -> bool:
            return (await client.get_queue_info("root.batch.etl")).pending_containers == 0

        await until(nothing_waits)  # or the nodes of the next test would be given what still waits

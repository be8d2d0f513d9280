# SPDX-License-Identifier: Apache-2.0
"""Measure updates: one call for all nodes, and how many calls a second with some in flight."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from benchmarks.hadoop.lists import median_cpu_seconds, memory_mib
from benchmarks.hadoop.place import Place
from lab.errors import LabError
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import NodeReport, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.protocols import administration

IN_FLIGHT: Final = (1, 16, 64)
_SHOWN_POLL_SECONDS: Final = 0.02


def updates_of(reports: Sequence[NodeReport], memory_mib: int) -> list[NodeResourceUpdate]:
    """Give every node this much memory."""
    return [NodeResourceUpdate(report.node_id, Resource(memory_mib, 8)) for report in reports]


async def measure_batch(place: Place, client: ResourceManagerClient, reports: Sequence[NodeReport]) -> dict[str, float]:
    """Change all nodes by one call and wait until the node list shows it."""
    called, shown = [], []
    for number in range(3):
        updates = updates_of(reports, 4096 + 1024 * number)
        began = time.perf_counter()
        await client.update_node_resource(updates)
        called.append(time.perf_counter() - began)
        await _until_shown(client, 4096 + 1024 * number, place.timeout_seconds)
        shown.append(time.perf_counter() - began)
    updates = updates_of(reports, 2048)

    def encode() -> bytes:
        return administration.encode_update_node_resource(updates)

    _held, peak = memory_mib(encode)
    return {
        "update_all_call_seconds": sorted(called)[1],
        "update_all_shown_seconds": sorted(shown)[1],
        "update_all_bytes": float(len(encode())),
        "update_all_encode_cpu_seconds": median_cpu_seconds(
            lambda: administration.encode_update_node_resource(updates)
        ),
        "update_all_peak_memory_mib": peak,
    }


async def _until_shown(client: ResourceManagerClient, memory_mib: int, timeout_seconds: float) -> None:
    ends = time.monotonic() + timeout_seconds
    while any(report.capability.memory_mib != memory_mib for report in await client.get_cluster_nodes()):
        if time.monotonic() > ends:
            raise LabError(f"not every node has {memory_mib} MiB after {timeout_seconds:g} s")
        await asyncio.sleep(_SHOWN_POLL_SECONDS)


async def measure_rates(
    client: ResourceManagerClient, reports: Sequence[NodeReport], seconds: float
) -> dict[str, float]:
    """Call as fast as it goes with so many calls in flight: a small read, and the update of one node.

    Args:
        client: of the cluster.
        reports: its nodes; each update takes the next one.
        seconds: how long each rate is measured.
    """
    numbers = itertools.count()

    async def update() -> None:
        number = next(numbers)
        node_id = reports[number % len(reports)].node_id
        await client.update_node_resource([NodeResourceUpdate(node_id, Resource(2048 + number % 1000, 8))])

    async def read() -> None:
        await client.get_cluster_metrics()

    figures = {}
    for in_flight in IN_FLIGHT:
        figures[f"reads_per_second_{in_flight}_in_flight"] = await _rate(read, in_flight, seconds)
        figures[f"updates_per_second_{in_flight}_in_flight"] = await _rate(update, in_flight, seconds)
    return figures


async def _rate(call: Callable[[], Awaitable[None]], in_flight: int, seconds: float) -> float:
    await call()
    began = time.monotonic()
    ends = began + seconds
    done = 0

    async def repeat() -> None:
        nonlocal done
        while time.monotonic() < ends:
            await call()
            done += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(repeat())
    return done / (time.monotonic() - began)

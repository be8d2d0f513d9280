# SPDX-License-Identifier: Apache-2.0
"""Measure each size and make one result of all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from benchmarks import machine
from benchmarks.hadoop import calls, lists
from benchmarks.hadoop.place import Place, place
from benchmarks.results import Result
from lab.processes.progress import Progress
from yarn_copilot.hadoop.client import ResourceManagerClient

NAME: Final = "hadoop"
SIZES: Final = (1_000, 5_000, 10_000)
AIMS: Final = {
    "nodes_10000_list_decode_first_cpu_seconds": 0.2,
    "nodes_10000_list_decode_unchanged_cpu_seconds": 0.02,
    "nodes_10000_update_all_call_seconds": 1.0,
}
NOTES: Final = (
    "one real ResourceManager for each size, its NodeManagers are the lab's fleet (no containers); client, fleet and "
    "ResourceManager share this machine's cores",
    "list_answer: from the call to the last byte; decode_first: all reports are new; decode_unchanged: the same bytes "
    "as in the list before, as most of a poll is",
    "cpu_seconds: time of the client's thread on a core; tolerant_decode: the way of odd shapes, of all lists before "
    "there were types for today's shape",
    "memory: allocated by Python while decoding or encoding, the answer's own bytes left out; medians of several runs",
    "update_all: one updateNodeResource that changes every node; shown: until the node list shows every new value",
    "updates_per_second: one node a call, each time another one; reads: getClusterMetrics; one connection for each",
)


def measure(sizes: Sequence[int], seconds: float, progress: Progress) -> Result:
    """Measure at each size.

    Args:
        sizes: numbers of NodeManagers.
        seconds: how long each rate of calls is measured.
        progress: told what is measured.

    Raises:
        LabError: a server failed or did not take the updates.
    """
    started_on = machine.describe_machine()
    figures: dict[str, float] = {}
    version = ""
    for nodes in sizes:
        with place(nodes, progress) as there:
            version = there.hadoop_version
            with progress.step(f"measuring with {nodes} nodes"):
                found = asyncio.run(_measure(there, seconds))
            figures |= {f"nodes_{nodes}_{name}": value for name, value in found.items()}
    return Result.of_now(NAME, figures, started_on=started_on, hadoop_version=version, notes=NOTES)


async def _measure(there: Place, seconds: float) -> dict[str, float]:
    figures, reports = await lists.measure_rpc_list(there)
    figures |= await lists.measure_rest_list(there)
    async with ResourceManagerClient(
        there.cluster,
        user=there.user,
        call_timeout_seconds=there.timeout_seconds,
        connect_timeout_seconds=there.timeout_seconds,
    ) as client:
        figures |= await calls.measure_batch(there, client, reports)
        figures |= await calls.measure_rates(client, reports, seconds)
    return figures

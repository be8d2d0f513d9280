# SPDX-License-Identifier: Apache-2.0
"""Measure how long tasks run without their limits, and what the agent of the node side costs.

A latency runs from the time of a container's pid file to the moment at which all its processes are inside its group in
every hierarchy and the limits that the NodeManager's figures ask for are written.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

from benchmarks import machine
from benchmarks.parenting.stage import ROOT, Cost, Stage
from benchmarks.results import Result
from lab.demo.propagation import percentile
from lab.embedded.node_manager.server import EmbeddedNodeManager
from lab.node.machine import make_best_effort, sweep
from lab.processes.progress import Progress
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import find_hierarchies

NAME: Final = "parenting"
ROUNDS: Final = {1: 40, 20: 10, 200: 5}
"""Containers that start together, and how often."""

REST_SECONDS: Final = 15.0
AIMS: Final = {
    **{f"together_{count}_p99_milliseconds": 50.0 for count in ROUNDS},
    "idle_cpu_percent": 0.5,
    "idle_resident_mib": 60.0,
    "at_200_resident_mib": 60.0,
}
NOTES: Final = (
    "together_N: N containers whose pid files are written one after another without a pause; cpu is the agent's "
    "processor time for all N, waiting is how long its threads were ready and had no processor, both per burst",
    "the agent shares the machine with whoever starts the containers and writes their pid files, and with all else "
    "that runs on it: see load_before, and waiting",
    "cgroup version 1, each of cpu, cpuacct, cpuset, freezer and memory a hierarchy of its own: a process enters five",
)


def measure(progress: Progress, rounds: dict[int, int] | None = None, rest_seconds: float = REST_SECONDS) -> Result:
    """Measure everything.

    Args:
        progress: where to tell what takes long.
        rounds: containers that start together, and how often.
        rest_seconds: how long to watch the agent at rest.

    Raises:
        LabError: the agent did not start, or did not limit all containers in time.
        CgroupError: the machine has no cgroup tree to work with.
    """
    started_on = machine.describe_machine()
    hierarchies = find_hierarchies(read_mounts(), ROOT, KernelFiles())
    name = f"nm-proxy-bench-{os.getpid()}-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            for hierarchy in hierarchies.every:
                make_best_effort(hierarchy, name)
            figures = asyncio.run(_with_pages(Path(folder), name, rounds or ROUNDS, rest_seconds, progress))
        finally:
            sweep(hierarchies, name)
    return Result.of_now(NAME, figures, started_on=started_on, hadoop_version="none: its pages are made", notes=NOTES)


async def _with_pages(
    folder: Path, name: str, rounds: dict[int, int], rest_seconds: float, progress: Progress
) -> dict[str, float]:
    async with EmbeddedNodeManager() as pages:
        stage = Stage(folder, name, pages)
        try:
            return await _measure(stage, rounds, rest_seconds, progress)
        finally:
            await asyncio.to_thread(stage.stop)


async def _measure(stage: Stage, rounds: dict[int, int], rest_seconds: float, progress: Progress) -> dict[str, float]:
    await asyncio.to_thread(stage.start_agent)
    with progress.step("measuring the agent at rest"):
        used = await _cost_of_rest(stage, rest_seconds)
        figures = {
            "idle_cpu_percent": used.cpu_seconds / rest_seconds * 100,
            "idle_resident_mib": stage.resident_mib(),
        }
    for count, times in rounds.items():
        with progress.step(f"measuring {count} containers together"):
            figures |= await _bursts(stage, count, times)
    with progress.step("measuring the agent with 200 containers"):
        await asyncio.to_thread(stage.wait_swept)
        await asyncio.to_thread(stage.launch, 200)
        await asyncio.sleep(5)
        used = await _cost_of_rest(stage, rest_seconds)
        figures |= {
            "at_200_cpu_percent": used.cpu_seconds / rest_seconds * 100,
            "at_200_resident_mib": stage.resident_mib(),
        }
    return figures


async def _bursts(stage: Stage, count: int, times: int) -> dict[str, float]:
    latencies: list[float] = []
    costs: list[Cost] = []
    for _ in range(times):
        before, cost_before = len(stage.latencies), stage.cost()
        await asyncio.to_thread(stage.launch, count)
        await asyncio.to_thread(stage.wait_measured, before + count)
        latencies += stage.latencies[before:]
        costs.append(stage.cost().since(cost_before))
        await asyncio.sleep(1)
        await asyncio.to_thread(stage.finish)
        if count > 1:
            await asyncio.to_thread(stage.wait_swept)
    name = f"together_{count}"
    return {
        f"{name}_p50_milliseconds": (percentile(latencies, 0.5) or 0.0) * 1000,
        f"{name}_p99_milliseconds": (percentile(latencies, 0.99) or 0.0) * 1000,
        f"{name}_cpu_milliseconds": sum(cost.cpu_seconds for cost in costs) / len(costs) * 1000,
        f"{name}_waiting_milliseconds": sum(cost.waiting_seconds for cost in costs) / len(costs) * 1000,
    }


async def _cost_of_rest(stage: Stage, seconds: float) -> Cost:
    before = stage.cost()
    await asyncio.sleep(seconds)
    return stage.cost().since(before)

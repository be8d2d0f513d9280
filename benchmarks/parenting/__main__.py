# SPDX-License-Identifier: Apache-2.0
"""Run as `python -m benchmarks.parenting`: latency for 1, 20 and 200 containers, processor time and memory.

The containers' processes sleep already when their pid files are written, all in one go, so that what is measured is
the agent and not how fast this machine starts programs. The figure runs from a pid file's time to the moment at which
every process is inside and the limits are written and read back.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lab.embedded.node_manager.server import EmbeddedNodeManager
from lab.node.machine import APPLICATION, container_id, make_best_effort, sweep
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import find_hierarchies

ROOT = "/sys/fs/cgroup"
COUNTS = (1, 20, 200)
ROUNDS = {1: 20, 20: 5, 200: 2}
IDLE_SECONDS = 15.0
WAIT_SECONDS = 60.0


@dataclass
class Bench:
    """Hold one run: an agent's process, the NodeManager's pages, and the containers."""

    folder: Path
    name: str
    pages: EmbeddedNodeManager
    next_number: int = 2
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def latencies(self) -> list[float]:
        """Read what the agent has measured so far, seconds."""
        path = self.folder / "latencies"
        return [float(line) for line in path.read_text().split()] if path.exists() else []

    def start_agent(self) -> psutil.Process:
        """Start the agent."""
        settings = {
            "cgroup": {"root": ROOT, "hierarchy": f"{self.name}/hadoop-yarn"},
            "node_manager": {"url": self.pages.url, "local_directories": [str(self.folder / "local")]},
            "copilot": {"socket": str(self.folder / "copilot.sock")},
        }
        (self.folder / "settings.json").write_text(json.dumps(settings))
        arguments = [str(self.folder / "settings.json"), str(self.folder / "latencies")]
        child = subprocess.Popen([sys.executable, "-m", "benchmarks.parenting.worker", *arguments])
        self.children.append(child)
        return psutil.Process(child.pid)

    def launch(self, count: int) -> None:
        """Start processes, then write all their pid files."""
        started = []
        for _ in range(count):
            name = container_id(self.next_number)
            self.next_number += 1
            self.pages.add(name, vcores=1, memory_mib=256)
            folder = self.folder / "local" / "nmPrivate" / APPLICATION / name
            folder.mkdir(parents=True)
            environment = {"CONTAINER_ID": name, "PATH": os.environ["PATH"]}
            child = subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)
            self.children.append(child)
            started.append((name, folder, child.pid))
        for name, folder, pid in started:
            (folder / f"{name}.pid.tmp").write_text(str(pid))
            (folder / f"{name}.pid.tmp").rename(folder / f"{name}.pid")

    def finish(self) -> None:
        """End all containers as a NodeManager does: processes, private directories, entries of its list."""
        for child in self.children[1:]:
            child.kill()
            child.wait()
        del self.children[1:]
        shutil.rmtree(self.folder / "local" / "nmPrivate" / APPLICATION)
        self.pages.containers.clear()

    def stop(self) -> None:
        """End everything that was started."""
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait()


async def measure(bench: Bench) -> dict[str, object]:
    """Run all measurements."""
    agent = bench.start_agent()
    for _ in range(int(WAIT_SECONDS * 10)):
        if (bench.folder / "copilot.sock").exists():
            break
        await asyncio.sleep(0.1)
    results: dict[str, object] = {"idle_cpu_percent": await cpu_percent(agent), "idle_rss_mib": rss_mib(agent)}
    for count in COUNTS:
        figures: list[float] = []
        for _ in range(ROUNDS[count]):
            before = len(bench.latencies)
            await asyncio.to_thread(bench.launch, count)
            await wait_for_latencies(bench, before + count)
            figures += bench.latencies[before:]
            await asyncio.sleep(1)
            await asyncio.to_thread(bench.finish)
        results[f"{count}_containers_milliseconds"] = percentiles(figures)
    await asyncio.to_thread(bench.launch, COUNTS[-1])
    await asyncio.sleep(5)
    results["busy_cpu_percent"] = await cpu_percent(agent)
    results["busy_rss_mib"] = rss_mib(agent)
    results["load_average"] = os.getloadavg()
    return results


async def wait_for_latencies(bench: Bench, count: int) -> None:
    """Wait until so many containers were measured."""
    for _ in range(int(WAIT_SECONDS * 10)):
        if len(bench.latencies) >= count:
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{len(bench.latencies)} of {count} containers after {WAIT_SECONDS:g} s")


async def cpu_percent(process: psutil.Process) -> float:
    """Measure a process's part of one core over some seconds."""
    before = process.cpu_times()
    await asyncio.sleep(IDLE_SECONDS)
    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    return round(used / IDLE_SECONDS * 100, 2)


def rss_mib(process: psutil.Process) -> float:
    """Read a process's resident memory."""
    return round(process.memory_info().rss / 1_048_576, 1)


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Give p50, p99 and the largest, milliseconds."""
    ordered = sorted(value * 1000 for value in seconds)
    return {
        "p50": round(statistics.median(ordered), 1),
        "p99": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 1),
        "max": round(ordered[-1], 1),
    }


async def main() -> None:
    """Measure, print, clean up."""
    hierarchies = find_hierarchies(read_mounts(), ROOT, KernelFiles())
    name = f"nm-proxy-bench-{os.getpid()}-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:
        async with EmbeddedNodeManager() as pages:
            bench = Bench(Path(folder), name, pages)
            try:
                for hierarchy in hierarchies.every:
                    make_best_effort(hierarchy, name)
                print(json.dumps(await measure(bench), indent=2))
            finally:
                await asyncio.to_thread(bench.stop)
                await asyncio.to_thread(sweep, hierarchies, name)


if __name__ == "__main__":
    asyncio.run(main())

# SPDX-License-Identifier: Apache-2.0
"""Put an agent, a NodeManager's pages and containers on the machine's own cgroup tree, and read what the agent costs.

The containers' processes sleep already when their pid files are written, all in one go, so that what is measured is
the agent and not how fast this machine starts programs. As with a real NodeManager, a container is listed and its
private directory is there before its pid file is.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from lab.embedded.node_manager.server import EmbeddedNodeManager
from lab.errors import LabError
from lab.node.machine import APPLICATION, container_id
from lab.processes import probes

ROOT: Final = "/sys/fs/cgroup"
WAIT_SECONDS: Final = 60.0
_MIB: Final = 1 << 20
_NANO: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Hold what the agent has used so far, seconds.

    Attributes:
        cpu_seconds: processor time of all its threads.
        waiting_seconds: time in which a thread of it could run and had no processor.
    """

    cpu_seconds: float
    waiting_seconds: float

    def since(self, before: Cost) -> Cost:
        """Give the difference."""
        return Cost(
            cpu_seconds=self.cpu_seconds - before.cpu_seconds,
            waiting_seconds=self.waiting_seconds - before.waiting_seconds,
        )


@dataclass
class Stage:
    """Hold one agent's process, the NodeManager's pages, and the containers."""

    folder: Path
    name: str
    pages: EmbeddedNodeManager
    next_number: int = 2
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    agent: psutil.Process | None = None

    @property
    def latencies(self) -> list[float]:
        """Read what the agent has measured so far, seconds."""
        path = self.folder / "latencies"
        return [float(line) for line in path.read_text().split()] if path.exists() else []

    def start_agent(self) -> None:
        """Start the agent and wait until it serves.

        Raises:
            LabError: it does not, in time.
        """
        settings = {
            "cgroup": {"root": ROOT, "hierarchy": f"{self.name}/hadoop-yarn"},
            "node_manager": {"url": self.pages.url, "local_directories": [str(self.folder / "local")]},
            "parenting": {"empty_group_age_seconds": 5},
            "copilot": {"socket": str(self.folder / "copilot.sock")},
        }
        (self.folder / "settings.json").write_text(json.dumps(settings))
        arguments = [str(self.folder / "settings.json"), str(self.folder / "latencies")]
        child = subprocess.Popen([sys.executable, "-m", "benchmarks.parenting.worker", *arguments])
        self.agent = psutil.Process(child.pid)
        socket = self.folder / "copilot.sock"
        probes.wait_until(socket.exists, what="the agent serves", timeout_seconds=WAIT_SECONDS)

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
        time.sleep(0.5)  # a NodeManager writes scripts and tokens into the directory meanwhile
        for name, folder, pid in started:
            (folder / f"{name}.pid.tmp").write_text(str(pid))
            (folder / f"{name}.pid.tmp").rename(folder / f"{name}.pid")

    def wait_measured(self, count: int) -> None:
        """Wait until the agent has measured so many containers in all.

        Raises:
            LabError: it took too long.
        """
        probes.wait_until(
            lambda: len(self.latencies) >= count, what=f"{count} containers are limited", timeout_seconds=WAIT_SECONDS
        )

    def finish(self) -> None:
        """End all containers as a NodeManager does: processes, private directories, entries of its list."""
        self._end_containers()
        shutil.rmtree(self.folder / "local" / "nmPrivate" / APPLICATION)
        self.pages.containers.clear()

    def wait_swept(self) -> None:
        """Wait until the agent has removed the groups of containers that ended, so that they cost nothing later.

        Raises:
            LabError: it took too long.
        """
        groups = Path(ROOT, "memory", self.name, "hadoop-yarn")
        probes.wait_until(
            lambda: not any(groups.glob("container_*")), what="no group is left", timeout_seconds=WAIT_SECONDS
        )

    def stop(self) -> None:
        """End everything that was started."""
        self._end_containers()
        if self.agent is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                self.agent.kill()
                self.agent.wait(timeout=10)

    def cost(self) -> Cost:
        """Read what the agent has used; the kernel counts waiting in /proc/PID/task/TID/schedstat, nanoseconds.

        Raises:
            LabError: it does not run.
        """
        agent = self._running()
        times = agent.cpu_times()
        waited = 0
        for task in Path(f"/proc/{agent.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                waited += int((task / "schedstat").read_text().split()[1])
        return Cost(cpu_seconds=times.user + times.system, waiting_seconds=waited / _NANO)

    def resident_mib(self) -> float:
        """Read the agent's resident memory.

        Raises:
            LabError: it does not run.
        """
        return float(self._running().memory_info().rss) / _MIB

    def _running(self) -> psutil.Process:
        if self.agent is None or not self.agent.is_running():
            raise LabError("the agent does not run")
        return self.agent

    def _end_containers(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()
        self.children.clear()

# SPDX-License-Identifier: Apache-2.0
"""Put up a real ResourceManager with a fleet of NodeManagers and say how to reach it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.workers.process import Worker
from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from lab.processes.progress import Progress
from yarn_copilot.hadoop.configuration import ClusterConfiguration, read_clusters
from yarn_copilot.hadoop.connection import ConnectionOptions

_YARN: Final = YarnOptions(heartbeat_millis=1000, expiry_millis=120_000, resource_manager_heap_mib=1536)
_TIMEOUT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Hold what the measurements need.

    Attributes:
        cluster: addresses of the ResourceManager.
        nodes: how many NodeManagers are registered.
        user: who may change them.
        hadoop_version: of the ResourceManager.
        timeout_seconds: deadline of every call.
    """

    cluster: ClusterConfiguration
    nodes: int
    user: str
    hadoop_version: str
    timeout_seconds: float = _TIMEOUT_SECONDS

    @property
    def options(self) -> ConnectionOptions:
        """Say how to open connections of one's own."""
        return ConnectionOptions(
            user=self.user, connect_timeout_seconds=self.timeout_seconds, max_response_bytes=1 << 27
        )


@contextlib.contextmanager
def place(nodes: int, progress: Progress) -> Iterator[Place]:
    """Start a ResourceManager of its own with so many NodeManagers, all registered."""
    with Lab(kubernetes=False, node_managers=0, yarn_options=_YARN, progress=progress) as lab:
        floor = lab.yarn.options
        arguments = ["--tracker", lab.yarn.tracker_address, "--nodes", str(nodes)]
        arguments += ["--memory-mib", str(floor.floor_memory_mib), "--vcores", str(floor.floor_vcores)]
        with progress.step(f"registering {nodes} NodeManagers"), contextlib.ExitStack() as workers:
            fleet = workers.enter_context(Worker("fleet", *arguments))
            fleet.ask("describe")
            kept = workers.pop_all()
        with kept:
            yield Place(
                cluster=read_clusters(lab.yarn.conf_dir)["default"],
                nodes=nodes,
                user=lab.yarn.operator_user,
                hadoop_version=lab.hadoop_version,
            )

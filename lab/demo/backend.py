# SPDX-License-Identifier: Apache-2.0
"""Define what the scenario needs of a cluster, whatever it is made of.

Kubernetes is reached by HTTP in both cases, so only credentials are needed. YARN's containers are processes in one
case and records in the other, so they have a port of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from batch_resources.resources import BatchResources, YarnResources
from lab.controller import Program
from lab.demo.agreement import Aim
from lab.koordinator.api import Credentials

MACHINE: Final = BatchResources(cpu_milli=32_000, memory_bytes=128 * 2**30)
"""The size that every Node claims; nothing of it is really there, a container of the demo only sleeps."""

CONTAINER: Final = YarnResources(memory_mib=2048, vcores=1)
QUEUE: Final = "root.batch.etl"
CONTROLLER_USER: Final = "yarn-copilot"
Settings = dict[str, dict[str, Any]]


class Mode(StrEnum):
    """Choose the controller's mode."""

    STRICT = "strict"
    SHARED = "shared"


def controller_settings(mode: Mode) -> Settings:
    """Give what the demo sets: times that suit a compressed day, of which the defaults would keep most waiting."""
    return {
        "capacity": {
            "mode": mode.value,
            "growth_window_seconds": 0,
            "strict": {
                "settle_seconds": 1,
                "fresh_read_seconds": 0.5,
                "nudge_seconds": 5,
                "yarn_quiet_seconds": 1,
                # The nodes of the demo are small: what is idle is some ten cores.
                "kubernetes_minimum_cpu_milli": 100,
                "kubernetes_minimum_memory_bytes": 128 * 2**20,
            },
        },
        "yarn": {
            "poll_interval_seconds": 0.25,
            "confirm_interval_seconds": 0.1,
            "queue_interval_seconds": 1,
            "message_lifetime_seconds": 2,
        },
        "hadoop": {"call_timeout_seconds": 1.5, "connect_timeout_seconds": 1},
        "leader_election": {"namespace": "kube-system"},
        "log": {"level": "INFO"},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoNode:
    """Name a node in both worlds.

    Attributes:
        name: Kubernetes' name.
        node_id: YARN's name, host:port.
        host_name: Host name of its NodeManager.
        address: Address of its NodeManager.
        capacity: Size of the machine that Koordinator divides, of which YARN sees only what is idle.
    """

    name: str
    node_id: str
    host_name: str
    address: str
    capacity: BatchResources


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnReading:
    """Hold what the ResourceManager's scheduler has for a node."""

    capacity: YarnResources
    used: YarnResources


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCounts:
    """Hold what the controller wrote, counted at the servers.

    Attributes:
        kubernetes: Patches of Nodes.
        yarn: updateNodeResource calls.
        other: Further writes to Kubernetes by what they are of, for example leases.
    """

    kubernetes: int
    yarn: int
    other: Mapping[str, int] = field(default_factory=dict)


class Workload(Protocol):
    """Be a YARN application that holds equal containers."""

    async def ask(self, count: int) -> None:
        """Ask for containers; what does not fit stays pending."""

    async def withdraw(self) -> None:
        """Take back what was asked for and not given yet."""

    async def release(self, count: int) -> None:
        """Give containers back."""

    def held(self) -> int:
        """Count the containers that are held now."""

    def started(self) -> int:
        """Count the containers that have ever run."""

    async def killed(self) -> int:
        """Count the containers that YARN took away, by the exit statuses seen and by the RM's own figures."""


class Backend(Protocol):
    """Be a running cluster with the product's controller on it."""

    @property
    def name(self) -> str:
        """Give `real` or `embedded`."""

    @property
    def nodes(self) -> tuple[DemoNode, ...]:
        """Give the nodes, the same all the time."""

    @property
    def floor(self) -> YarnResources:
        """Give what each NodeManager registers with."""

    @property
    def workload(self) -> Workload:
        """Give the application; after `start_workload` only."""

    def kubernetes(self) -> Credentials:
        """Say how to reach the API server as an administrator."""

    async def read_yarn(self) -> Mapping[str, YarnReading]:
        """Ask the ResourceManager, past the product, for its nodes by node id.

        Raises:
            LabError: It does not answer.
        """

    async def read_aims(self) -> Mapping[str, Aim]:
        """Ask the controller what it means to do, by node name; nodes that it has no plan for are missing.

        Raises:
            LabError: It does not answer.
        """

    async def start_controller(self, settings: Settings, program: Program | None = None) -> None:
        """Start the product's controller, or a program around it, and wait until it is ready.

        Raises:
            LabError: It ended or is not ready in time; the message quotes its log.
        """

    async def start_workload(self) -> None:
        """Submit the application."""

    async def controller_trouble(self) -> str | None:
        """Say what is wrong with the controller; None when it runs and calls itself healthy and ready."""

    async def count_writes(self) -> WriteCounts:
        """Count the controller's writes so far, at the servers."""

# SPDX-License-Identifier: Apache-2.0
"""Hold the answers of the port `copilot`; fields that are unknown here are ignored, so the two sides may differ in age.

Wire names are in camel case: `cpuMilli`, `memoryBytes`, `containerID` where an id is named alone.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from batch_resources.resources import BatchResources


class DrainState(StrEnum):
    """Tell whether the node is given up."""

    ACTIVE = "active"
    DRAINING = "draining"
    DRAINED = "drained"


class LingeringContainer(Struct, frozen=True, rename="camel"):
    """Hold one container that YARN does not count any more and that still has processes."""

    container_id: str
    why: str
    seconds: float
    processes: int
    cpu_milli: int
    memory_bytes: int


class LingeringWork(Struct, frozen=True, rename="camel"):
    """Hold all of them, and the sum of what they hold."""

    containers: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    items: tuple[LingeringContainer, ...] = ()

    @property
    def holds(self) -> BatchResources:
        """Give what has to be added to YARN's use of the node."""
        return BatchResources(cpu_milli=self.cpu_milli, memory_bytes=self.memory_bytes)


class Amount(Struct, frozen=True, rename="camel"):
    """Hold milli-cores and bytes."""

    cpu_milli: int
    memory_bytes: int

    def to_batch(self) -> BatchResources:
        """Give it in the ledger's own type."""
        return BatchResources(cpu_milli=self.cpu_milli, memory_bytes=self.memory_bytes)


class NodeAgentState(Struct, frozen=True, rename="camel"):
    """Hold the answer of `GET /v1/state`.

    Attributes:
        containers: how many have processes or are live.
        running: what the containers hold that have processes and do not linger; None from an agent that does not say.
        node_manager: how the NodeManager answers its neighbour, in that program's words.
        node_id: host:port as the NodeManager names itself; empty while unknown.
    """

    drain: DrainState
    containers: int
    lingering: LingeringWork = LingeringWork()
    running: Amount | None = None
    node_manager: str = ""
    node_id: str = ""


class FailedKill(Struct, frozen=True):
    """Hold one container that could not be ended in time."""

    containerID: str
    reason: str


class KillResult(Struct, frozen=True):
    """Hold the answer of `POST /v1/kill`: who was ended and seen empty, and what that gave back."""

    killed: tuple[str, ...]
    freed: Amount
    missing: Amount
    failed: tuple[FailedKill, ...] = ()


class Problem(Struct, frozen=True):
    """Hold why a call was refused."""

    error: str

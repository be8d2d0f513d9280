# SPDX-License-Identifier: Apache-2.0
"""Play what the controller reaches outside of itself, with scripted faults and a record of what was asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.kube.manual_clock import ManualClock
from yarn_copilot.hadoop.errors import UnrecognizedNodeError
from yarn_copilot.hadoop.model import (
    ClusterMetrics,
    NodeId,
    NodeReport,
    NodeResourceUpdate,
    NodeState,
    QueueInfo,
    Resource,
)
from yarn_copilot.kube.errors import NotLeaderError
from yarn_copilot.node_agent.model import Amount, DrainState, LingeringWork, NodeAgentState

ZERO = Resource(0, 0)
FRESH = Resource(1024, 1)
"""What a NodeManager registers with."""


class LeadershipSwitch:
    """Be leader or not, as the test says."""

    def __init__(self) -> None:
        self.is_leader = True
        self.term = 1
        self.holder = "one"
        self.checks_left: int | None = None
        """Checks that still pass; None: all."""

    def check(self) -> None:
        """Raise unless leader."""
        if self.checks_left is not None:
            self.checks_left -= 1
            if self.checks_left < 0:
                self.is_leader = False
        if not self.is_leader:
            raise NotLeaderError("the lease is not held")


class RecordingEvents:
    """Keep every Event."""

    def __init__(self) -> None:
        self.of_nodes: list[tuple[str, str, str, str]] = []
        self.of_controller: list[tuple[str, str, str]] = []

    def node_event(self, node_name: str, *, type: str, reason: str, message: str) -> None:
        """Keep an Event on a Node."""
        self.of_nodes.append((node_name, type, reason, message))

    def controller_event(self, *, type: str, reason: str, message: str) -> None:
        """Keep an Event on the controller."""
        self.of_controller.append((type, reason, message))

    def reasons(self, node: str) -> list[str]:
        """Give the reasons told on a node, in order."""
        return [reason for name, _, reason, _ in self.of_nodes if name == node]


class FakeAgent:
    """Be the program beside a NodeManager.

    Attributes:
        lingering, running: what it says.
        drain: what it says.
        error: raised by every call while it is set.
        hangs: seconds that a call takes.
        kills: every ask.
        frees: what a kill frees; None: all that was asked.
        on_kill: called with every ask that is obeyed.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.lingering = ZERO_BATCH
        self.running: BatchResources | None = ZERO_BATCH
        self.drain = DrainState.ACTIVE
        self.error: Exception | None = None
        self.hangs = 0.0
        self.kills: list[BatchResources] = []
        self.frees: BatchResources | None = None
        self.on_kill: Callable[[BatchResources], None] = lambda asked: None
        self.reads = 0
        self.is_closed = False

    async def state(self) -> NodeAgentState:
        """Give the state."""
        self.reads += 1
        await self._obstacles()
        linger, running = self.lingering, self.running
        return NodeAgentState(
            drain=self.drain,
            containers=0,
            lingering=LingeringWork(cpu_milli=linger.cpu_milli, memory_bytes=linger.memory_bytes),
            running=None if running is None else Amount(running.cpu_milli, running.memory_bytes),
        )

    async def kill(self, resources: BatchResources, *, deadline_seconds: float) -> BatchResources:
        """Obey."""
        self.kills.append(resources)
        await self._obstacles()
        self.on_kill(resources)
        return resources if self.frees is None else self.frees

    async def aclose(self) -> None:
        """Note it."""
        self.is_closed = True

    async def _obstacles(self) -> None:
        if self.hangs:
            await self._clock.sleep(self.hangs)
        if self.error is not None:
            raise self.error


class FakeResourceManager:
    """Hold nodes as a ResourceManager does.

    Attributes:
        batches: every call of `update_node_resource`, also those that failed.
        applies: whether accepted updates show up in the node list; while False they wait in `accepted`.
        pending: what the one leaf queue waits for.
        read_errors, update_errors, queue_errors: raised by the next calls, one each; None lets one call pass.
        lands_before_error: whether an update whose call fails takes effect all the same.
        gate: while cleared, updates hang after they were recorded.
    """

    def __init__(self) -> None:
        self.reports: dict[NodeId, NodeReport] = {}
        self.batches: list[list[NodeResourceUpdate]] = []
        self.applies = True
        self.accepted: list[NodeResourceUpdate] = []
        self.read_errors: deque[Exception | None] = deque()
        self.update_errors: deque[Exception | None] = deque()
        self.lands_before_error = False
        self.down: Exception | None = None
        self.unknown: set[NodeId] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.reads = 0
        self.pending = ZERO
        self.queue_errors: deque[Exception | None] = deque()

    def add(
        self,
        node_id: str,
        *,
        capacity: Resource = FRESH,
        used: Resource = ZERO,
        state: NodeState = NodeState.RUNNING,
        http_address: str = "",
    ) -> NodeId:
        """Register a NodeManager."""
        parsed = NodeId.parse(node_id)
        self.reports[parsed] = NodeReport(
            node_id=parsed,
            state=state,
            http_address=http_address,
            rack="/default-rack",
            capability=capacity,
            used=used,
            containers=0,
            last_health_report_millis=len(self.reports),
        )
        return parsed

    def change(self, node_id: NodeId, **changes: object) -> None:
        """Change a report."""
        self.reports[node_id] = replace(self.reports[node_id], **changes)

    def capacity(self, node_id: NodeId) -> Resource:
        """Give a node's total."""
        return self.reports[node_id].capability

    @property
    def sent(self) -> list[tuple[str, int, int]]:
        """Give all updates as (node id, vcores, MiB), in order."""
        return [(str(u.node_id), u.resource.vcores, u.resource.memory_mib) for batch in self.batches for u in batch]

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """List the nodes."""
        self.reads += 1
        self._raise(self.read_errors)
        return list(self.reports.values())

    async def get_cluster_metrics(self) -> ClusterMetrics:
        """Count the nodes."""
        count = len(self.reports)
        return ClusterMetrics(count, count, 0, 0, 0, 0, 0, 0)

    async def get_queue_info(self, queue: str) -> QueueInfo:
        """Give one queue with one child."""
        self._raise(self.queue_errors)
        child = QueueInfo("batch", "", "RUNNING", 1.0, 1.0, 0.5, Resource(2048, 2), self.pending, ZERO, 2, 0)
        return QueueInfo(queue, "", "RUNNING", 1.0, 1.0, 0.5, Resource(2048, 2), ZERO, ZERO, 2, 0, children=(child,))

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Take one batch."""
        self.batches.append(list(updates))
        await self.gate.wait()
        try:
            self._raise(self.update_errors)
        except Exception:
            if self.lands_before_error:
                self._accept(updates)
            raise
        for update in updates:
            report = self.reports.get(update.node_id)
            if report is None or update.node_id in self.unknown or not report.state.is_active:
                raise unrecognized(update.node_id)
        self._accept(updates)

    async def aclose(self) -> None:
        """Do nothing."""

    def apply_accepted(self) -> None:
        """Let the accepted updates take effect."""
        for update in self.accepted:
            self.change(update.node_id, capability=update.resource)
        self.accepted = []

    def _accept(self, updates: Sequence[NodeResourceUpdate]) -> None:
        self.accepted.extend(updates)
        if self.applies:
            self.apply_accepted()

    def _raise(self, errors: deque[Exception | None]) -> None:
        if self.down is not None:
            raise self.down
        error = errors.popleft() if errors else None
        if error is not None:
            raise error


def unrecognized(node_id: object) -> UnrecognizedNodeError:
    """Give the answer of a ResourceManager that does not know a node."""
    return UnrecognizedNodeError(
        "org.apache.hadoop.yarn.exceptions.YarnException",
        f"Resource update get failed on all nodes due to change resource on an unrecognized node: {node_id}",
    )

# SPDX-License-Identifier: Apache-2.0
"""Keep what one YARN cluster's ResourceManager last said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yarn_copilot.controller.identity.host_index import HostIndex
from yarn_copilot.controller.state.partitions import PartitionDemand
from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeState, QueueInfo, SchedulerReading

USE_IS_KNOWN = frozenset({NodeState.RUNNING, NodeState.DECOMMISSIONING})
"""States in which the scheduler holds the node, so that `used` means something."""

ACCEPTS_UPDATES = frozenset({NodeState.RUNNING, NodeState.UNHEALTHY})
"""States in which an update lasts; a DECOMMISSIONING node is set to its use by the RM at every heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Say what a read changed.

    Attributes:
        membership: nodes came, went, or became active or inactive, so identities have to be matched again.
        nodes: nodes whose state, capability or use differs from the read before, or that are listed no longer.
    """

    membership: bool
    nodes: frozenset[NodeId]


class ClusterState:
    """Hold one cluster's node list and how fresh it is.

    Attributes:
        cluster: the id.
        reports: newest report of each node, in every state.
        scheduled: the scheduler's own figures of the nodes that were asked for with the newest read.
        read_began_at: monotonic moment at which the newest complete read began; None before the first.
        read_ended_at: the same for its end.
        reachable_since: end of the first read that succeeded after none did.
        error: why the last read failed; empty when it did not.
        demand: what its applications wait for.
        incarnation: counts the times at which the ResourceManager may have become another one.
    """

    def __init__(self, cluster: str, addresses: Sequence[str]) -> None:
        """Begin without any knowledge."""
        self.cluster = cluster
        self.addresses = tuple(addresses)
        self.reports: Mapping[NodeId, NodeReport] = {}
        self.scheduled: Mapping[NodeId, SchedulerReading] = {}
        self.index = HostIndex()
        self.read_began_at: float | None = None
        self.read_ended_at: float | None = None
        self.reachable_since: float | None = None
        self.failing_since: float | None = None
        self.error = ""
        self.incarnation = 0
        self.queues: QueueInfo | None = None
        self.queues_read_at: float | None = None
        self.demand = PartitionDemand()

    def take(self, reports: Sequence[NodeReport], *, began_at: float, ended_at: float) -> Changes:
        """Store a complete read and say what it changed."""
        before = self.reports
        fresh = {report.node_id: report for report in reports}
        membership = fresh.keys() != before.keys()
        changed = set()
        for node_id, report in fresh.items():
            known = before.get(node_id)
            if known is None or known.state is not report.state:
                # Which of several ids a NodeManager has depends on which of them are active, on nothing else of these.
                membership = membership or known is None or known.state.is_active != report.state.is_active
                changed.add(node_id)
            elif known.used != report.used or known.capability != report.capability:
                changed.add(node_id)
        self.reports = fresh
        if membership:
            changed.update(before.keys() - fresh.keys())
            self.index = HostIndex(reports)
        if not self.reachable:
            self.reachable_since = ended_at
        self.read_began_at = began_at
        self.read_ended_at = ended_at
        self.failing_since = None
        self.error = ""
        return Changes(membership=membership, nodes=frozenset(changed))

    def fail(self, error: str, *, now: float) -> None:
        """Note that a read failed: what was known stays, and the next RM to answer may be another one."""
        if self.failing_since is None:
            self.failing_since = now
            self.incarnation += 1
        self.error = error

    @property
    def has_view(self) -> bool:
        """Tell whether a complete read was ever made."""
        return self.read_began_at is not None

    @property
    def reachable(self) -> bool:
        """Tell whether the last read succeeded."""
        return self.has_view and self.failing_since is None

    def age_seconds(self, now: float) -> float | None:
        """Give the time since the newest complete read began."""
        return None if self.read_began_at is None else now - self.read_began_at

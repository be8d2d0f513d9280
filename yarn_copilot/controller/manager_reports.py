# SPDX-License-Identifier: Apache-2.0
"""Learn from a cluster's node list what each NodeManager holds, and which of it is proven.

The ResourceManager's side of the book: reads become evidence in the NodeManager's memory, and evidence becomes the
planner's observation of it. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from batch_resources.applied import ManagerReading, observe_reading, start_anew
from batch_resources.evidence import UseReading, observe_use
from batch_resources.giving_way import Overcommit
from batch_resources.ledger import ManagerObservation, Running
from batch_resources.planner.policy import Mode
from batch_resources.resources import ZERO_YARN, YarnResources
from batch_resources.sends import all_show, confirm, expire, mark_confirmed, may_disturb_use
from yarn_copilot.controller.memory import AgentMemory, ManagerMemory
from yarn_copilot.controller.node_capacity.backoff import note_recognized
from yarn_copilot.controller.state.cluster import ACCEPTS_UPDATES, USE_IS_KNOWN, ClusterState
from yarn_copilot.hadoop.model import NodeReport, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSettings:
    """Hold the times that the book needs, in seconds, and the split between clusters."""

    lost_hold_seconds: float
    message_lifetime_seconds: float
    foreign_hold_seconds: float
    default_cluster: str | None
    cluster_weights: Mapping[str, int]
    settle_seconds: float = 10.0
    default_mode: Mode = Mode.SHARED
    cluster_modes: Mapping[str, Mode] = field(default_factory=dict)
    drains_cordoned: bool = False


def to_yarn(resource: Resource) -> YarnResources:
    """Drop the custom types of a YARN vector."""
    return YarnResources(memory_mib=resource.memory_mib, vcores=resource.vcores)


class ManagerReports:
    """Turn reports into evidence, and evidence into observations."""

    def __init__(
        self, clusters: Mapping[str, ClusterState], heartbeats: Mapping[str, float], settings: BookSettings
    ) -> None:
        """Take what each ResourceManager said, each cluster's heartbeat interval in seconds, and times."""
        self._clusters = clusters
        self._heartbeats = heartbeats
        self.settings = settings
        self.office_since: float | None = None
        """Monotonic moment at which this term of office began; None while another replica leads."""

    def take(self, manager: ManagerMemory, state: ClusterState, *, now: float) -> bool:
        """Learn from the cluster's newest read what it says of one NodeManager.

        Returns:
            Whether anything changed that a plan depends on.
        """
        assert state.read_began_at is not None  # noqa: S101  # called after a read only
        assert state.read_ended_at is not None  # noqa: S101
        before = (manager.sends, manager.evidence, manager.not_running_since, manager.applied)
        if manager.incarnation != state.incarnation:
            manager.incarnation = state.incarnation
            manager.restart_evidence()
            manager.overcommit = Overcommit()  # a deadline does not outlive its ResourceManager
        report = None if manager.node_id is None else state.reports.get(manager.node_id)
        if manager.is_strict:
            self._take_strictly(manager, state, report)
        elif manager.sends:
            manager.sends = expire(manager.sends, now=now, lifetime_seconds=self.settings.message_lifetime_seconds)
            if report is not None:
                manager.sends = confirm(manager.sends, to_yarn(report.capability), read_began_at=state.read_began_at)
        if report is None or report.state not in USE_IS_KNOWN:
            if manager.not_running_since is None:
                manager.not_running_since = now
                manager.restart_evidence()
        else:
            if manager.not_running_since is not None:
                note_recognized(manager)  # what was refused while it was missing says nothing now
            manager.not_running_since = None
            manager.evidence = observe_use(
                manager.evidence,
                UseReading(used=to_yarn(report.used), began_at=state.read_began_at, ended_at=state.read_ended_at),
                heartbeat_seconds=self._heartbeats[state.cluster],
                has_outstanding_send=may_disturb_use(manager.sends),
            )
        return before != (manager.sends, manager.evidence, manager.not_running_since, manager.applied)

    def _take_strictly(self, manager: ManagerMemory, state: ClusterState, report: NodeReport | None) -> None:
        """Keep updates until a read that began after their lifetime, and let reads count as proofs."""
        assert state.read_began_at is not None  # noqa: S101  # called after a read only
        began_at = state.read_began_at
        sends = expire(manager.sends, now=began_at, lifetime_seconds=self.settings.message_lifetime_seconds)
        if report is None or report.state not in USE_IS_KNOWN:
            manager.sends = sends
            manager.applied = start_anew(manager.applied)
            return
        capacity = to_yarn(report.capability)
        manager.sends = mark_confirmed(sends, capacity, read_began_at=began_at)
        # The scheduler's figures are read after the list, so its use is the newer of the two.
        scheduled = state.scheduled.get(report.node_id)
        used = to_yarn(report.used)
        reading = ManagerReading(
            capacity=capacity,
            scheduler_total=None if scheduled is None else to_yarn(scheduled.total),
            used=used if scheduled is None else used.at_least(to_yarn(scheduled.used)),
            incarnation=(state.incarnation, "" if scheduled is None else scheduled.incarnation),
            heartbeat="" if scheduled is None else scheduled.heartbeat,
        )
        counts = self.outlives_earlier_leaders(manager, state) and all_show(manager.sends, capacity)
        manager.applied = observe_reading(manager.applied, reading, counts=counts)

    def outlives_earlier_leaders(self, manager: ManagerMemory, state: ClusterState | None) -> bool:
        """Tell whether a cluster's newest read began after every message had died that this term has no record of.

        Those are messages of an earlier leader, and our own of a time when mode strict did not count here.
        """
        if state is None or state.read_began_at is None or self.office_since is None:
            return False
        since = self.office_since if manager.strict_since is None else max(self.office_since, manager.strict_since)
        return state.read_began_at - since >= self.settings.message_lifetime_seconds

    def yarn_waits(self, managers: Iterable[ManagerMemory]) -> bool | None:
        """Tell whether applications of any cluster wait for a node with these NodeManagers; None when unknown."""
        answers = [self._waits_for(manager) for manager in managers]
        if True in answers:
            return True
        return None if None in answers else False

    def _waits_for(self, manager: ManagerMemory) -> bool | None:
        state, report = self._clusters.get(manager.key.cluster), self.of(manager)
        return None if state is None or report is None else state.demand.waits(report.labels)

    def needs_proof(self, manager: ManagerMemory) -> bool:
        """Tell whether the scheduler's own figures of a NodeManager could prove something that is not proven yet."""
        if not manager.is_strict or manager.node_id is None:
            return False
        report = self.of(manager)
        if report is None or report.state not in USE_IS_KNOWN:
            return False
        lowest = to_yarn(report.capability).at_least(to_yarn(report.used))
        return manager.applied.proven is None or manager.applied.proven != lowest

    def of(self, manager: ManagerMemory) -> NodeReport | None:
        """Give the RM's newest report of a NodeManager."""
        state = self._clusters.get(manager.key.cluster)
        if state is None or manager.node_id is None:
            return None
        return state.reports.get(manager.node_id)

    def observe(self, manager: ManagerMemory, *, drains: bool = False) -> ManagerObservation:
        """Make the observation of one NodeManager that the planner gets; `drains`: its node is to become empty."""
        state = self._clusters.get(manager.key.cluster)
        report = None if state is None or manager.node_id is None else state.reports.get(manager.node_id)
        return ManagerObservation(
            key=manager.key,
            reachable=state is not None and state.reachable and state.reachable_since is not None,
            # What lost its pod is only waited for: it gets no update.
            accepts_updates=report is not None and report.state in ACCEPTS_UPDATES and manager.candidate is not None,
            capacity=None if report is None else to_yarn(report.capability),
            used=self._used(manager),
            used_is_proven=manager.evidence.complete,
            proven=self._proven(manager),
            outlives_earlier_leaders=self.outlives_earlier_leaders(manager, state),
            sends=manager.sends,
            weight=self.settings.cluster_weights.get(manager.key.cluster, 1),
            retry_at=manager.retry_at,
            cluster_is_known=state is not None,
            drains=drains or (manager.candidate is not None and manager.candidate.is_terminating),
            overcommit=manager.overcommit,
            levels=manager.levels,
            running=_running(manager.agent),
        )

    def _used(self, manager: ManagerMemory) -> YarnResources | None:
        if not manager.is_strict or self._is_proven_empty(manager):
            return manager.evidence.settled
        return manager.applied.used

    def _proven(self, manager: ManagerMemory) -> YarnResources | None:
        """Give what is proven to be in force; what is over (see `departure`) holds nothing."""
        return ZERO_YARN if self._is_proven_empty(manager) else manager.applied.proven

    @staticmethod
    def _is_proven_empty(manager: ManagerMemory) -> bool:
        return (
            manager.not_running_since is not None
            and manager.evidence.complete
            and manager.evidence.settled == ZERO_YARN
        )

    def reachable_since(self, manager: ManagerMemory) -> float | None:
        """Give the moment since which a NodeManager's cluster has been read without a break; None while it is not."""
        state = self._clusters.get(manager.key.cluster)
        return None if state is None or not state.reachable else state.reachable_since


def _running(agent: AgentMemory) -> Running | None:
    if agent.running is None or agent.read_at is None:
        return None
    return Running(holds=agent.running, read_at=agent.read_at)

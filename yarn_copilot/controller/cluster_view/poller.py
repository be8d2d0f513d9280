# SPDX-License-Identifier: Apache-2.0
"""Read one cluster's node list again and again, faster while an update waits to be confirmed.

A read that fails changes nothing but the cluster's `error` and `incarnation`: what was known stays known, grows old
and is frozen by the planner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from batch_resources.resources import YarnResources
from batch_resources.sends import unconfirmed
from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.manager_reports import to_yarn
from yarn_copilot.controller.memory import ManagerMemory
from yarn_copilot.controller.ports import ResourceManager, SchedulerReader
from yarn_copilot.controller.state.cluster import Changes, ClusterState
from yarn_copilot.controller.steps import Step
from yarn_copilot.controller.waiting import wait_at_most
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop.model import NodeId, SchedulerReading

logger = logging.getLogger(__name__)

RETURN_WATCH_SECONDS = 30.0
"""How long NodeManagers that are missing are looked for as often as an update is: after a failover they come within
seconds, and nothing can be sent to them before."""
_FAILURE_WAIT_MAX_SECONDS = 5.0
_SEARCH_AGAIN_SECONDS = 0.25
"""Pause after an error that ends by itself, as a failover does: the next read searches the active one again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollSettings:
    """Hold the times between two reads, in seconds: at rest, and while an update is not confirmed."""

    interval_seconds: float
    confirm_interval_seconds: float


class ClusterPoller:
    """Keep a `ClusterState` fresh and mark the nodes that it changes."""

    def __init__(
        self,
        state: ClusterState,
        resource_manager: ResourceManager,
        *,
        context: LoopContext,
        settings: PollSettings,
        on_reachable: Callable[[ClusterState, bool], None],
        on_applied: Callable[[ManagerMemory, str], None],
        scheduler: SchedulerReader | None = None,
    ) -> None:
        """Take what it fills, and the callbacks for a change of reachability and for a confirmed update."""
        self._state = state
        self._resource_manager = resource_manager
        self._book = context.book
        self._dirty = context.dirty
        self._clock = context.clock
        self._metrics = context.metrics
        self._on_step = context.on_step
        self.settings = settings
        self._on_reachable = on_reachable
        self._on_applied = on_applied
        self._scheduler = scheduler
        self._expedite = asyncio.Event()
        self._pulse = context.pulse
        self.name = f"cluster_view of {state.cluster}"
        self._failures = 0
        self._has_pending = False
        self._is_scheduler_unread = False
        self._is_falling = False
        self._is_returning = False
        self._ends_by_itself = False

    def expedite(self) -> None:
        """Read soon: an update was sent."""
        self._expedite.set()

    async def run(self) -> None:
        """Poll for ever."""
        self._pulse.beat(self.name)  # a cluster that came later is not late from the start
        while True:
            await self.poll_once()
            self._pulse.beat(self.name)
            await self._wait()

    async def poll_once(self) -> None:
        """Read the node list once and learn from it."""
        began_at = self._clock.monotonic()
        try:
            reports = await self._resource_manager.get_cluster_nodes()
        except YarnCopilotError as problem:
            self._note_failure(problem)
            return
        now = self._clock.monotonic()
        was_reachable = self._state.reachable
        changes = self._state.take(reports, began_at=began_at, ended_at=now)
        self._failures = 0
        if not was_reachable:
            self._on_reachable(self._state, True)
            # What was decided meanwhile took this cluster for frozen.
            self._dirty.mark_all(self._book.residents.names_of_cluster(self._state.cluster))
        unproven = self._unproven()
        self._state.scheduled = await self._read_scheduler(unproven)
        self._learn(changes, unproven, now=now)
        self._metrics.observe_cycle("cluster_view", self._clock.monotonic() - began_at)
        self._tell_metrics(now)

    def _unproven(self) -> dict[NodeId, None]:
        """Name the NodeManagers that wait for a proof, in the order of the book."""
        managers = self._book.residents.managers_of_cluster(self._state.cluster)
        needs_proof = self._book.reports.needs_proof
        return {m.node_id: None for _, m in managers if m.node_id is not None and needs_proof(m)}

    async def _read_scheduler(self, unproven: Collection[NodeId]) -> Mapping[NodeId, SchedulerReading]:
        """Ask for the scheduler's own figures where something waits for a proof; nothing otherwise, or on an error."""
        if self._scheduler is None or not unproven:
            return {}
        try:
            readings = await self._scheduler.read_scheduler(unproven)
        except YarnCopilotError as problem:
            self._metrics.count_error("cluster_view", problem)
            if not self._is_scheduler_unread:
                logger.warning(
                    "The scheduler's figures cannot be read from the ResourceManager's web services, so no claim of "
                    "mode strict falls until they can: %s",
                    problem,
                    extra={"cluster": self._state.cluster},
                )
            self._is_scheduler_unread = True
            return {}
        if self._is_scheduler_unread:
            logger.info("The scheduler's figures are read again", extra={"cluster": self._state.cluster})
        self._is_scheduler_unread = False
        return readings

    def _learn(self, changes: Changes, unproven: Collection[NodeId], *, now: float) -> None:
        if changes.membership:
            for name in self._book.residents.names_of_cluster(self._state.cluster):
                if self._book.residents.identify_again(name, now=now):
                    self._dirty.mark(name)
        incarnation = self._state.incarnation
        self._is_falling = self._is_returning = False
        for name, manager in self._book.residents.managers_of_cluster(self._state.cluster):
            touched = manager.node_id in changes.nodes
            if not touched and self._is_quiet(manager, incarnation) and manager.node_id not in unproven:
                continue
            waiting = unconfirmed(manager.sends)
            changed = self._book.reports.take(manager, self._state, now=now)
            self._is_falling = self._is_falling or manager.evidence.is_falling
            self._is_returning = self._is_returning or self._may_return(manager, now)
            if waiting and not unconfirmed(manager.sends) and self._shows(manager, waiting[-1].resources):
                self._on_step(Step.UPDATE_CONFIRMED, name)
                self._on_applied(manager, name)
            if changed or touched:
                self._dirty.mark(name)

    def _shows(self, manager: ManagerMemory, resources: YarnResources) -> bool:
        report = self._book.reports.of(manager)
        return report is not None and to_yarn(report.capability) == resources

    @staticmethod
    def _may_return(manager: ManagerMemory, now: float) -> bool:
        """Tell whether a NodeManager has been missing so shortly that it may register any moment."""
        since = manager.not_running_since
        return since is not None and manager.candidate is not None and now - since < RETURN_WATCH_SECONDS

    @staticmethod
    def _is_quiet(manager: ManagerMemory, incarnation: int) -> bool:
        """Tell whether a read that changed nothing can teach nothing about a NodeManager."""
        evidence = manager.evidence
        return (
            evidence.complete
            and not evidence.pending
            and not manager.sends
            and manager.not_running_since is None
            and manager.incarnation == incarnation
        )

    def _note_failure(self, problem: YarnCopilotError) -> None:
        was_reachable = self._failures == 0
        self._failures += 1
        self._ends_by_itself = problem.retryable
        self._state.fail(str(problem), now=self._clock.monotonic())
        self._metrics.count_error("cluster_view", problem)
        if was_reachable:
            self._on_reachable(self._state, False)
            self._dirty.mark_all(self._book.residents.names_of_cluster(self._state.cluster))
        self._tell_metrics(self._clock.monotonic())

    def _tell_metrics(self, now: float) -> None:
        state = self._state
        pending = sum(
            1 for _, manager in self._book.residents.managers_of_cluster(state.cluster) if unconfirmed(manager.sends)
        )
        self._metrics.set_cluster(
            state.cluster, reachable=state.reachable, age=state.age_seconds(now), pending_updates=pending
        )
        self._has_pending = pending > 0

    async def _wait(self) -> None:
        if self._failures:
            seconds = min(self.settings.interval_seconds * 2 ** min(self._failures - 1, 6), _FAILURE_WAIT_MAX_SECONDS)
            await self._clock.sleep(min(seconds, _SEARCH_AGAIN_SECONDS) if self._ends_by_itself else seconds)
            return
        if self._has_pending or self._is_returning or self._expedite.is_set():
            self._expedite.clear()
            await self._clock.sleep(self.settings.confirm_interval_seconds)
            return
        # A lower use was seen: the read that proves it comes a heartbeat later, not a whole interval.
        heartbeat = self._book.heartbeat_seconds(self._state.cluster)
        longest = min(self.settings.interval_seconds, heartbeat) if self._is_falling else self.settings.interval_seconds
        if not await wait_at_most(self._expedite, self._clock, longest):
            return
        self._expedite.clear()
        await self._clock.sleep(min(self.settings.confirm_interval_seconds, self.settings.interval_seconds) / 4)

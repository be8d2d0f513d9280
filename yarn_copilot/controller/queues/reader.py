# SPDX-License-Identifier: Apache-2.0
"""Read one cluster's queues now and then, and what its partitions wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.ports import PartitionReader, ResourceManager
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.controller.state.partitions import DEFAULT_PARTITION, default_pending
from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop.model import QueueInfo, Resource

logger = logging.getLogger(__name__)

FAILURES_UNTIL_UNKNOWN = 3
"""Reads that fail one after another before demand counts as unknown; one lost call must not move boundaries."""


class QueueReader:
    """Keep a cluster's `queues` and `demand` fresh; a failed read keeps the last ones, which grow old."""

    def __init__(
        self,
        state: ClusterState,
        resource_manager: ResourceManager,
        *,
        context: LoopContext,
        interval_seconds: float,
        partitions: PartitionReader | None = None,
        on_demand: Callable[[ClusterState], None] = lambda state: None,
    ) -> None:
        """Take the cluster whose queues are read, and the callback for a change of who waits.

        Args:
            partitions: reads labelled partitions; None where that is not possible, so that theirs stays unknown.
        """
        self._state = state
        self._resource_manager = resource_manager
        self._partitions = partitions
        self._on_demand = on_demand
        self._clock = context.clock
        self._metrics = context.metrics
        self._failures = 0
        self._is_told = False
        self.interval_seconds = interval_seconds
        self.quiet_seconds = 0.0

    async def run(self) -> None:
        """Read for ever."""
        while True:
            if self._state.reachable:
                await self.read_once()
                await self._clock.sleep(self.interval_seconds)
            else:
                self._note_failure()
                await self._clock.sleep(min(1.0, self.interval_seconds))

    async def read_once(self) -> None:
        """Read all queues below root."""
        began_at = self._clock.monotonic()
        try:
            queues = await self._resource_manager.get_queue_info("root")
            labelled = await self._read_partitions()
        except YarnCopilotError as problem:
            self._metrics.count_error("queues", problem)
            self._note_failure()
            self._tell_failure(problem)
            return
        now = self._clock.monotonic()
        self._state.queues = queues
        self._state.queues_read_at = now
        self._failures = 0
        if self._is_told:
            self._is_told = False
            logger.info("Queues are read again", extra={"cluster": self._state.cluster})
        self._learn(queues, labelled, now=now)
        self._metrics.observe_cycle("queues", now - began_at)

    async def _read_partitions(self) -> Mapping[str, Resource] | None:
        """Read the labelled partitions where a node has a label; None when theirs cannot be known."""
        if self._partitions is None or not any(report.labels for report in self._state.reports.values()):
            return None
        return await self._partitions.read()

    def _learn(self, queues: QueueInfo, labelled: Mapping[str, Resource] | None, *, now: float) -> None:
        # Over REST the queues show all partitions in one sum, so the default one is taken from the same answer.
        default = default_pending(queues) if labelled is None else labelled.get(DEFAULT_PARTITION, _NOTHING)
        demand = self._state.demand
        changed = demand.take(default, labelled, now=now, quiet_seconds=self.quiet_seconds)
        amounts = {name: (amount.memory_mib, amount.vcores) for name, amount in demand.pending.items()}
        self._metrics.set_yarn_demand(self._state.cluster, amounts)
        if changed:
            self._on_demand(self._state)

    def _note_failure(self) -> None:
        self._failures += 1
        if self._failures == FAILURES_UNTIL_UNKNOWN and self._state.demand.forget():
            self._metrics.set_yarn_demand(self._state.cluster, {})
            self._on_demand(self._state)

    def _tell_failure(self, problem: YarnCopilotError) -> None:
        """Say once why demand is not known; of a ResourceManager that does not answer at all the poller tells."""
        if self._failures < FAILURES_UNTIL_UNKNOWN or self._is_told:
            return
        self._is_told = True
        logger.warning(
            "Queues cannot be read, so it is not known what applications wait for; mode strict divides what is free "
            "by the configured weights until they can: %s",
            problem,
            extra={"cluster": self._state.cluster},
        )


_NOTHING = Resource(memory_mib=0, vcores=0)

# SPDX-License-Identifier: Apache-2.0
"""Read one cluster's queues now and then."""

from __future__ import annotations

from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.ports import ResourceManager
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.errors import YarnCopilotError


class QueueReader:
    """Keep a cluster's `queues` fresh; a failed read keeps the last one, which grows old."""

    def __init__(
        self,
        state: ClusterState,
        resource_manager: ResourceManager,
        *,
        context: LoopContext,
        interval_seconds: float,
    ) -> None:
        """Take the cluster whose queues are read."""
        self._state = state
        self._resource_manager = resource_manager
        self._clock = context.clock
        self._metrics = context.metrics
        self.interval_seconds = interval_seconds

    async def run(self) -> None:
        """Read for ever."""
        while True:
            if self._state.reachable:
                await self.read_once()
                await self._clock.sleep(self.interval_seconds)
            else:
                await self._clock.sleep(min(1.0, self.interval_seconds))

    async def read_once(self) -> None:
        """Read all queues below root."""
        began_at = self._clock.monotonic()
        try:
            queues = await self._resource_manager.get_queue_info("root")
        except YarnCopilotError as problem:
            self._metrics.count_error("queues", problem)
            return
        self._state.queues = queues
        self._state.queues_read_at = self._clock.monotonic()
        self._metrics.observe_cycle("queues", self._state.queues_read_at - began_at)

# SPDX-License-Identifier: Apache-2.0
"""Look for lingering containers once a second, tell about them and end them when they are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from nm_proxy.agent_metrics import AgentMetrics
from nm_proxy.clock import Clock
from nm_proxy.containers import Catalog
from nm_proxy.killing import ContainerKiller
from nm_proxy.lingering.retrying import Retry, next_try
from nm_proxy.lingering.tracking import Delays, Lingering, due, may_linger, track
from nm_proxy.node_view import NodeManagerView
from yarn_copilot.errors import YarnCopilotError

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 1.0
TELL_SECONDS: Final = 3.0
"""A NodeManager needs about two seconds to clean up; before that nothing is worth a line."""

KILL_SECONDS: Final = 10.0
AT_ONCE: Final = 4


class LingeringLoop:
    """Know who lingers; one per process."""

    def __init__(
        self,
        catalog: Catalog,
        killer: ContainerKiller,
        view: Callable[[], NodeManagerView],
        *,
        delays: Delays,
        metrics: AgentMetrics,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._killer = killer
        self._view = view
        self._metrics = metrics
        self._clock = clock
        self.delays = delays
        self.ends_them = True
        self.lingering: Mapping[str, Lingering] = {}
        self._told: set[str] = set()
        self._retries: dict[str, Retry] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.look()
            except YarnCopilotError as error:
                self._metrics.count_error("lingering")
                logger.warning("Cannot look for lingering containers", extra={"error": str(error)})
            except Exception:
                self._metrics.count_error("lingering")
                logger.exception("Cannot look for lingering containers")
            await self._clock.sleep(INTERVAL_SECONDS)

    async def look(self) -> None:
        """Look once, and end who is due."""
        view = self._view()
        now = self._clock.monotonic()
        suspects = may_linger(view, now)
        containers = await asyncio.to_thread(self._catalog.in_groups, view, suspects)
        self.lingering = track(self.lingering, containers, view, delays=self.delays, now=now)
        self._tell(now)
        if not self.ends_them:
            return
        for gone in self._retries.keys() - self.lingering.keys():
            del self._retries[gone]
        names = [one.container_id for one in due(self.lingering.values(), now)]
        ready = [name for name in names if name not in self._retries or self._retries[name].at <= now]
        # Those that fail wait longer and longer, so that a few at a time are enough for all.
        await asyncio.gather(*map(self._end, ready[:AT_ONCE]))

    async def _end(self, name: str) -> None:
        before = self._retries.get(name)
        error = before.error if before is not None else ""
        ended = await self._killer.end(name, timeout_seconds=KILL_SECONDS, asked_by="lingering", known_error=error)
        if ended is None or not ended.error:
            self._retries.pop(name, None)
        else:
            self._retries[name] = next_try(before, ended.error, self._clock.monotonic())

    def _tell(self, now: float) -> None:
        for one in self.lingering.values():
            if one.container_id not in self._told and now - one.since >= TELL_SECONDS:
                self._told.add(one.container_id)
                logger.warning(
                    "Processes outlive their container",
                    extra={
                        "container": one.container_id,
                        "why": one.why.value,
                        "processes": one.processes,
                        "memory_bytes": one.holds.memory_bytes,
                    },
                )
        for gone in self._told - self.lingering.keys():
            self._told.discard(gone)
            logger.info("A lingering container is gone", extra={"container": gone})

# SPDX-License-Identifier: Apache-2.0
"""End containers on somebody's word: choose, end the whole group, verify, tell what was freed.

One ask at a time, so that two callers who each need room do not count the same victim twice. A container counts as
freed once its group is empty, never before. YARN learns of it from the exit code (137): the task counts as failed, not
as preempted, so this is for when the ResourceManager does not act in time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.victims import choose_victims
from nm_proxy.agent_metrics import AgentMetrics
from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.clock import Clock
from nm_proxy.containers import Catalog, NodeContainer

logger = logging.getLogger(__name__)


class Ender(Protocol):
    """End a whole group; satisfied by `cgroup.killing.GroupKiller`."""

    def kill(self, path: str, *, timeout_seconds: float) -> int:
        """End everyone inside and wait; raises `CgroupError` when somebody is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Hold how ending one container went.

    Attributes:
        container: as it was before.
        processes: how many were ended.
        error: why somebody may be left; empty when the group was seen empty.
    """

    container: NodeContainer
    processes: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomMade:
    """Hold how an ask for room went.

    Attributes:
        ended: containers whose group was seen empty, in the order of the policy.
        failed: containers that could not be ended in time.
        freed: what the ended ones held.
        missing: what is still lacking.
    """

    ended: tuple[Ended, ...]
    failed: tuple[Ended, ...]
    freed: BatchResources
    missing: BatchResources


class ContainerKiller:
    """Hold the only way in which this program ends containers."""

    def __init__(self, catalog: Catalog, ender: Ender, *, metrics: AgentMetrics, clock: Clock) -> None:
        self._catalog = catalog
        self._ender = ender
        self._metrics = metrics
        self._clock = clock
        self._turn = asyncio.Lock()

    async def end(self, container_id: str, *, timeout_seconds: float, asked_by: str) -> Ended | None:
        """End one container.

        Returns:
            How it went; None if nobody knows the container or nobody is inside.

        Raises:
            ValueError: the text is no container id.
        """
        async with self._turn:
            container = await asyncio.to_thread(self._catalog.one, container_id)
            if container is None or not container.processes:
                return None
            return (await self._end_all([container], timeout_seconds, asked_by))[0]

    async def make_room(self, asked: BatchResources, *, timeout_seconds: float, asked_by: str) -> RoomMade:
        """End as many containers as the ask needs, by the policy, and no more.

        Where one cannot be ended in time, others are chosen for what is still lacking, until the deadline.

        Args:
            asked: milli-cores and bytes; not negative.
            timeout_seconds: for everything together, waiting for an earlier ask included.
            asked_by: for metrics and log.
        """
        deadline = self._clock.monotonic() + timeout_seconds
        ended: list[Ended] = []
        failed: list[Ended] = []
        freed = ZERO_BATCH
        async with self._turn:
            while (left := deadline - self._clock.monotonic()) > 0:
                missing = (asked - freed).floored()
                tried = {one.container.container_id for one in (*ended, *failed)}
                victims = await asyncio.to_thread(self._choose, missing, tried)
                if not victims:
                    break
                for one in await self._end_all(victims, left, asked_by):
                    if one.error:
                        failed.append(one)
                    else:
                        ended.append(one)
                        freed = freed + one.container.holds
        return RoomMade(ended=tuple(ended), failed=tuple(failed), freed=freed, missing=(asked - freed).floored())

    def _choose(self, asked: BatchResources, tried: set[str]) -> list[NodeContainer]:
        """Choose among containers that hold something now: finished ones give nothing back that YARN has not given."""
        if asked == ZERO_BATCH:
            return []
        containers = {
            one.container_id: one
            for one in self._catalog.every()
            if one.processes and not one.is_finished and one.container_id not in tried
        }
        choice = choose_victims((one.candidate() for one in containers.values()), asked)
        return [containers[victim.container_id] for victim in choice.victims]

    async def _end_all(self, containers: Iterable[NodeContainer], timeout_seconds: float, asked_by: str) -> list[Ended]:
        tasks = [asyncio.to_thread(self._end_one, one, timeout_seconds, asked_by) for one in containers]
        # Shielded: a caller that hangs up must not leave groups half ended and frozen, nor let the next one in early.
        return list(await _to_the_end(asyncio.gather(*tasks)))

    def _end_one(self, container: NodeContainer, timeout_seconds: float, asked_by: str) -> Ended:
        what = {"container": container.container_id, "asked_by": asked_by}
        try:
            processes = self._ender.kill(container.path, timeout_seconds=timeout_seconds)
        except CgroupError as error:
            logger.error("Could not end a container", extra={**what, "error": str(error)})  # noqa: TRY400 - expected
            self._metrics.count_kill(asked_by, ended=False)
            return Ended(container=container, error=str(error))
        logger.warning(
            "Ended a container",
            extra={
                **what,
                "processes": processes,
                "cpu_milli": container.holds.cpu_milli,
                "memory_bytes": container.holds.memory_bytes,
            },
        )
        self._metrics.count_kill(asked_by, ended=True)
        return Ended(container=container, processes=processes)


async def _to_the_end(work: asyncio.Future[list[Ended]]) -> list[Ended]:
    """Wait for work that must not be cut, and pass a cancellation on afterwards."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise

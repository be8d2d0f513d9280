# SPDX-License-Identifier: Apache-2.0
"""End containers on somebody's word: choose, end the whole group, verify, tell what was freed.

Victims are chosen and marked by one ask at a time, so that two callers who each need room never choose, nor count, the
same one; the kills themselves go on side by side, in threads of their own, because a task in uninterruptible sleep
takes up the whole timeout. A container counts as freed once its group is empty, never before. YARN learns of it from
the exit code (137): the task counts as failed, not as preempted, so this is for when the ResourceManager does not act
in time.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.victims import choose_victims
from nm_proxy.agent_metrics import AgentMetrics
from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.clock import Clock
from nm_proxy.containers import Catalog, NodeContainer

logger = logging.getLogger(__name__)

THREADS: Final = 32
"""Kills at once; the event loop's own threads stay free for reading."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """Hold who asks, until when (monotonic seconds), and which error was told already."""

    by: str
    deadline: float
    known_error: str = ""


class ContainerKiller:
    """Hold the only way in which this program ends containers.

    Invariant: whoever is in `_underway` is being ended by one ask, and no other chooses it before that is over.
    """

    def __init__(self, catalog: Catalog, ender: Ender, *, metrics: AgentMetrics, clock: Clock) -> None:
        self._catalog = catalog
        self._ender = ender
        self._metrics = metrics
        self._clock = clock
        self._turn = asyncio.Lock()
        self._underway: dict[str, asyncio.Future[Ended]] = {}
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="kill")

    async def end(
        self, container_id: str, *, timeout_seconds: float, asked_by: str, known_error: str = ""
    ) -> Ended | None:
        """End one container; one that another ask is ending is waited for first.

        Args:
            container_id: which one.
            timeout_seconds: for everything together, waiting included.
            asked_by: for metrics and log.
            known_error: how the last try failed; the same error is not told again.

        Returns:
            How it went; None if nobody knows the container or nobody is inside.

        Raises:
            ValueError: the text is no container id.
        """
        ask = _Ask(by=asked_by, deadline=self._clock.monotonic() + timeout_seconds, known_error=known_error)
        while True:
            async with self._turn:
                other = self._underway.get(container_id)
                container = await asyncio.to_thread(self._catalog.one, container_id)
                if container is None or not container.processes:
                    return None
                if other is None:
                    work = self._begin([container], ask)
                    break
            left = ask.deadline - self._clock.monotonic()
            if left <= 0 or not (await asyncio.wait([other], timeout=left))[0]:
                return self._failed(container, ask, "another ask is ending it, and it is not over yet")
        return (await _to_the_end(work))[0]

    async def make_room(self, asked: BatchResources, *, timeout_seconds: float, asked_by: str) -> RoomMade:
        """End as many containers as the ask needs, by the policy, and no more.

        Where one cannot be ended in time, others are chosen for what is still lacking, until the deadline.

        Args:
            asked: milli-cores and bytes; not negative.
            timeout_seconds: for everything together, waiting for an earlier ask included.
            asked_by: for metrics and log.
        """
        ask = _Ask(by=asked_by, deadline=self._clock.monotonic() + timeout_seconds)
        ended: list[Ended] = []
        failed: list[Ended] = []
        freed = ZERO_BATCH
        while self._clock.monotonic() < ask.deadline:
            missing = (asked - freed).floored()
            tried = {one.container.container_id for one in (*ended, *failed)}
            async with self._turn:
                # Marked before the list is read: whoever is gone from the marks by then is gone from the list too.
                victims = await asyncio.to_thread(self._choose, missing, tried | self._underway.keys())
                work = self._begin(victims, ask)
            if not victims:
                break
            for one in await _to_the_end(work):
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

    def _begin(self, containers: Iterable[NodeContainer], ask: _Ask) -> list[asyncio.Future[Ended]]:
        """Mark containers and begin to end them; the mark goes when it is over, whether or not the ask still waits."""
        loop = asyncio.get_running_loop()
        begun = []
        for one in containers:
            work = loop.run_in_executor(self._threads, self._end_one, one, ask)
            self._underway[one.container_id] = work
            work.add_done_callback(functools.partial(self._unmark, one.container_id))
            begun.append(work)
        return begun

    def _unmark(self, container_id: str, _: asyncio.Future[Ended]) -> None:
        self._underway.pop(container_id, None)

    def _end_one(self, container: NodeContainer, ask: _Ask) -> Ended:
        what = {"container": container.container_id, "asked_by": ask.by}
        left = max(ask.deadline - self._clock.monotonic(), 0.0)
        try:
            processes = self._ender.kill(container.path, timeout_seconds=left)
        except CgroupError as error:
            return self._failed(container, ask, str(error))
        logger.warning(
            "Ended a container",
            extra={
                **what,
                "processes": processes,
                "cpu_milli": container.holds.cpu_milli,
                "memory_bytes": container.holds.memory_bytes,
            },
        )
        self._metrics.count_kill(ask.by, ended=True)
        return Ended(container=container, processes=processes)

    def _failed(self, container: NodeContainer, ask: _Ask, error: str) -> Ended:
        level = logging.DEBUG if error == ask.known_error else logging.ERROR
        what = {"container": container.container_id, "asked_by": ask.by, "error": error}
        logger.log(level, "Could not end a container", extra=what)
        self._metrics.count_kill(ask.by, ended=False)
        return Ended(container=container, error=error)


async def _to_the_end(works: list[asyncio.Future[Ended]]) -> list[Ended]:
    """Wait for kills; a caller that hangs up must not leave groups half ended and frozen."""
    together = asyncio.gather(*works)
    try:
        return list(await asyncio.shield(together))
    except asyncio.CancelledError:
        await asyncio.wait([together])
        raise

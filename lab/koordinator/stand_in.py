# SPDX-License-Identifier: Apache-2.0
"""Join both halves of the stand-in for tests and for the demo."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from msgspec.structs import replace

from batch_resources.koordinator.demand import NodeLoad, PodUsage
from batch_resources.koordinator.priority import PriorityClass
from batch_resources.koordinator.strategy import Strategy
from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.koordinator import crd
from lab.koordinator.api import Api, Credentials, JsonObject
from lab.koordinator.koordlet import Koordlet
from lab.koordinator.manager import Manager
from lab.koordinator.publication import Publication

REPORT_INTERVAL_SECONDS = 60.0


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Say how fast the stand-in lives.

    Attributes:
        time_scale: The strategy's times and the report interval are divided by this; 60 makes minutes seconds.
        report_interval_seconds: Time between two koordlet reports, before scaling.
        report_at_once: Whether a changed load is reported without waiting for the interval.
        workers: Nodes published at the same time.
    """

    time_scale: float = 1.0
    report_interval_seconds: float = REPORT_INTERVAL_SECONDS
    report_at_once: bool = True
    workers: int = 8


def scaled(strategy: Strategy, time_scale: float) -> Strategy:
    """Divide the times of a strategy."""
    return replace(
        strategy,
        degrade_seconds=strategy.degrade_seconds / time_scale,
        update_threshold_seconds=strategy.update_threshold_seconds / time_scale,
    )


class StandIn:
    """Play Koordinator on one API server, inside `async with`."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        strategy: Strategy | None = None,
        pace: Pace | None = None,
        covers: Callable[[str], bool] = lambda _: True,
        now: Callable[[], datetime] = _now,
    ) -> None:
        """Prepare; nothing is written before `async with`.

        Args:
            credentials: How to reach the API server, see `api.read_kubeconfig`.
            strategy: Koordinator's configuration for all nodes, with real-life times; None for its defaults.
            pace: How fast to live; None for real life.
            covers: Tells by its name whether a node is this stand-in's; others are left alone.
            now: The wall clock.
        """
        self._pace = pace or Pace()
        self._api = Api(credentials)
        self._koordlet = Koordlet(
            self._api,
            interval_seconds=self._pace.report_interval_seconds / self._pace.time_scale,
            at_once=self._pace.report_at_once,
            now=now,
        )
        self._manager = Manager(
            self._api, scaled(strategy or Strategy(), self._pace.time_scale), now=now, covers=covers
        )
        self._manager.on_publication = self._published
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> StandIn:
        await self._api.__aenter__()
        try:
            await crd.install(self._api)
        except BaseException:
            await self._api.__aexit__()
            raise
        self._tasks = [
            asyncio.create_task(self._koordlet.run(), name="koordlet"),
            asyncio.create_task(self._manager.run(self._pace.workers), name="koord-manager"),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._api.__aexit__()

    @property
    def publications(self) -> list[Publication]:
        """Give every write so far, in order."""
        return self._manager.publications

    @property
    def nodes(self) -> dict[str, JsonObject]:
        """Give all Nodes as watched."""
        return self._manager.nodes.objects

    def set_load(self, node: str, cpu_milli: int, memory_bytes: int, *, system: BatchResources = ZERO_BATCH) -> None:
        """Set what a node's high-priority pods use, and what runs beside all pods."""
        online = PodUsage(
            key=f"online/{node}",
            priority=PriorityClass.PROD,
            used=BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes),
        )
        self._koordlet.set_load(node, NodeLoad(system_used=system, pods=(online,)))

    def stop_reporting(self, node: str) -> None:
        """Let a node's koordlet die."""
        self._koordlet.stop(node)

    def resume_reporting(self, node: str) -> None:
        """Bring a node's koordlet back; it needs a load to report."""
        self._koordlet.resume(node)

    def disable(self, node: str) -> None:
        """Switch colocation off on a node."""
        self._manager.set_enabled(node, False)

    def enable(self, node: str) -> None:
        """Switch colocation on again on a node."""
        self._manager.set_enabled(node, True)

    def set_normalization_ratio(self, node: str, ratio: Fraction | None) -> None:
        """Set a node's CPU normalization ratio; None stops keeping its annotation."""
        self._manager.set_normalization_ratio(node, ratio)

    async def wait_published(self, expected: Callable[[Publication], bool], *, timeout_seconds: float) -> Publication:
        """Wait until some publication, past or coming, is as expected, and give the newest such one.

        Raises:
            TimeoutError: None came in time.
        """
        async with asyncio.timeout(timeout_seconds):
            while True:
                news = self._news
                for made in reversed(self.publications):
                    if expected(made):
                        return made
                await news.wait()

    def _published(self, _: Publication) -> None:
        self._news.set()
        self._news = asyncio.Event()

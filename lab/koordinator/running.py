# SPDX-License-Identifier: Apache-2.0
"""Run the stand-in beside code that does not await: a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, Self

from batch_resources.koordinator.strategy import Strategy
from batch_resources.resources import BatchResources
from lab.errors import LabError
from lab.koordinator.api import Credentials
from lab.koordinator.publication import Publication
from lab.koordinator.stand_in import Pace, StandIn

_START_SECONDS: Final = 30.0

WHOLE: Final = Strategy(cpu_reclaim_percent=100, memory_reclaim_percent=100)
"""Keep no margin, so that origin is exactly what the load leaves of a node's capacity."""


class RunningStandIn:
    """Be Koordinator for the nodes of one test, inside `with`."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        nodes: Iterable[str],
        machine: BatchResources,
        strategy: Strategy = WHOLE,
        pace: Pace | None = None,
    ) -> None:
        """Prepare.

        Args:
            credentials: how to reach the API server.
            nodes: the nodes it looks after; others are left alone.
            machine: capacity of each of them.
            strategy: Koordinator's configuration, times as in real life.
            pace: how fast to live; None for real life.
        """
        self._names = frozenset(nodes)
        self._machine = machine
        self._options: dict[str, Any] = {"strategy": strategy, "pace": pace, "covers": self._names.__contains__}
        self._credentials = credentials
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stand-in", daemon=True)
        self._stand_in: StandIn | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(_START_SECONDS)
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._stand_in is not None:
            asyncio.run_coroutine_threadsafe(self._stand_in.__aexit__(), self._loop).result(_START_SECONDS)
        self._end_loop()

    async def _open(self) -> None:
        self._stand_in = StandIn(self._credentials, **self._options)
        try:
            await self._stand_in.__aenter__()
        except BaseException:
            self._stand_in = None
            raise

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_SECONDS)
        self._loop.close()

    @property
    def publications(self) -> list[Publication]:
        """Give every write so far, in order."""
        return list(self._running().publications)

    def set_origin(self, node: str, cpu_milli: int, memory_bytes: int) -> None:
        """Play the load that leaves so much of a node; koord-manager publishes it by its own rules."""
        load = self._machine - BatchResources(cpu_milli=cpu_milli, memory_bytes=memory_bytes)
        self._call(lambda: self._running().set_load(node, load.cpu_milli, load.memory_bytes))

    def disable(self, node: str) -> None:
        """Switch colocation off on a node."""
        self._call(lambda: self._running().disable(node))

    def enable(self, node: str) -> None:
        """Switch colocation on again on a node."""
        self._call(lambda: self._running().enable(node))

    def _call(self, action: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(action)

    def _running(self) -> StandIn:
        if self._stand_in is None:
            raise LabError("the stand-in was not started")
        return self._stand_in

# SPDX-License-Identifier: Apache-2.0
"""Own the time in tests: nothing happens until a test advances it."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

_TURNS = 30
"""Turns of the event loop after which tasks without I/O have come to rest."""


class ManualClock:
    """Give a time that only `advance` moves; several views with own wall clocks may share one."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def monotonic(self) -> float:
        """Give the time."""
        return self.now

    def wall(self) -> float:
        """Give a wall clock that agrees with the time."""
        return 1_700_000_000.0 + self.now

    async def sleep(self, seconds: float) -> None:
        """Wait until the time has been advanced so far."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + max(0.0, seconds), next(self._numbers), waiter))
        await waiter

    async def advance(self, seconds: float) -> None:
        """Move the time on, waking each sleeper at its own moment."""
        end = self.now + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            moment, _, waiter = heapq.heappop(self._sleepers)
            self.now = max(self.now, moment)
            if not waiter.done():
                waiter.set_result(None)
                await settle()
        self.now = end
        await settle()


class RecordingClock:
    """Sleep in no time, move on by what was asked, and remember it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        """Give the time."""
        return self.now

    def wall(self) -> float:
        """Give a wall clock that agrees with the time."""
        return 1_700_000_000.0 + self.now

    async def sleep(self, seconds: float) -> None:
        """Jump."""
        self.sleeps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


async def settle() -> None:
    """Let tasks that wait for no I/O run until they wait for the time."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)

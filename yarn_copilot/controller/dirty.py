# SPDX-License-Identifier: Apache-2.0
"""Collect the names of nodes whose inputs changed, and wake whoever plans them.

A name is in the set once, however often it was marked. Nodes can also be marked for a later moment. One event loop, one
consumer.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable

from yarn_copilot.controller.ports import Clock
from yarn_copilot.controller.waiting import wait_at_most

_COMPACT_ABOVE = 1000


class DirtyNodes:
    """Hold the nodes to plan again."""

    def __init__(self, clock: Clock) -> None:
        """Create an empty set."""
        self._clock = clock
        self._names: dict[str, float] = {}
        self._later: list[tuple[float, str]] = []
        self._scheduled: dict[str, float] = {}
        self._wake = asyncio.Event()

    def mark(self, name: str) -> None:
        """Plan a node in the next cycle."""
        if name not in self._names:
            self._names[name] = self._clock.monotonic()
            self._wake.set()

    def mark_all(self, names: Iterable[str]) -> None:
        """Plan many nodes in the next cycle."""
        for name in names:
            self.mark(name)

    def mark_at(self, name: str, moment: float) -> None:
        """Plan a node at a later moment; of several moments for one node the earliest counts."""
        known = self._scheduled.get(name)
        if known is not None and known <= moment:
            return
        self._scheduled[name] = moment
        heapq.heappush(self._later, (moment, name))
        if len(self._later) > 2 * len(self._scheduled) + _COMPACT_ABOVE:
            self._compact()
        if self._later[0][1] == name:
            self._wake.set()

    def take(self) -> dict[str, float]:
        """Take the nodes that are due, each with the moment at which it was first marked."""
        self._collect_due()
        names, self._names = self._names, {}
        self._wake.clear()
        return names

    def longest_wait_seconds(self) -> float:
        """Give how long a node has been waiting to be planned; 0 when none waits."""
        # Names keep the order in which they were marked, so the first has waited longest.
        return next((self._clock.monotonic() - since for since in self._names.values()), 0.0)

    async def wait(self) -> None:
        """Return when a node is due; a moment in the far future is looked at again after a while."""
        while True:
            self._collect_due()
            if self._names:
                return
            self._wake.clear()
            await wait_at_most(self._wake, self._clock, self._seconds_to_next())

    def _seconds_to_next(self) -> float:
        longest = 5.0
        if not self._later:
            return longest
        return min(longest, max(0.0, self._later[0][0] - self._clock.monotonic()))

    def _compact(self) -> None:
        """Drop the moments that an earlier one replaced: a node planned often for a far moment would collect them."""
        self._later = [(moment, name) for name, moment in self._scheduled.items()]
        heapq.heapify(self._later)

    def _collect_due(self) -> None:
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            moment, name = heapq.heappop(self._later)
            if self._scheduled.get(name) == moment:
                del self._scheduled[name]
                self._names.setdefault(name, now)

# SPDX-License-Identifier: Apache-2.0
"""Queue names so that one name is worked on by one worker at a time, and never waits twice."""

from __future__ import annotations

import asyncio


class KeyedQueue:
    """Hold names to be worked on, like the work queue of a Kubernetes controller."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._active: set[str] = set()
        self._again: set[str] = set()

    def add(self, name: str) -> None:
        """Ask for a name to be worked on; while it is in work it is queued again afterwards."""
        if name in self._active:
            self._again.add(name)
        elif name not in self._queued:
            self._queued.add(name)
            self._waiting.put_nowait(name)

    async def get(self) -> str:
        """Wait for a name and take it into work; call `done` with it afterwards."""
        name = await self._waiting.get()
        self._queued.discard(name)
        self._active.add(name)
        return name

    def done(self, name: str) -> None:
        """End the work on a name."""
        self._active.discard(name)
        if name in self._again:
            self._again.discard(name)
            self.add(name)

# SPDX-License-Identifier: Apache-2.0
"""Hold Leases in memory with the API server's optimistic concurrency, and misbehave on request."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import msgspec

from tests.unit.kube.manual_clock import ManualClock
from yarn_copilot.kube.errors import ConflictError, KubeConnectionError, NotFoundError, ServerError
from yarn_copilot.kube.model import Lease


class MemoryLeases:
    """Be an API server for one Lease.

    Attributes:
        history: every stored version, in order.
        down: refuse everything with 500.
        hang_seconds: time before anything is done, by the shared clock.
        answer_seconds: time between doing and answering.
        lose_answers: do what is asked and raise a connection error.
        trouble: random source of all of this, None for a server that works.
    """

    def __init__(self, clock: ManualClock, trouble: random.Random | None = None) -> None:
        self.history: list[Lease] = []
        self.stored: Lease | None = None
        self.calls = 0
        self.down = False
        self.hang_seconds = 0.0
        self.answer_seconds = 0.0
        self.lose_answers = False
        self._clock = clock
        self._trouble = trouble
        self._version = 0

    async def get_lease(self, name: str, namespace: str) -> Lease:
        """Read."""
        return await self._serve(self._get())

    async def create_lease(self, lease: Lease) -> Lease:
        """Create."""
        return await self._serve(self._create(lease))

    async def replace_lease(self, lease: Lease) -> Lease:
        """Replace."""
        return await self._serve(self._replace(lease))

    async def _serve(self, work: Coroutine[Any, Any, Lease]) -> Lease:
        """Let the work go on when the caller gives up, as a request that was sent does."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)
        return await asyncio.shield(task)

    async def _get(self) -> Lease:
        await self._before()
        if self.stored is None:
            raise NotFoundError("no lease", status=404)
        found = self.stored
        await self._after()
        return found

    async def _create(self, lease: Lease) -> Lease:
        await self._before()
        if self.stored is not None:
            raise ConflictError("exists", status=409)
        return await self._store(lease)

    async def _replace(self, lease: Lease) -> Lease:
        await self._before()
        if self.stored is None or self.stored.metadata.resourceVersion != lease.metadata.resourceVersion:
            raise ConflictError("modified", status=409)
        return await self._store(lease)

    def touch(self) -> None:
        """Change the object without changing its spec, as somebody labelling it does."""
        assert self.stored is not None
        self._keep(self.stored)

    async def _store(self, lease: Lease) -> Lease:
        stored = self._keep(lease)
        await self._after()
        return stored

    def _keep(self, lease: Lease) -> Lease:
        self._version += 1
        metadata = msgspec.structs.replace(lease.metadata, resourceVersion=str(self._version))
        self.stored = Lease(metadata, lease.spec)
        self.history.append(self.stored)
        return self.stored

    async def _before(self) -> None:
        self.calls += 1
        seconds = self.hang_seconds
        if self._trouble is not None:
            seconds += self._trouble.choice([0.0, 0.0, 0.1, 1.0, 5.0, 12.0])
        if seconds:
            await self._clock.sleep(seconds)
        if self.down or (self._trouble is not None and self._trouble.random() < 0.1):
            raise ServerError("down", status=500)

    async def _after(self) -> None:
        seconds = self.answer_seconds
        if self._trouble is not None:
            seconds += self._trouble.choice([0.0, 0.0, 0.0, 2.0, 7.0])
        if seconds:
            await self._clock.sleep(seconds)
        if self.lose_answers or (self._trouble is not None and self._trouble.random() < 0.05):
            raise KubeConnectionError("lost")

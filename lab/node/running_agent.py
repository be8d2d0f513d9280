# SPDX-License-Identifier: Apache-2.0
"""Run the node side's agent inside the caller's process, on an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any, Final

from batch_resources.resources import BatchResources
from lab.processes import probes
from nm_proxy.agent import Agent

_CLOSING_TURNS: Final = 10


class RunningAgent:
    """Run an agent's event loop in a thread, beside a test that waits."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work)
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> RunningAgent:
        self._thread.start()
        probes.wait_until(lambda: self.agent.is_serving.is_set(), what="the agent serves", timeout_seconds=30)
        return self

    def __exit__(self, *_: object) -> None:
        # A caller over TLS that has gone is noticed, and its connection closed, in a few turns of the loop.
        for _turn in range(_CLOSING_TURNS):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result(timeout=30)
        if self._task is not None:
            self.loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(timeout=30)

    def make_room(self, asked: BatchResources) -> Any:
        """Ask the killer from this thread."""
        work = self.agent.killer.make_room(asked, timeout_seconds=20, asked_by="api")
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=60)

    def _work(self) -> None:
        async def run() -> None:
            self._task = asyncio.current_task()
            with contextlib.suppress(asyncio.CancelledError):
                await self.agent.run()

        self.loop.run_until_complete(run())
        self.loop.close()

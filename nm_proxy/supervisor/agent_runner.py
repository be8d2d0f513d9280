# SPDX-License-Identifier: Apache-2.0
"""Keep an agent running beside the NodeManager; whatever goes wrong in it never touches the NodeManager.

An agent that cannot start (the tree is gone, a socket is in use) or ends is made anew after a wait, and the error shows
in readiness meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from nm_proxy.agent import Agent
from nm_proxy.agent_settings import AgentSettings
from nm_proxy.clock import Clock
from yarn_copilot.errors import YarnCopilotError

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 5.0


class AgentRunner:
    """Hold the running agent; `settings` are those of the next one."""

    def __init__(
        self, settings: AgentSettings, *, clock: Clock, make: Callable[[AgentSettings], Agent] = Agent
    ) -> None:
        """Take the settings, and how an agent is made of them."""
        self.settings = settings
        self.agent: Agent | None = None
        self.error = ""
        self.is_serving = asyncio.Event()
        self.is_node_manager_running: Callable[[], bool | None] = lambda: None
        self._clock = clock
        self._make = make
        self._is_draining = False

    async def run(self) -> None:
        """Work until cancelled; never raises anything else."""
        while True:
            try:
                await self._run_one()
                self.error = "it ended"
            except* YarnCopilotError as group:
                self.error = _sentence(group)
                told = {"error": self.error, "again_in_seconds": RETRY_SECONDS}
                logger.error("The agent does not work; it is started again", extra=told)  # noqa: TRY400 - expected
            except* Exception as group:
                self.error = _sentence(group)
                told = {"error": self.error, "again_in_seconds": RETRY_SECONDS}
                logger.exception("The agent failed; it is started again", extra=told)
            self.agent = None
            self.is_serving.clear()
            await self._clock.sleep(RETRY_SECONDS)

    def request_drain(self) -> None:
        """Let this agent and every later one say that the node is being drained."""
        self._is_draining = True
        if self.agent is not None:
            self.agent.drain.request()

    def reload(self, settings: AgentSettings) -> None:
        """Take over new settings: the reloadable ones at once."""
        self.settings = settings
        if self.agent is not None:
            self.agent.reload(settings)

    async def containers_left(self) -> int | None:
        """Count who is alive; None where nobody can tell now."""
        agent = self.agent
        if agent is None or not self.is_serving.is_set():
            return None
        try:
            return (await agent.state()).containers
        except YarnCopilotError as error:
            logger.warning("Containers cannot be counted", extra={"error": str(error)})
            return None

    async def _run_one(self) -> None:
        agent = self._make(self.settings)
        if self._is_draining:
            agent.drain.request()
        agent.reader.is_running = self._tells_whether_it_runs
        self.agent = agent
        telling = asyncio.create_task(self._tell_when_serving(agent))
        try:
            await agent.run()
        finally:
            telling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await telling

    def _tells_whether_it_runs(self) -> bool | None:
        return self.is_node_manager_running()

    async def _tell_when_serving(self, agent: Agent) -> None:
        await agent.is_serving.wait()
        self.error = ""
        self.is_serving.set()


def _sentence(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return str(error) or type(error).__name__

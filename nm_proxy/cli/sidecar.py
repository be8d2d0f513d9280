# SPDX-License-Identifier: Apache-2.0
"""Run the agent alone, beside a NodeManager that something else starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Mapping
from pathlib import Path

from nm_proxy.agent import Agent
from nm_proxy.cli import settings_file
from nm_proxy.exit_codes import ExitCode
from yarn_copilot.observability.logging import configure_logging

logger = logging.getLogger(__name__)


def run_agent(config: Path | None, environ: Mapping[str, str]) -> ExitCode:
    """Work until SIGTERM or SIGINT.

    Raises:
        YarnCopilotError: the settings file is wrong, the tree was not found, or an address cannot be used.
    """
    settings = settings_file.load(config, environ)
    configure_logging(level=settings.log.level, format=settings.log.format)
    agent = Agent(settings)
    asyncio.run(_work(agent))
    return ExitCode.OK


async def _work(agent: Agent) -> None:
    task = asyncio.ensure_future(agent.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task
    logger.info("The agent has stopped")

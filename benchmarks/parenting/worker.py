# SPDX-License-Identifier: Apache-2.0
"""Run the agent in a process of its own, so that its processor time and memory can be read, and log each latency."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from nm_proxy.agent import Agent
from nm_proxy.agent_settings import AgentSettings
from yarn_copilot.observability import logging


async def work(settings_file: Path, latency_file: Path) -> None:
    """Run until stopped; each latency becomes one line."""
    settings = await asyncio.to_thread(settings_file.read_text)
    agent = Agent(AgentSettings.model_validate_json(settings))
    plain = agent.metrics.observe_latency

    with latency_file.open("a", buffering=1) as log:

        def observe(seconds: float) -> None:
            plain(seconds)
            log.write(f"{seconds:.6f}\n")

        agent.metrics.observe_latency = observe  # type: ignore[method-assign] # the measuring instrument
        await agent.run()


if __name__ == "__main__":
    logging.configure_logging(level="WARNING")
    asyncio.run(work(Path(sys.argv[1]), Path(sys.argv[2])))

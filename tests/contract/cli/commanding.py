# SPDX-License-Identifier: Apache-2.0
"""Run commands as a person would, and keep what they said and how they ended."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import NamedTuple

from tests.contract.cli.running import DEADLINE_SECONDS, ROOT
from tests.contract.programs import start_python


class Ended(NamedTuple):
    """Hold how a command ended."""

    code: int
    out: str
    err: str


class Commands:
    """Run `yarn-copilot` with one kubeconfig and one controller's URL."""

    def __init__(self, kubeconfig: Path, url: str = "http://127.0.0.1:9") -> None:
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KUBECONFIG": str(kubeconfig),
            "YARN_COPILOT_URL": url,
        }

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start a command and leave it running."""
        return await start_python(
            "-m",
            "yarn_copilot.cli.main",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )

    async def __call__(self, *arguments: str) -> Ended:
        """Run a command to its end."""
        return await self.ended(await self.start(*arguments))

    @staticmethod
    async def ended(process: asyncio.subprocess.Process) -> Ended:
        """Wait for the end of a command that was started."""
        try:
            out, err = await asyncio.wait_for(process.communicate(), DEADLINE_SECONDS * 2)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())

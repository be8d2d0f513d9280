# SPDX-License-Identifier: Apache-2.0
"""Start the program as an operator would: a process with a settings file, beside embedded servers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

from tests.contract.programs import start_python

DEADLINE_SECONDS = 20.0
ROOT = Path(__file__).resolve().parents[3]


class Program:
    """Be one running controller process; leave the block and it is gone."""

    def __init__(self, folder: Path, settings: dict[str, Any], name: str = "one") -> None:
        self.config = folder / f"{name}.yaml"
        self.log = folder / f"{name}.log"
        self.settings = settings
        self.write(settings)
        self.url = ""
        self._process: asyncio.subprocess.Process | None = None

    def write(self, settings: dict[str, Any]) -> None:
        """Write the settings file."""
        self.config.write_text(yaml.safe_dump(settings))

    def log_text(self) -> str:
        """Read the log."""
        return self.log.read_text()

    async def __aenter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = await start_python(
                "-m",
                "yarn_copilot.cli.main",
                "run",
                "--config",
                str(self.config),
                "--port",
                "0",
                stderr=log,
                stdout=log,
                stdin=asyncio.subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        await self.until(lambda: "Serving health" in self.log_text(), "the server listens")
        line = next(line for line in self.log_text().splitlines() if "Serving health" in line)
        self.url = f"http://127.0.0.1:{line.rpartition('port=')[2]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Ask the API."""
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as response:
            return response.status, await response.json()

    async def metrics(self) -> str:
        """Read the metrics."""
        async with aiohttp.ClientSession() as session, session.get(self.url + "/metrics") as response:
            return await response.text()

    async def command(self, *arguments: str) -> str:
        """Run a reading command against this process and give its stdout."""
        process = await start_python("-m", "yarn_copilot.cli.main", *arguments, "--url", self.url,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
        assert process.returncode == 0
        return out.decode()

    async def ready(self) -> None:
        """Wait for the first complete view."""

        async def is_ready() -> bool:
            return (await self.get("/readyz"))[0] == 200

        await self.until_async(is_ready, "it is ready")

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and give the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return await asyncio.wait_for(self._process.wait(), DEADLINE_SECONDS)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds."""

        async def check() -> bool:
            return condition()

        await self.until_async(check, what)

    async def until_async(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until an awaited condition holds; fail with the log's end."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not await condition():
                    assert self._process is None or self._process.returncode is None, self.log_text()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"never happened: {what}\n{self.log_text()[-4000:]}") from None

# SPDX-License-Identifier: Apache-2.0
"""Serve the real API from a thread, so that blocking commands and subprocesses can read it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from yarn_copilot.controller.api.reader import ControllerReader
from yarn_copilot.controller.api.server import APIServer
from yarn_copilot.observability.metrics import Metrics


@contextmanager
def served(reader: ControllerReader) -> Iterator[str]:
    """Serve until the block ends and give the URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="served-api")
    thread.start()

    async def start() -> tuple[APIServer, int]:
        server = APIServer(reader, Metrics(), bind_address="127.0.0.1", port=0)
        return server, await server.start()

    try:
        server, port = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
        yield f"http://127.0.0.1:{port}"
        asyncio.run_coroutine_threadsafe(server.aclose(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()

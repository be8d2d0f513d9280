# SPDX-License-Identifier: Apache-2.0
"""Be the worker's side of the pipe: read commands, run coroutines, write answers."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

JsonObject = dict[str, Any]
Handler = Callable[..., Awaitable[JsonObject]]


async def serve(handlers: Mapping[str, Handler]) -> None:
    """Say that the worker is ready and do what it is told until standard input ends.

    Args:
        handlers: coroutine functions by command; keyword arguments come from the command, the answer is returned.
    """
    loop = asyncio.get_running_loop()
    say({"ready": True})
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        command = json.loads(line)
        try:
            answer = await handlers[command.pop("do")](**command)
        except Exception as error:  # it belongs to who gave the command
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(answer)


def say(answer: JsonObject) -> None:
    """Write one answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()

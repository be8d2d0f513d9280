# SPDX-License-Identifier: Apache-2.0
"""Run steps that block, such as waiting for a KDC or a name server, beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

_Result = TypeVar("_Result")


async def in_thread(step: Callable[[], _Result]) -> _Result:
    """Run a step that may wait for a KDC or a name server in a thread of its own.

    A daemon: a silent server must hold neither the event loop nor its default threads, nor the end of the program.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[_Result] = loop.create_future()

    def tell(result: Callable[[], _Result]) -> None:
        if not waiter.done():
            try:
                waiter.set_result(result())
            except Exception as error:
                waiter.set_exception(error)

    def run() -> None:
        try:
            value = step()
        except Exception as error:
            outcome: Callable[[], _Result] = functools.partial(_raise, error)
        else:
            outcome = functools.partial(_give, value)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=run, name="handshake", daemon=True).start()
    return await waiter


def _give(value: _Result) -> _Result:
    return value


def _raise(error: Exception) -> NoReturn:
    raise error

# SPDX-License-Identifier: Apache-2.0
"""Run long-lived tasks until a signal or until one of them ends, which none should."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

logger = logging.getLogger(__name__)

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals(stop: asyncio.Event, *, exit_at_once: Callable[[int], None] = os._exit) -> Iterator[None]:
    """Set `stop` on the first SIGTERM or SIGINT; leave at once, with 128 + the signal, on the second."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            logger.warning("Second signal, leaving at once", extra={"signal": number.name})
            exit_at_once(128 + number)
        logger.info("Stopping", extra={"signal": number.name})
        stop.set()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)


class Tasks:
    """Hold named tasks that run until they are stopped."""

    def __init__(self) -> None:
        """Start with none."""
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def start(self, coroutines: Mapping[str, Coroutine[Any, Any, Any]]) -> None:
        """Start tasks under their names."""
        for name, coroutine in coroutines.items():
            self._tasks[name] = asyncio.create_task(coroutine, name=name)

    async def wait(self, stop: asyncio.Event) -> bool:
        """Wait for `stop`.

        Returns:
            True when `stop` was set, False when a task ended by itself; that is logged.
        """
        stopping = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait({stopping, *self._tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        ended = [task for task in self._tasks.values() if task.done()]
        for task in ended:
            error = None if task.cancelled() else task.exception()
            logger.error("A task ended that should run for ever", extra={"task": task.get_name()}, exc_info=error)
        return not ended

    async def cancel(self, *names: str) -> None:
        """Stop the named tasks and wait until they have; all that are left where none is named."""
        chosen = {name: self._tasks.pop(name) for name in names or tuple(self._tasks) if name in self._tasks}
        for task in chosen.values():
            task.cancel()
        await asyncio.gather(*chosen.values(), return_exceptions=True)

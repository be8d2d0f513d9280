# SPDX-License-Identifier: Apache-2.0
"""Wait for an event or for a time, whichever comes first, by the injected clock."""

from __future__ import annotations

import asyncio

from yarn_copilot.controller.ports import Clock


async def wait_at_most(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Return when the event is set or the time is over.

    Args:
        event: what is waited for; it is left as it is.
        clock: measures the time.
        seconds: longest wait.

    Returns:
        Whether the event is set.
    """
    if event.is_set() or seconds <= 0:
        return event.is_set()
    tasks = (asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    return event.is_set()

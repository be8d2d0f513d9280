# SPDX-License-Identifier: Apache-2.0
"""Give time to the loops of this program, so that tests can own it."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Give a monotonic clock for decisions, a wall clock to compare with file times, and sleep."""

    def monotonic(self) -> float:
        """Give seconds that never run backwards."""

    def wall(self) -> float:
        """Give seconds since 1970-01-01 UTC."""

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller."""


class SystemClock:
    """Satisfy `Clock` with the machine's clocks."""

    def monotonic(self) -> float:
        """Give `time.monotonic`."""
        return time.monotonic()

    def wall(self) -> float:
        """Give `time.time`."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)

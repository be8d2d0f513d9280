# SPDX-License-Identifier: Apache-2.0
"""Give the machine's clocks to the loops."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Satisfy `ports.Clock` with the operating system's clocks."""

    def monotonic(self) -> float:
        """Give seconds that never run backwards."""
        return time.monotonic()

    def wall(self) -> float:
        """Give seconds since 1970-01-01 UTC."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller."""
        await asyncio.sleep(seconds)

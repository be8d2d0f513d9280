# SPDX-License-Identifier: Apache-2.0
"""Record what a reflector delivers, and wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")

_DEADLINE_SECONDS = 20.0


class RecordingSink(Generic[R]):
    """Keep the mirrored items and everything that was delivered."""

    def __init__(self) -> None:
        self.items: dict[str, R] = {}
        self.lists = 0
        self.changes: list[tuple[str, R]] = []
        self.reasons: list[str] = []
        self.broken: list[tuple[str, str]] = []

    def replaced(self, items: dict[str, R]) -> None:
        """Take a list."""
        self.lists += 1
        self.items = dict(items)

    def upserted(self, key: str, item: R) -> None:
        """Take a version."""
        self.items[key] = item
        self.changes.append((key, item))

    def removed(self, key: str) -> None:
        """Take a removal."""
        self.items.pop(key, None)

    def unavailable(self, reason: str) -> None:
        """Take the reason."""
        self.reasons.append(reason)

    def malformed(self, key: str, reason: str) -> None:
        """Take the complaint."""
        self.broken.append((key, reason))

    def versions(self, key: str) -> list[R]:
        """Give what was delivered for one key by watches, in order."""
        return [item for changed, item in self.changes if changed == key]


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after a deadline that no working program needs."""
    async with asyncio.timeout(_DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110  # conditions span servers and sinks, which share no event
            await asyncio.sleep(0.005)

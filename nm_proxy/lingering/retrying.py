# SPDX-License-Identifier: Apache-2.0
"""Decide when a kill that failed is tried again; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIN_SECONDS: Final = 1.0
MAX_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Hold how the last try failed.

    Attributes:
        error: in words.
        wait_seconds: from then to the next one.
        at: when the next one is, monotonic seconds.
    """

    error: str
    wait_seconds: float
    at: float


def next_try(before: Retry | None, error: str, now: float) -> Retry:
    """Wait twice as long as the last time: 1, 2, 4 ... up to 300 seconds."""
    wait = MIN_SECONDS if before is None else min(before.wait_seconds * 2.0, MAX_SECONDS)
    return Retry(error=error, wait_seconds=wait, at=now + wait)

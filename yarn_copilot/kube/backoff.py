# SPDX-License-Identifier: Apache-2.0
"""Compute waits between tries: exponential, bounded, jittered."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

Random = Callable[[], float]
"""Give a number in [0, 1)."""


@dataclass(slots=True)
class Backoff:
    """Count consecutive failures and give the next wait.

    The n-th wait is drawn from [0.5, 1) of `initial_seconds * 2**n`, never of more than `max_seconds`: the lower
    half is kept out so that a loop cannot spin, the rest is jitter so that many clients do not come back at once.
    """

    initial_seconds: float
    max_seconds: float
    random: Random = field(default=random.random)  # spreading load needs no cryptographic numbers
    failures: int = 0

    def next_seconds(self, at_least: float | None = None) -> float:
        """Count a failure and give the wait, not below what the server asked for (itself bounded by a minute)."""
        ceiling = min(self.max_seconds, self.initial_seconds * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return max(ceiling * (0.5 + 0.5 * self.random()), min(at_least or 0.0, 60.0))

    def reset(self) -> None:
        """Forget the failures after a success."""
        self.failures = 0

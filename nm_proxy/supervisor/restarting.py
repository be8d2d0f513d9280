# SPDX-License-Identifier: Apache-2.0
"""Decide when a NodeManager, or a supervisor, that ended is started again; pure, standard library only.

Why a NodeManager ended makes no difference: a crash, an out-of-memory kill, and a ResourceManager that answered
SHUTDOWN (the node was removed, or registered with too little) all want it back, and all want it less and less often.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Restarts:
    """Hold the waits; each is twice the last one, until a run is long enough.

    Attributes:
        min_seconds, max_seconds: shortest and longest wait.
        stable_seconds: a run of so long counts as good.
        failures: runs in a row that were shorter.
    """

    min_seconds: float
    max_seconds: float
    stable_seconds: float
    failures: int = 0

    def ended(self, ran_seconds: float) -> float:
        """Count an end and give the seconds to wait before the next start."""
        if ran_seconds >= self.stable_seconds:
            self.failures = 0
            return self.min_seconds
        self.failures += 1
        return min(self.min_seconds * 2.0 ** min(self.failures - 1, 32), self.max_seconds)

    def failures_now(self, running_seconds: float | None) -> int:
        """Give the failures in a row, which a good run in progress has made up for."""
        if running_seconds is not None and running_seconds >= self.stable_seconds:
            self.failures = 0
        return self.failures

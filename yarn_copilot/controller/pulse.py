# SPDX-License-Identifier: Apache-2.0
"""Notice a loop that has stopped turning, so that /healthz can fail and the kubelet restart the process.

A poller comes round after each read, good or bad, for ever; the planner takes what waits for it. An outside system that
does not answer is no reason: every call has a deadline.
"""

from __future__ import annotations

from collections.abc import Iterable

from yarn_copilot.controller.dirty import DirtyNodes
from yarn_copilot.controller.ports import Clock


class Pulse:
    """Hold when each loop last came round."""

    def __init__(self, clock: Clock, *, limit_seconds: float) -> None:
        """Begin now: a loop that never comes round is stuck after the limit as well."""
        self._clock = clock
        self._limit_seconds = limit_seconds
        self._began_at = clock.monotonic()
        self._beats: dict[str, float] = {}

    def beat(self, loop: str) -> None:
        """Note that a loop has come round."""
        self._beats[loop] = self._clock.monotonic()

    def stuck(self, loops: Iterable[str], dirty: DirtyNodes) -> list[str]:
        """Say which of the loops have not come round within the limit, and whether planning lies still."""
        now = self._clock.monotonic()
        ages = {loop: now - self._beats.get(loop, self._began_at) for loop in loops}
        found = [
            f"loop {loop} has not come round for {age:.0f} s"
            for loop, age in ages.items()
            if age >= self._limit_seconds
        ]
        waiting = dirty.longest_wait_seconds()
        if waiting >= self._limit_seconds:
            found.append(f"loop planning has left a node waiting for {waiting:.0f} s")
        return found

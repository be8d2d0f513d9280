# SPDX-License-Identifier: Apache-2.0
"""Measure how long a change of origin takes until the ResourceManager has applied it. Pure: time is passed in."""

from __future__ import annotations

import math
from collections.abc import Sequence


class PropagationMeter:
    """Collect one sample for each change: its time is that of the first reading that shows it applied.

    A change that is followed by another before it was applied gets the time of the later one: that is what its
    owner had to wait for an up-to-date capacity.
    """

    def __init__(self) -> None:
        """Start without samples."""
        self.samples_seconds: list[float] = []
        self._pending: dict[str, list[float]] = {}

    @property
    def pending(self) -> int:
        """Count the changes that were not seen applied yet."""
        return sum(len(moments) for moments in self._pending.values())

    def changed(self, node: str, at_seconds: float) -> None:
        """Note that the API server took a change that asks for another capacity of this node."""
        self._pending.setdefault(node, []).append(at_seconds)

    def observed(self, node: str, at_seconds: float, *, is_applied: bool) -> None:
        """Note a reading of the ResourceManager.

        Args:
            node: The node read.
            at_seconds: When the answer was there, on the clock of `changed`.
            is_applied: Whether the capacity is the one that the newest origin asks for.
        """
        if is_applied:
            self.samples_seconds += [at_seconds - moment for moment in self._pending.pop(node, [])]


class MismatchMeter:
    """Collect how long mismatches between two values lasted, from the first reading with one to the first without."""

    def __init__(self) -> None:
        """Start without samples."""
        self.samples_seconds: list[float] = []
        self._since: dict[str, float] = {}

    def observed(self, node: str, at_seconds: float, *, matches: bool) -> None:
        """Note a reading; a value that moves on while the other follows keeps one mismatch open."""
        if not matches:
            self._since.setdefault(node, at_seconds)
        elif node in self._since:
            self.samples_seconds.append(at_seconds - self._since.pop(node))


def percentile(samples: Sequence[float], part: float) -> float | None:
    """Give the smallest sample that at least such a part of all samples does not exceed; None without samples."""
    if not samples:
        return None
    return sorted(samples)[max(math.ceil(part * len(samples)) - 1, 0)]

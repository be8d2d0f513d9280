# SPDX-License-Identifier: Apache-2.0
"""Make up a day of online load for each node, the same for the same seed.

CPU of online services follows the people who use them: low before dawn, a peak before noon and a higher one in the
evening. Their memory hardly moves. Both carry noise. Each node's day is shifted a little, so that nodes do not move
in step. Only `random.Random` with textual seeds is used: the numbers do not depend on machine or hash seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from batch_resources.resources import BatchResources
from lab.load.trace import Step, Trace

DAY_SECONDS = 86_400.0
_SLOT_SECONDS = 300.0
_MAX_SHIFT_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tide:
    """Say how the load moves, as parts of the node's capacity."""

    cpu_low: float = 0.10
    cpu_high: float = 0.50
    memory_mean: float = 0.35
    memory_swing: float = 0.03
    cpu_noise: float = 0.04
    memory_noise: float = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineDay:
    """Give the load of any node at any second of the day.

    Attributes:
        seed: Same seed, same day.
        tide: Shape of the day.
    """

    seed: int
    tide: Tide = Tide()

    def load(self, node: str, capacity: BatchResources, second: float) -> BatchResources:
        """Give a node's online load at a second of the day (taken modulo a day)."""
        tide = _tide(second + _noise(self.seed, f"{node}/shift", 0) * _MAX_SHIFT_SECONDS)
        cpu = self.tide.cpu_low + (self.tide.cpu_high - self.tide.cpu_low) * tide
        cpu += self.tide.cpu_noise * self._wobble(f"{node}/cpu", second)
        memory = self.tide.memory_mean + self.tide.memory_swing * (tide - 0.5)
        memory += self.tide.memory_noise * self._wobble(f"{node}/memory", second)
        return BatchResources(
            cpu_milli=round(capacity.cpu_milli * min(max(cpu, 0.0), 1.0)),
            memory_bytes=round(capacity.memory_bytes * min(max(memory, 0.0), 1.0)),
        )

    def trace(self, nodes: Mapping[str, BatchResources], *, duration_seconds: float, steps: int) -> Trace:
        """Compress the whole day into a play of so many seconds, with so many steps for each node.

        Args:
            nodes: Capacity of each node by name.
            duration_seconds: Length of the play.
            steps: Steps per node, evenly spread, the first at 0.
        """
        return Trace(
            Step(
                at_seconds=duration_seconds * index / steps,
                node=node,
                load=self.load(node, capacity, DAY_SECONDS * index / steps),
            )
            for index in range(steps)
            for node, capacity in sorted(nodes.items())
        )

    def _wobble(self, name: str, second: float) -> float:
        """Give noise between -1 and 1 that moves smoothly from slot to slot."""
        slot, part = divmod(second % DAY_SECONDS, _SLOT_SECONDS)
        slots = int(DAY_SECONDS / _SLOT_SECONDS)
        before = _noise(self.seed, name, int(slot))
        after = _noise(self.seed, name, (int(slot) + 1) % slots)
        return before + (after - before) * part / _SLOT_SECONDS


def _tide(second: float) -> float:
    """Give the height of the tide between 0 (04:00) and 1 (evening), with a smaller peak before noon."""
    hour = (second % DAY_SECONDS) / 3_600
    daily = 0.5 - 0.5 * math.cos(2 * math.pi * (hour - 4) / 24)
    peaks = 0.5 * math.exp(-(((hour - 11) / 2.5) ** 2)) + 0.8 * math.exp(-(((hour - 20) / 2.5) ** 2))
    return min(0.55 * daily + 0.5 * peaks, 1.0)


@lru_cache(maxsize=65_536)
def _noise(seed: int, name: str, slot: int) -> float:
    return random.Random(f"{seed}/{name}/{slot}").uniform(-1.0, 1.0)

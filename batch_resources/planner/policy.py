# SPDX-License-Identifier: Apache-2.0
"""Hold the operator's choices in the planner's units."""

from __future__ import annotations

from dataclasses import dataclass

from batch_resources.resources import ZERO_BATCH, ZERO_YARN, BatchResources, YarnResources
from batch_resources.units import UnitModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Hold what the planner is told by configuration.

    Attributes:
        units: milli-cores per vcore, both ways.
        floor: m, the capacity a NodeManager registers with.
        reserve_percent_cpu: percent of origin batch-cpu withheld from YARN, rounded up; memory alike.
        reserve_absolute: amount withheld on top of the percentage.
        dead_band: a growth below both components is not worth a message.
        origin_max_age_seconds: an older origin counts as unknown.
        require_node_metric: an origin of unknown age does not let capacity grow.
        growth_window_seconds: length of the window whose minimum bounds growth.
    """

    units: UnitModel
    floor: YarnResources
    reserve_percent_cpu: int = 0
    reserve_percent_memory: int = 0
    reserve_absolute: BatchResources = ZERO_BATCH
    dead_band: YarnResources = ZERO_YARN
    origin_max_age_seconds: float = 900.0
    require_node_metric: bool = True
    growth_window_seconds: float = 60.0

    def reserve(self, origin: BatchResources) -> BatchResources:
        """Compute R for an origin: percentage rounded up, plus the absolute part."""
        percentage = BatchResources(
            cpu_milli=-(-origin.cpu_milli * self.reserve_percent_cpu // 100),
            memory_bytes=-(-origin.memory_bytes * self.reserve_percent_memory // 100),
        )
        return percentage + self.reserve_absolute

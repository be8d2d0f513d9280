# SPDX-License-Identifier: Apache-2.0
"""Hold the operator's choices in the planner's units."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, field

from batch_resources.dips import DipTimes
from batch_resources.giving_way import Stages
from batch_resources.resources import ZERO_BATCH, ZERO_YARN, BatchResources, YarnResources
from batch_resources.units import UnitModel


class Mode(StrEnum):
    """Choose how the idle capacity of a node is shared."""

    SHARED = "shared"
    STRICT = "strict"


def strictest(modes: Iterable[Mode]) -> Mode | None:
    """Give the mode that counts where several are asked for: the one that sells less; None where none is."""
    asked = set(modes)
    return Mode.STRICT if Mode.STRICT in asked else Mode.SHARED if asked else None


def percentage(amount: BatchResources, percent_cpu: int, percent_memory: int) -> BatchResources:
    """Take a percentage of each resource, rounded up."""
    if not percent_cpu and not percent_memory:
        return ZERO_BATCH
    return BatchResources(
        cpu_milli=-(-amount.cpu_milli * percent_cpu // 100),
        memory_bytes=-(-amount.memory_bytes * percent_memory // 100),
    )


class Minimum(Struct, frozen=True, kw_only=True):
    """Hold what a side keeps of a node: an amount, and a percentage of origin on top of it, rounded up."""

    absolute: BatchResources = ZERO_BATCH
    percent_cpu: int = 0
    percent_memory: int = 0

    def of(self, origin: BatchResources) -> BatchResources:
        """Compute it for an origin."""
        if not self.percent_cpu and not self.percent_memory:
            return self.absolute
        return percentage(origin, self.percent_cpu, self.percent_memory) + self.absolute


class Boundary(Struct, frozen=True, kw_only=True):
    """Say where the boundary between the two sides goes in mode strict, and how long its steps wait.

    Attributes:
        yarn_weight: YARN's share of what is free while neither side, or both, wait; the other one is Kubernetes'.
        kubernetes_minimum: what YARN leaves free; one unit keeps a fall of origin visible.
        yarn_minimum: what YARN keeps while pods wait, what it uses included.
        force_publication: where a step is too small for koord-manager, its annotation is removed, which wakes it.
        settle_seconds: time after a fall of allocatable in which earlier permissions turn into binds.
        fresh_read_seconds: longest time from the begin of a fresh read to the update sent because of it.
        nudge_seconds: time after which a claim that koord-manager has not published is written again, equal.
    """

    yarn_weight: int = 1
    kubernetes_weight: int = 1
    kubernetes_minimum: Minimum = field(
        default_factory=lambda: Minimum(absolute=BatchResources(cpu_milli=1, memory_bytes=1))
    )
    yarn_minimum: Minimum = field(default_factory=Minimum)
    force_publication: bool = False
    settle_seconds: float = 10.0
    fresh_read_seconds: float = 2.0
    nudge_seconds: float = 60.0


class Policy(Struct, frozen=True, kw_only=True):
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
        mode: shared offers what is free to both sides, strict never sells a unit twice.
        boundary: mode strict's part.
        observes: decide everything and let nothing be written.
        dips: for how long a dip of origin, or its end, is not believed.
        giving_way: when containers may be killed for what Kubernetes or the node needs back.
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
    mode: Mode = Mode.SHARED
    boundary: Boundary = field(default_factory=Boundary)
    observes: bool = False
    dips: DipTimes = field(default_factory=DipTimes)
    giving_way: Stages = field(default_factory=Stages)

    def reserve(self, origin: BatchResources) -> BatchResources:
        """Compute R for an origin: percentage rounded up, plus the absolute part."""
        return percentage(origin, self.reserve_percent_cpu, self.reserve_percent_memory) + self.reserve_absolute

# SPDX-License-Identifier: Apache-2.0
"""Model how capacity follows origin."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, Seconds, Section
from yarn_copilot.config.settings.dips import DipSettings
from yarn_copilot.config.settings.giving_way import GivingWaySettings
from yarn_copilot.config.settings.strict import StrictSettings


class SharingMode(StrEnum):
    """Choose how the idle capacity is shared."""

    SHARED = "shared"
    STRICT = "strict"
    OBSERVE = "observe"


class NodeMode(StrEnum):
    """Choose how the idle capacity of some nodes is shared."""

    SHARED = "shared"
    STRICT = "strict"


NodeModeChoice = Annotated[NodeMode, Field(strict=False)]
"""Hold a mode, written as text."""


class CpuUnit(StrEnum):
    """Choose what a milli-core of `kubernetes.io/batch-cpu` means to YARN."""

    NORMALIZED = "normalized"
    PHYSICAL = "physical"


class ReserveSettings(Section):
    """Withhold head-room from YARN; never claimed, so Kubernetes may still use it."""

    cpu_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-cpu withheld, rounded up.",
        json_schema_extra=RELOADABLE,
    )
    cpu_milli: int = Field(
        0,
        ge=0,
        description="Milli-cores withheld; added to the percentage. In mode strict the reserve covers binds that take longer than capacity.strict.settle_seconds: the largest batch pod times the binds that may be in flight to one node; 0 where none takes so long.",
        json_schema_extra=RELOADABLE,
    )
    memory_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-memory withheld, rounded up.",
        json_schema_extra=RELOADABLE,
    )
    memory_bytes: int = Field(
        0,
        ge=0,
        description="Bytes withheld; added to the percentage. Choose as cpu_milli.",
        json_schema_extra=RELOADABLE,
    )


class CapacitySettings(Section):
    """Say how capacity follows origin."""

    @property
    def observes(self) -> bool:
        """Tell whether nothing is written at all."""
        return self.mode is SharingMode.OBSERVE

    @property
    def default_mode(self) -> NodeMode:
        """Give the mode by which a node is planned for which no other is named."""
        return self.observed_mode if self.observes else NodeMode(self.mode.value)

    @property
    def is_strict_somewhere(self) -> bool:
        """Tell whether any node may be planned by mode strict."""
        return NodeMode.STRICT in (self.default_mode, *self.cluster_modes.values(), *self.node_modes.values())

    mode: SharingMode = Field(
        SharingMode.STRICT,
        strict=False,
        description="How the free part is shared. strict: a boundary on each node, so that the two schedulers together never hold more than origin. shared: Koordinator's documented rule, free capacity is offered to both and a conflict is repaired afterwards. observe: everything is computed and shown and nothing is written, to no server, not even the Lease or an Event; to or from observe needs a restart.",
        json_schema_extra=RELOADABLE,
    )
    observed_mode: NodeMode = Field(
        NodeMode.STRICT,
        strict=False,
        description="The mode whose decisions mode observe shows.",
        json_schema_extra=RELOADABLE,
    )
    cluster_modes: dict[str, NodeModeChoice] = Field(
        {},
        description="Mode of the nodes of single clusters, by cluster id, where it differs from capacity.mode. On a node that carries NodeManagers of several clusters the stricter mode counts for all of them.",
        json_schema_extra=RELOADABLE,
    )
    node_modes: dict[str, NodeModeChoice] = Field(
        {},
        description="Mode of single nodes, by label selector (equality form), whatever their clusters. Where several selectors match, the stricter mode counts.",
    )
    milli_cores_per_vcore: int = Field(
        1000, ge=1, le=1_000_000, description="Milli-cores of batch-cpu that make one vcore, both ways."
    )
    cpu_unit: CpuUnit = Field(
        CpuUnit.NORMALIZED,
        strict=False,
        description="normalized: batch-cpu as published. physical: divided by the node's cpu-normalization-ratio before vcores are counted.",
    )
    growth_window_seconds: Seconds = Field(
        60.0,
        ge=0,
        le=3600,
        description="Capacity grows only to the smallest origin seen in so many seconds; 0 follows at once.",
        json_schema_extra=RELOADABLE,
    )
    dead_band_vcores: int = Field(
        0,
        ge=0,
        description="A growth by fewer vcores than this (and less memory than dead_band_memory_mib) is not sent.",
        json_schema_extra=RELOADABLE,
    )
    dead_band_memory_mib: int = Field(
        0,
        ge=0,
        description="A growth by less MiB than this (and fewer vcores than dead_band_vcores) is not sent.",
        json_schema_extra=RELOADABLE,
    )
    strict: StrictSettings = Field(StrictSettings(), description="Steps and shares of mode strict.")
    dips: DipSettings = Field(DipSettings(), description="Dips of origin that are not believed at once.")
    giving_way: GivingWaySettings = Field(
        GivingWaySettings(), description="Stages in which YARN gives back what it uses beyond its part."
    )
    reserve: ReserveSettings = Field(ReserveSettings(), description="Head-room withheld from YARN.")
    require_node_metric: bool = Field(
        True,
        description="Stop growth on nodes whose NodeMetric cannot be read. False: trust origin without an age.",
        json_schema_extra=RELOADABLE,
    )
    origin_max_age_seconds: Seconds = Field(
        900.0,
        ge=1,
        le=86400,
        description="Origin older than this counts as degraded, whatever the annotation says; Koordinator's own limit is 15 minutes.",
        json_schema_extra=RELOADABLE,
    )
    kubernetes_max_silence_seconds: Seconds = Field(
        120.0,
        ge=1,
        le=3600,
        description="With the API server silent for longer than this, no update is sent to YARN.",
        json_schema_extra=RELOADABLE,
    )
    foreign_writer_hold_seconds: Seconds = Field(
        600.0,
        ge=1,
        le=86400,
        description="After somebody else changed our entry of the third-party allocations, the node is left alone until the entry has been quiet for so many seconds.",
        json_schema_extra=RELOADABLE,
    )
    batch_interval_seconds: Seconds = Field(
        0.05,
        ge=0,
        le=10,
        description="Changes are collected for so many seconds before a batch is sent.",
        json_schema_extra=RELOADABLE,
    )

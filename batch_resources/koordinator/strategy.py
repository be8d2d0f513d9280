# SPDX-License-Identifier: Apache-2.0
"""Hold the colocation strategy: how much of a node batch work may have, and how late that is told.

Source: Koordinator 1.8, apis/configuration/slo_controller_config.go, defaults from pkg/util/sloconfig.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class CalculatePolicy(StrEnum):
    """Choose what high-priority pods are charged with; CPU knows no `request` and takes it as `usage`."""

    USAGE = "usage"
    REQUEST = "request"
    MAX_USAGE_REQUEST = "maxUsageRequest"


class Strategy(Struct, frozen=True, kw_only=True):
    """Hold one node's merged strategy.

    Attributes:
        cpu_reclaim_percent: Part of the capacity that may be in use at all, the rest is a margin; may exceed 100.
        memory_reclaim_percent: The same for memory.
        cpu_policy: `usage` or `maxUsageRequest`.
        memory_policy: Any of the three.
        batch_cpu_threshold_percent: Upper bound of batch-cpu as part of the capacity; None means no bound.
        batch_memory_threshold_percent: The same for memory.
        degrade_seconds: Age of the node's metrics above which nothing is offered.
        update_threshold_seconds: Age of the last write above which the next trigger writes without any difference.
        diff_threshold: Part of the old value by which allocatable has to move, strictly, to be written at once.
    """

    cpu_reclaim_percent: int = 60
    memory_reclaim_percent: int = 65
    cpu_policy: CalculatePolicy = CalculatePolicy.USAGE
    memory_policy: CalculatePolicy = CalculatePolicy.USAGE
    batch_cpu_threshold_percent: int | None = None
    batch_memory_threshold_percent: int | None = None
    degrade_seconds: float = 900.0
    update_threshold_seconds: float = 300.0
    diff_threshold: float = 0.1

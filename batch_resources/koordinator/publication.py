# SPDX-License-Identifier: Apache-2.0
"""Decide whether a prepared node is worth a write, and whether a node's metrics are too old.

Both rules are judged only when something triggers them (a Node or NodeMetric event); no clock runs here. The
comparison is of allocatable after third parties: while they hold everything, origin can fall unseen. Source:
Koordinator 1.8, noderesource/resource_calculator.go and plugins/batchresource/plugin.go.
"""

from __future__ import annotations

from batch_resources.koordinator.rounding import differs_by
from batch_resources.koordinator.strategy import Strategy
from batch_resources.resources import BatchResources


def is_resource_diff(old: int | None, new: int | None, threshold: float) -> bool:
    """Tell whether one resource moved enough: strictly more than the ratio, or it appeared or disappeared."""
    if old is None or new is None:
        return (old is None) != (new is None)
    return differs_by(old, new, threshold)


def needs_status_update(
    old: BatchResources | None, new: BatchResources | None, *, age_seconds: float | None, strategy: Strategy
) -> bool:
    """Tell whether koord-manager writes the node's status now.

    Args:
        old: Batch allocatable on the Node; None when the keys are absent.
        new: Batch allocatable as prepared; None when the keys are to go.
        age_seconds: Time since this program's last write of the node; None when it has not written it yet.
        strategy: The thresholds.
    """
    if age_seconds is None or age_seconds > strategy.update_threshold_seconds:
        return True
    return any(
        is_resource_diff(before, after, strategy.diff_threshold)
        for before, after in zip(_components(old), _components(new), strict=True)
    )


def is_degraded(metric_age_seconds: float | None, strategy: Strategy) -> bool:
    """Tell whether the node's metrics are missing or older than the limit; exactly at the limit they still count."""
    return metric_age_seconds is None or metric_age_seconds > strategy.degrade_seconds


def _components(amount: BatchResources | None) -> tuple[int | None, int | None]:
    return (None, None) if amount is None else (amount.cpu_milli, amount.memory_bytes)

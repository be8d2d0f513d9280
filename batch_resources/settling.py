# SPDX-License-Identifier: Apache-2.0
"""Tell when every bind that an earlier, larger allocatable allowed must have landed.

kube-scheduler decides from its own copy of a Node, and a bind takes time. So what is published now says nothing about
what is already on its way. The clock here starts again at *every* fall of allocatable and runs for the settle time,
which the operator chooses above the scheduler's watch lag and the longest bind. It has to see every version of the
Node: a fall between two versions that were not seen counts only if the gap itself counts as one. Times are monotonic
seconds.
"""

from __future__ import annotations

from msgspec import Struct

from batch_resources.resources import ZERO_BATCH, BatchResources


class SettleClock(Struct, frozen=True, kw_only=True):
    """Hold the newest allocatable and the moment of its last fall.

    Attributes:
        allocatable: A as the newest version shows it; keys that are missing count as zero.
        since: when the last fall was seen; None before the first version.
    """

    allocatable: BatchResources = ZERO_BATCH
    since: float | None = None


def observe_version(clock: SettleClock, allocatable: BatchResources | None, *, now: float) -> SettleClock:
    """Take the next version of the Node into account.

    Args:
        clock: what was known before.
        allocatable: A of this version; None when its keys are missing.
        now: when the version was seen.
    """
    shown = ZERO_BATCH if allocatable is None else allocatable
    if clock.since is not None and clock.allocatable.fits_in(shown):
        return clock if shown == clock.allocatable else SettleClock(allocatable=shown, since=clock.since)
    return SettleClock(allocatable=shown, since=now)


def observe_gap(clock: SettleClock, *, now: float) -> SettleClock:
    """Count versions that were missed (a new list, a broken watch) as a fall."""
    return SettleClock(allocatable=clock.allocatable, since=now)


def is_settled(clock: SettleClock, *, now: float, settle_seconds: float) -> bool:
    """Tell whether the settle time has passed since the last fall."""
    return clock.since is not None and now - clock.since >= settle_seconds


def settled_at(clock: SettleClock, *, settle_seconds: float) -> float | None:
    """Give the moment at which the settle time ends if nothing falls until then."""
    return None if clock.since is None else clock.since + settle_seconds

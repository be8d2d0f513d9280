# SPDX-License-Identifier: Apache-2.0
"""Keep the smallest origin of the last seconds, so that capacity grows only to what has been there for a while.

The window holds samples from old to new; only those that can still be the minimum of a resource are kept. The two
resources are judged apart. Times are monotonic seconds.
"""

from __future__ import annotations

from msgspec import Struct

from batch_resources.resources import BatchResources


class Sample(Struct, frozen=True, kw_only=True):
    """Hold one origin and the last moment at which it was still in force."""

    resources: BatchResources
    last_seen_at: float


Window = tuple[Sample, ...]


def observe_origin(window: Window, origin: BatchResources, *, now: float, length_seconds: float) -> Window:
    """Add the origin that holds now and drop what ended before the window began.

    A sample counts until `length_seconds` after the last moment at which it held, not after it was first seen.
    """
    if length_seconds <= 0:
        if len(window) == 1 and window[0].resources == origin:
            return window
        return (Sample(resources=origin, last_seen_at=now),)
    if len(window) == 1 and window[0].resources == origin:
        return (Sample(resources=origin, last_seen_at=now),)  # at rest, which is most of the time
    # The newest sample held until this moment: only now is it known to be over.
    kept = tuple([sample for sample in _extended(window, now) if now - sample.last_seen_at < length_seconds])
    if kept and kept[-1].resources == origin:
        return (*kept[:-1], Sample(resources=origin, last_seen_at=now))
    # A sample that is nowhere below the new one will never be the minimum again: the new one outlives it.
    lower = tuple(sample for sample in kept if not origin.fits_in(sample.resources))
    return (*lower, Sample(resources=origin, last_seen_at=now))


def window_minimum(window: Window) -> BatchResources | None:
    """Give the smallest value seen, per resource; None for an empty window."""
    if not window:
        return None
    lowest = window[0].resources
    for sample in window[1:]:
        lowest = lowest.at_most(sample.resources)
    return lowest


def next_expiry(window: Window, *, length_seconds: float) -> float | None:
    """Give the moment at which the minimum may rise; None when only the newest value is in the window."""
    if len(window) < 2:
        return None
    return window[0].last_seen_at + length_seconds


def _extended(window: Window, now: float) -> Window:
    if not window:
        return window
    return (*window[:-1], Sample(resources=window[-1].resources, last_seen_at=now))

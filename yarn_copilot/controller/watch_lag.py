# SPDX-License-Identifier: Apache-2.0
"""Measure how far the Node watch is behind, by versions that are known in another way.

Answers to our own patches, and Nodes read from storage, name versions that exist; the moment at which the watch has
delivered them shows its lag. kube-scheduler watches the same API server, so this is the best estimate of how late it
may see a fall of allocatable. Monotonic seconds; one event loop.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_MAX_OUTSTANDING: Final = 256


class WatchLag:
    """Hold versions that the watch has not delivered yet, and how late the last ones were."""

    def __init__(self, *, window_seconds: float) -> None:
        """Begin without any measurement; a lag counts for so many seconds after it was seen."""
        self.window_seconds = window_seconds
        self._outstanding: deque[tuple[int, float]] = deque(maxlen=_MAX_OUTSTANDING)
        self._recent: deque[tuple[float, float]] = deque()
        self._delivered = 0

    def note_known(self, version: int, *, now: float) -> None:
        """Note that a version of a Node exists; 0 says nothing."""
        if version > self._delivered:
            self._outstanding.append((version, now))

    def note_delivered(self, version: int, *, now: float) -> None:
        """Note a version that the watch delivered: with it came all older ones."""
        self._delivered = max(self._delivered, version)
        if not self._outstanding:
            return
        waiting = [each for each in self._outstanding if each[0] > version]
        if len(waiting) == len(self._outstanding):
            return
        lag = max(now - at for known, at in self._outstanding if known <= version)
        # An older lag that is no larger ends earlier and never counts again, so the first is always the largest.
        while self._recent and self._recent[-1][1] <= lag:
            self._recent.pop()
        self._recent.append((now, lag))
        self._outstanding.clear()
        self._outstanding.extend(waiting)

    def note_gap(self) -> None:
        """Note a new list: what was waited for is in it, and versions may begin anew."""
        self._outstanding.clear()
        self._delivered = 0

    def seconds(self, *, now: float) -> float:
        """Give the largest lag of the window, one that goes on included; 0 without a measurement."""
        while self._recent and now - self._recent[0][0] > self.window_seconds:
            self._recent.popleft()
        ended = self._recent[0][1] if self._recent else 0.0
        return max(ended, now - self._outstanding[0][1]) if self._outstanding else ended

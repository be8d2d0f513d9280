# SPDX-License-Identifier: Apache-2.0
"""Know how old Koordinator's knowledge of a node is.

The age counts from the moment at which `status.updateTime` of the NodeMetric last *changed*, by our monotonic
clock. Only at first sight is the wall clock asked, since a report may already be old when the bridge starts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from yarn_copilot.controller.ports import Clock
from yarn_copilot.kube.model import NodeMetric


def reduce_node_metric(metric: NodeMetric) -> str | None:
    """Keep the update time only."""
    return metric.status.updateTime


class MetricAges:
    """Be the sink of the NodeMetric watch."""

    def __init__(self, clock: Clock, on_fresh_again: Callable[[str], None], *, fresh_seconds: float) -> None:
        """Take the callback for a node whose age just became known or young again.

        Args:
            clock: both clocks.
            on_fresh_again: called with the node's name.
            fresh_seconds: age below which another report changes nothing.
        """
        self._clock = clock
        self._on_fresh_again = on_fresh_again
        self._fresh_seconds = fresh_seconds
        self._seen: dict[str, tuple[str, float]] = {}
        self.unavailable_reason = ""
        self.on_availability: Callable[[str], None] = lambda _reason: None

    def replaced(self, items: dict[str, str | None]) -> None:
        """Take a complete list."""
        self._set_unavailable("")
        for name in [name for name in self._seen if name not in items]:
            self.removed(name)
        for name, text in items.items():
            self.upserted(name, text)

    def upserted(self, key: str, item: str | None) -> None:
        """Take one report time; a report without one leaves the age as it is."""
        if item is None:
            return
        now = self._clock.monotonic()
        before = self._seen.get(key)
        if before is not None and before[0] == item:
            return
        born = now if before is not None else now - self._first_age(item)
        self._seen[key] = (item, born)
        if before is None or now - before[1] >= self._fresh_seconds:
            self._on_fresh_again(key)

    def removed(self, key: str) -> None:
        """Forget a node; its age is unknown from now on."""
        if self._seen.pop(key, None) is not None:
            self._on_fresh_again(key)

    def unavailable(self, reason: str) -> None:
        """Note that NodeMetrics cannot be read at all: every age is unknown, which is not the same as old."""
        self._seen.clear()
        self._set_unavailable(reason)

    def _set_unavailable(self, reason: str) -> None:
        changed = bool(reason) != bool(self.unavailable_reason)
        self.unavailable_reason = reason
        if changed:
            self.on_availability(reason)

    def malformed(self, key: str, reason: str) -> None:
        """Ignore an object that cannot be read: the age goes on growing."""

    def set_fresh_seconds(self, seconds: float) -> None:
        """Change the age below which another report changes nothing."""
        self._fresh_seconds = seconds

    def age_seconds(self, node: str, now: float) -> float | None:
        """Give the age of a node's report; None when unknown."""
        seen = self._seen.get(node)
        return None if seen is None else max(0.0, now - seen[1])

    def _first_age(self, text: str) -> float:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return 0.0
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, self._clock.wall() - moment.timestamp())

# SPDX-License-Identifier: Apache-2.0
"""Say whether writing is allowed at this moment, and if not, why.

One place for the rule: only the leader writes; nothing is written before the first complete view; and what Kubernetes
said must not be older than the configured limit when YARN is told to follow it.
"""

from __future__ import annotations

from collections.abc import Callable

from yarn_copilot.controller.ports import Clock, Leadership


class WriteGate:
    """Hold the conditions of a write."""

    def __init__(
        self,
        leadership: Leadership,
        clock: Clock,
        *,
        kubernetes_contact: Callable[[], float | None],
        has_complete_view: Callable[[], bool],
        max_silence_seconds: float,
        observes: bool = False,
    ) -> None:
        """Take leadership, clock and the callables that tell the views' state.

        Args:
            leadership: who may write.
            clock: monotonic clock.
            kubernetes_contact: moment of the last sign of life of the node and pod watches, the older of both.
            has_complete_view: whether nodes and pods were listed completely.
            max_silence_seconds: longest silence of the API server at which YARN is still told something.
            observes: nothing may ever be written by this process.
        """
        self._observes = observes
        self._leadership = leadership
        self._clock = clock
        self._kubernetes_contact = kubernetes_contact
        self._has_complete_view = has_complete_view
        self.max_silence_seconds = max_silence_seconds
        self.was_refused = False
        """Set where a writer dropped what it had; whoever sees the gate open again plans everything."""

    @property
    def leadership(self) -> Leadership:
        """Give the leadership, for the check before each single call."""
        return self._leadership

    def kubernetes_age_seconds(self) -> float | None:
        """Give the time since the API server last said anything; None before the first word."""
        contact = self._kubernetes_contact()
        return None if contact is None else max(0.0, self._clock.monotonic() - contact)

    def why_not_kubernetes(self) -> str:
        """Say why no Node may be patched now; empty when it may."""
        if self._observes:
            return "mode observe writes nothing"
        if not self._leadership.is_leader:
            return "another replica is leader"
        if not self._has_complete_view():
            return "nodes and pods have not been listed completely yet"
        return ""

    def refuse_kubernetes(self) -> str:
        """Give the same to a writer that drops what it has if there is a reason."""
        return self._noted(self.why_not_kubernetes())

    def why_not_yarn(self) -> str:
        """Say why no update may be sent to a ResourceManager now; empty when it may."""
        reason = self.why_not_kubernetes()
        if reason:
            return reason
        age = self.kubernetes_age_seconds()
        if age is None or age > self.max_silence_seconds:
            return f"the API server has been silent for longer than {self.max_silence_seconds:g} s"
        return ""

    def refuse_yarn(self) -> str:
        """Give the same to a writer that drops what it has if there is a reason."""
        return self._noted(self.why_not_yarn())

    def _noted(self, reason: str) -> str:
        self.was_refused = self.was_refused or bool(reason)
        return reason

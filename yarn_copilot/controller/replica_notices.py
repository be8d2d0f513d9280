# SPDX-License-Identifier: Apache-2.0
"""Tell what concerns this replica and what it talks to, not a node: an Event of the controller and a log line each.

What concerns one node is told by `notices`.
"""

from __future__ import annotations

import logging

from yarn_copilot.controller.ports import EventSink, Leadership
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.reasons import Reason

logger = logging.getLogger(__name__)


class ReplicaNotices:
    """Tell each change once."""

    def __init__(self, events: EventSink, leadership: Leadership, metrics: Metrics) -> None:
        """Take where changes are told and counted."""
        self._events = events
        self._leadership = leadership
        self._metrics = metrics
        self._is_watch_late = False

    def tell_leadership(self, is_leader: bool, term: int) -> None:
        """Tell that a term of office began or ended."""
        reason = Reason.BECAME_LEADER if is_leader else Reason.LOST_LEADERSHIP
        message = f"this replica {'writes now' if is_leader else 'stopped writing'}, term {term}"
        logger.info("%s", message, extra={"reason": reason.value})
        self._tell("Normal", reason, message)

    def tell_watch_lag(self, lag_seconds: float, *, settle_seconds: float, matters: bool) -> None:
        """Tell when the watch is further behind than mode strict allows for, and when it has caught up.

        Args:
            lag_seconds: how far the watch of Nodes is behind.
            settle_seconds: what mode strict allows for.
            matters: whether any node may be in mode strict.
        """
        is_late = lag_seconds > settle_seconds and matters
        if is_late and not self._is_watch_late:
            message = (
                f"the watch of Nodes is {lag_seconds:.1f} s behind, more than capacity.strict.settle_seconds "
                f"({settle_seconds:g}): YARN does not grow on nodes of mode strict. Look at the API server, or raise "
                "the settle time"
            )
            logger.warning("%s", message, extra={"reason": Reason.WATCH_LAG.value})
            self._tell("Warning", Reason.WATCH_LAG, message)
        elif self._is_watch_late and not is_late:
            logger.info("The watch of Nodes has caught up", extra={"lag_seconds": round(lag_seconds, 2)})
        self._is_watch_late = is_late

    def tell_reachable(self, state: ClusterState, reachable: bool) -> None:
        """Tell that a cluster's ResourceManager answers again, or no longer; only the leader makes an Event of it."""
        keys = {"cluster": state.cluster}
        if reachable:
            reason, kind = Reason.RESOURCE_MANAGER_REACHABLE, "Normal"
            message = f"the ResourceManager of cluster {state.cluster} answers"
            logger.info("%s", message, extra=keys)
        else:
            reason, kind = Reason.RESOURCE_MANAGER_UNREACHABLE, "Warning"
            message = (
                f"the ResourceManager of cluster {state.cluster} does not answer: {state.error}; "
                "its nodes keep their capacity and claim until it does"
            )
            logger.warning("%s", message, extra=keys)
        if self._leadership.is_leader:
            self._tell(kind, reason, message)

    def tell_node_metrics_unavailable(self, why: str) -> None:
        """Tell once for all nodes that NodeMetrics cannot be read, instead of once for each."""
        message = (
            f"NodeMetrics cannot be read ({why}), so the age of origin is unknown and YARN does not grow; "
            "grant get, list and watch on nodemetrics.slo.koordinator.sh, "
            "or set capacity.require_node_metric: false"
        )
        logger.warning("%s", message, extra={"reason": Reason.NODE_METRIC_UNAVAILABLE.value})
        self._tell("Warning", Reason.NODE_METRIC_UNAVAILABLE, message)

    def tell_claim_refused(self, node: str, error: str) -> None:
        """Tell that the API server does not let us write a node's claim."""
        self._tell("Warning", Reason.CLAIM_REFUSED, f"the API server refuses to change node {node}: {error}")

    def _tell(self, kind: str, reason: Reason, message: str) -> None:
        self._events.controller_event(type=kind, reason=reason.value, message=message)
        self._metrics.count_event(kind, reason.value)

# SPDX-License-Identifier: Apache-2.0
"""Tell each change of a node's condition once: an Event, a log line and a reason with its age.

A condition that holds for hours is told when it begins and when it ends. Only the leader tells; a standby knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from batch_resources.annotations.orders import Orders
from batch_resources.ledger import Hold, NodePlan
from yarn_copilot.controller.memory import ManagerMemory, NodeMemory
from yarn_copilot.controller.ports import Clock, EventSink, Leadership
from yarn_copilot.controller.stages_told import agent_conditions, stage_conditions
from yarn_copilot.controller.state.nodes import NodeFacts
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.reasons import Reason

logger = logging.getLogger(__name__)

_REASON_OF_HOLD: Mapping[Hold, Reason] = {
    Hold.ORIGIN_ABSENT: Reason.ORIGIN_ABSENT,
    Hold.ORIGIN_DEGRADED: Reason.ORIGIN_DEGRADED,
    Hold.ORIGIN_MALFORMED: Reason.ORIGIN_MALFORMED,
    Hold.ORIGIN_STALE: Reason.ORIGIN_STALE,
    Hold.ORIGIN_AGE_UNKNOWN: Reason.NODE_METRIC_UNAVAILABLE,
    Hold.THIRD_PARTY_MALFORMED: Reason.THIRD_PARTY_MALFORMED,
    Hold.POD_REQUEST_MALFORMED: Reason.POD_REQUEST_MALFORMED,
    Hold.FLOOR_OVERCOMMIT: Reason.FLOOR_OVERCOMMIT,
    Hold.FOREIGN_WRITER: Reason.FOREIGN_WRITER,
    Hold.ORDER_MALFORMED: Reason.ORDER_MALFORMED,
    Hold.PAUSED: Reason.PAUSED,
    Hold.DRAINING: Reason.DRAINING,
    Hold.DRAIN_OVERDUE: Reason.DRAIN_OVERDUE,
    Hold.DRAINED: Reason.DRAINED,
    Hold.RELEASED: Reason.RELEASED,
    Hold.FIX_EXCEEDS_BUDGET: Reason.FIX_EXCEEDS_BUDGET,
    Hold.CLUSTER_UNKNOWN: Reason.CLUSTER_UNKNOWN,
    Hold.NODE_MANAGER_UNMATCHED: Reason.NODE_MANAGER_UNMATCHED,
    Hold.NODE_MANAGER_NOT_RUNNING: Reason.NODE_MANAGER_NOT_RUNNING,
}
"""Holds that are a condition to tell; the others are ordinary working and appear in `explain` only."""

_ORIGIN_REASONS = frozenset(
    {Reason.ORIGIN_ABSENT, Reason.ORIGIN_DEGRADED, Reason.ORIGIN_MALFORMED, Reason.ORIGIN_STALE}
)


_ORDERED = frozenset({Reason.PAUSED, Reason.DRAINING, Reason.DRAINED, Reason.RELEASED})
"""Conditions that an operator asked for: told as Normal, and no reason to look at the node."""

_COMES_BACK_SECONDS = 15.0
"""NodeManagers register with a restarted ResourceManager within their heartbeat and its retries, seconds."""


def next_look(manager: ManagerMemory) -> float | None:
    """Give the moment from which the absence of a NodeManager that was known is worth telling; None if it is there."""
    if manager.node_id is None or manager.not_running_since is None:
        return None
    return manager.not_running_since + _COMES_BACK_SECONDS


@dataclass(frozen=True, slots=True)
class Notice:
    """Hold one condition of a node and since when it holds (monotonic seconds)."""

    message: str
    since: float


class NodeNotices:
    """Hold the conditions of all nodes and tell their changes."""

    def __init__(
        self,
        events: EventSink,
        leadership: Leadership,
        clock: Clock,
        metrics: Metrics,
        *,
        clusters: Iterable[str] = (),
    ) -> None:
        """Take where changes are told, and the ids of the configured clusters for messages."""
        self._clusters = tuple(sorted(clusters))
        self._events = events
        self._leadership = leadership
        self._clock = clock
        self._metrics = metrics
        self._notices: dict[str, dict[Reason, Notice]] = {}
        self.quiet: frozenset[Reason] = frozenset()
        """Reasons that are told once for all nodes, elsewhere."""

    def set_clusters(self, clusters: Iterable[str]) -> None:
        """Take the ids of the configured clusters, for messages."""
        self._clusters = tuple(sorted(clusters))

    def of(self, node: str) -> Mapping[Reason, Notice]:
        """Give the conditions of a node."""
        return self._notices.get(node, {})

    def counts(self) -> dict[str, int]:
        """Count nodes by reason."""
        counts: dict[str, int] = {}
        for notices in self._notices.values():
            for reason in notices:
                counts[reason.value] = counts.get(reason.value, 0) + 1
        return counts

    def held_nodes(self) -> int:
        """Count nodes with any condition that nobody ordered."""
        return sum(1 for notices in self._notices.values() if notices.keys() - _ORDERED)

    def forget(self, node: str) -> None:
        """Drop the conditions of a node that is gone."""
        self._notices.pop(node, None)

    def forget_all(self) -> None:
        """Start anew: a new leader tells what it finds, once."""
        self._notices.clear()

    def update(self, facts: NodeFacts, memory: NodeMemory, plan: NodePlan, unreadable: Iterable[str]) -> None:
        """Compare a new plan's conditions with the ones told before."""
        now_holding = self._conditions(facts, memory, plan, unreadable)
        before = self._notices.get(facts.name, {})
        if not before and not now_holding:
            return
        now = self._clock.monotonic()
        after: dict[Reason, Notice] = {}
        for reason, message in now_holding.items():
            known = before.get(reason)
            after[reason] = Notice(message, known.since if known else now)
            if known is None:
                self._tell(facts.name, "Normal" if reason in _ORDERED else "Warning", reason, message)
        ended = before.keys() - after.keys()
        for reason in ended:
            logger.info("Condition ended", extra={"reason": reason.value, "node": facts.name})
        if ended & _ORIGIN_REASONS and not after.keys() & _ORIGIN_REASONS:
            self._tell(facts.name, "Normal", Reason.ORIGIN_RECOVERED, "Koordinator publishes a usable origin again")
        if Reason.PREEMPTION_DEADLINE in ended:
            message = "nothing of YARN's is to be killed on this node any more: it fits, or the deadline was called off"
            self._tell(facts.name, "Normal", Reason.PREEMPTION_ENDED, message)
        if after:
            self._notices[facts.name] = after
        else:
            self._notices.pop(facts.name, None)

    def may_come_back(self, manager: ManagerMemory | None) -> bool:
        """Tell whether a NodeManager was listed until a moment ago: after an RM restart all of them register anew."""
        moment = None if manager is None else next_look(manager)
        return moment is not None and self._clock.monotonic() < moment

    def tell_unrecognized(self, node: str, cluster: str, node_id: str, seconds: float) -> None:
        """Tell that the ResourceManager refused a node id; called once for each step of the back-off."""
        message = (
            f"the ResourceManager of cluster {cluster} does not know {node_id}; the other nodes were updated, "
            f"next try in {seconds:g} s. Compare the annotation yarn.hadoop.apache.org/node-id with `yarn node -list -all`."
        )
        self._tell(node, "Warning", Reason.NODE_MANAGER_UNKNOWN, message)

    def tell_not_writable(self, node: str, cluster: str, why: str, seconds: float) -> None:
        """Tell that a node cannot be written without harm; called once for each step of the back-off."""
        message = (
            f"the capacity of this node's NodeManager is not changed at cluster {cluster}: {why}. The other nodes were "
            f"updated; it is looked at again in {seconds:g} s."
        )
        self._tell(node, "Warning", Reason.NODE_MANAGER_NOT_WRITABLE, message)

    def tell_kill(self, node: str, manager: ManagerMemory, message: str, was_enough: bool) -> None:
        """Tell that the agent beside a NodeManager was asked to make room, and how that went."""
        reason = Reason.TASKS_KILLED if was_enough else Reason.TASKS_NOT_KILLED
        self._tell(node, "Warning", reason, f"{manager.key.node_id} of cluster {manager.key.cluster}: {message}")

    def tell_label_refused(self, node: str, message: str) -> None:
        """Tell that YARN does not take a partition that a Node's label asks for."""
        self._tell(node, "Warning", Reason.NODE_LABEL_REFUSED, message)

    def tell_foreign_writer(self, node: str, claimed: str) -> None:
        """Log that somebody else changed our entry; the Event follows with the next plan."""
        logger.warning("Our entry was changed by somebody else", extra={"node": node, "now": claimed})

    def _tell(self, node: str, type_: str, reason: Reason, message: str) -> None:
        if not self._leadership.is_leader or reason in self.quiet:
            return
        level = logging.WARNING if type_ == "Warning" else logging.INFO
        logger.log(level, "%s", message, extra={"reason": reason.value, "node": node})
        self._events.node_event(node, type=type_, reason=reason.value, message=message)
        self._metrics.count_event(type_, reason.value)

    def _conditions(
        self, facts: NodeFacts, memory: NodeMemory, plan: NodePlan, unreadable: Iterable[str]
    ) -> dict[Reason, str]:
        found: dict[Reason, str] = {}
        for hold in plan.holds:
            reason = _REASON_OF_HOLD.get(hold)
            if reason is not None:
                found[reason] = _sentence(reason, facts, unreadable)
        for manager in plan.managers:
            for hold in manager.holds:
                reason = _REASON_OF_HOLD.get(hold)
                if reason is None or (reason is Reason.DRAINING and {Hold.DRAINING, Hold.DRAINED} & set(plan.holds)):
                    continue  # told once for the whole node
                known = memory.managers.get(manager.key)
                if reason is Reason.NODE_MANAGER_UNMATCHED and self.may_come_back(known):
                    continue
                source = known.candidate.source if known and known.candidate else manager.key.node_id
                if reason is Reason.CLUSTER_UNKNOWN:
                    found[reason] = _unknown_cluster_sentence(source, manager.key.cluster, self._clusters)
                else:
                    found[reason] = _manager_sentence(reason, source, manager.key.cluster, manager.key.node_id)
        found.update(stage_conditions(plan, self._clock.monotonic()))
        found.update(agent_conditions(memory))
        return found


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


_ORDER_SENTENCES: Mapping[Reason, Callable[[Orders], str]] = {
    Reason.ORDER_MALFORMED: lambda orders: (
        f"an order cannot be read, so YARN does not grow on this node: {'; '.join(orders.errors)}"
    ),
    Reason.PAUSED: lambda orders: (
        f"paused by an operator{_because(orders.pause.reason if orders.pause else '')}: nothing is written for this node; "
        "`yarn-copilot resume` ends it"
    ),
    Reason.DRAINING: lambda orders: (
        f"YARN leaves this node{_because(orders.drain.reason if orders.drain else '')}: its capacity goes to the floor, and "
        "containers that run may end"
    ),
    Reason.DRAIN_OVERDUE: lambda _: (
        "the deadline of the drain is over and containers still run; nothing is killed. End their applications, or wait"
    ),
    Reason.DRAINED: lambda _: "YARN runs nothing on this node any more, and its capacity is the floor",
    Reason.RELEASED: lambda _: (
        "our entry has been given back and the node is left alone, as long as the order yarn-copilot/drain says release=true"
    ),
    Reason.FIX_EXCEEDS_BUDGET: lambda _: (
        "annotation yarn-copilot/fix asks for more than Koordinator and the pods leave to YARN; YARN gets what is there"
    ),
}


def _sentence(reason: Reason, facts: NodeFacts, unreadable: Iterable[str]) -> str:
    match reason:
        case Reason.ORIGIN_MALFORMED:
            return f"annotation node.koordinator.sh/originExtendedAllocatable cannot be used: {facts.origin.detail}; YARN keeps what it uses and does not grow"
        case Reason.ORIGIN_ABSENT:
            return "annotation node.koordinator.sh/originExtendedAllocatable is absent; YARN keeps what it uses and does not grow (Koordinator 1.4 or newer with colocation enabled writes it)"
        case Reason.ORIGIN_DEGRADED:
            return "Koordinator has withdrawn the batch resources (no report of koordlet, or colocation is disabled); YARN keeps what it uses and does not grow"
        case Reason.ORIGIN_STALE:
            return "koordlet's last report is too old to be trusted; YARN keeps what it uses and does not grow (look at koordlet on this node)"
        case Reason.NODE_METRIC_UNAVAILABLE:
            return "the node's NodeMetric cannot be read, so the age of origin is unknown; YARN does not grow (set capacity.require_node_metric: false to trust origin without an age)"
        case Reason.THIRD_PARTY_MALFORMED:
            return f"annotation node.koordinator.sh/thirdPartyAllocations cannot be read: {facts.third_party_error}; it is left as it is, YARN keeps what it uses. Mend or remove it: Koordinator subtracts nothing meanwhile"
        case Reason.POD_REQUEST_MALFORMED:
            return (
                f"a pod's batch request cannot be counted: {'; '.join(list(unreadable)[:3])}; YARN keeps what it uses"
            )
        case _ if reason in _ORDER_SENTENCES:
            return _ORDER_SENTENCES[reason](facts.orders)
        case Reason.FOREIGN_WRITER:
            return "somebody else changed the entry hadoop-yarn of the third-party allocations (another bridge still running?); nothing is written for this node until that has stopped"
        case _:
            return reason.value


def _unknown_cluster_sentence(source: str, cluster: str, configured: tuple[str, ...]) -> str:
    known = ", ".join(configured) or "none"
    return f"{source} belongs to YARN cluster {cluster[:64]!r}, which is not configured; configured are: {known}. It gets no capacity. Mend the annotation yarn.hadoop.apache.org/cluster-id, or add the cluster's yarn-site.xml"


def _manager_sentence(reason: Reason, source: str, cluster: str, node_id: str) -> str:
    match reason:
        case Reason.FLOOR_OVERCOMMIT:
            return f"what is left for YARN is less than the floor that {node_id} of cluster {cluster} registers with; the floor stays and is claimed"
        case Reason.DRAINING:
            return f"the NodeManager {node_id} of cluster {cluster} leaves: its capacity goes to the floor, and containers that run may end"
        case Reason.NODE_MANAGER_UNMATCHED:
            listed = f" under {node_id}" if node_id else " under any of its names or addresses"
            return f"the NodeManager of {source} is not in the node list of cluster {cluster}{listed}; it gets no capacity until it registers"
        case Reason.NODE_MANAGER_NOT_RUNNING:
            return f"the NodeManager {node_id} of cluster {cluster} is not RUNNING; its capacity is left alone and its last use stays claimed"
        case _:
            return reason.value

# SPDX-License-Identifier: Apache-2.0
"""Run the loops of each YARN cluster: poller, capacity writer, queue reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from yarn_copilot.config.settings import Settings
from yarn_copilot.controller.cluster_view.poller import ClusterPoller
from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.memory import ManagerMemory
from yarn_copilot.controller.node_capacity.reconciler import CapacityReconciler
from yarn_copilot.controller.node_labels.loop import NodeLabelLoop
from yarn_copilot.controller.notices import NodeNotices
from yarn_copilot.controller.ports import LabelKeeper, PartitionReader, ResourceManager, SchedulerReader
from yarn_copilot.controller.queues.reader import QueueReader
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.controller.translation import to_label_rules, to_poll_settings
from yarn_copilot.hadoop.errors import NodeRefusedError, UnrecognizedNodeError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPort:
    """Hold what `cli` knows of one YARN cluster.

    Attributes:
        resource_manager: the client.
        addresses: where it connects to, for people.
        heartbeat_seconds: NodeManager heartbeat interval from the cluster's own configuration.
        partitions: reads what labelled partitions wait for; without it that is unknown.
        labels: reads and writes partitions and attributes; None where the transport cannot.
        scheduler: reads what the ResourceManager's scheduler works with; without it mode strict lowers no claim.
    """

    resource_manager: ResourceManager
    addresses: tuple[str, ...]
    heartbeat_seconds: float
    scheduler: SchedulerReader | None = None
    partitions: PartitionReader | None = None
    labels: LabelKeeper | None = None


@dataclass(slots=True, kw_only=True)
class ClusterLoops:
    """Hold the loops of one cluster."""

    state: ClusterState
    poller: ClusterPoller
    capacity: CapacityReconciler
    queues: QueueReader
    node_labels: NodeLabelLoop

    def apply(self, settings: Settings) -> None:
        """Take over the reloadable settings."""
        self.poller.settings = to_poll_settings(settings)
        self.capacity.unrecognized_backoff_max_seconds = settings.yarn.unrecognized_backoff_max_seconds
        self.queues.interval_seconds = settings.yarn.queue_interval_seconds
        self.queues.quiet_seconds = settings.capacity.strict.yarn_quiet_seconds
        self.node_labels.interval_seconds = settings.node_labels.interval_seconds


def build_cluster(
    state: ClusterState,
    port: ClusterPort,
    *,
    context: LoopContext,
    settings: Settings,
    notices: NodeNotices,
    on_reachable: Callable[[ClusterState, bool], None],
) -> ClusterLoops:
    """Join the loops of one cluster."""

    def on_applied(manager: ManagerMemory, name: str) -> None:
        memory = context.book.memory(name)
        if memory is not None and memory.origin_changed_at is not None:
            context.metrics.observe_propagation("applied", context.clock.monotonic() - memory.origin_changed_at)
            memory.origin_changed_at = None

    def on_demand(changed: ClusterState) -> None:
        """Plan the nodes for which it is another now who waits."""
        context.dirty.mark_all(context.book.names_with_other_demand(changed.cluster))

    def on_refused(node: str, manager: ManagerMemory, problem: NodeRefusedError, seconds: float) -> None:
        if isinstance(problem, UnrecognizedNodeError):
            notices.tell_unrecognized(node, state.cluster, str(manager.node_id), seconds)
        else:
            notices.tell_not_writable(node, state.cluster, problem.message, seconds)

    def on_change(state: ClusterState, is_reachable: bool) -> None:
        if is_reachable:
            loops.capacity.end_wait()
        on_reachable(state, is_reachable)

    poller = ClusterPoller(
        state,
        port.resource_manager,
        context=context,
        settings=to_poll_settings(settings),
        on_reachable=on_change,
        on_applied=on_applied,
        scheduler=port.scheduler,
    )
    loops = ClusterLoops(
        state=state,
        poller=poller,
        capacity=CapacityReconciler(
            state.cluster,
            port.resource_manager,
            context=context,
            on_sent=poller.expedite,
            on_refused=on_refused,
        ),
        queues=QueueReader(
            state,
            port.resource_manager,
            context=context,
            interval_seconds=settings.yarn.queue_interval_seconds,
            partitions=port.partitions,
            on_demand=on_demand,
        ),
        node_labels=NodeLabelLoop(
            state,
            port.labels,
            context=context,
            notices=notices,
            rules=to_label_rules(settings),
            interval_seconds=settings.node_labels.interval_seconds,
        ),
    )
    loops.apply(settings)
    return loops

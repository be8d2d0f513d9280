# SPDX-License-Identifier: Apache-2.0
"""Be the ResourceManager's state machine: nodes come, report, change, go. No I/O; time is passed in.

Source: RMNodeImpl, ResourceTrackerService, AdminService and AbstractYarnScheduler of Hadoop 3.5.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from lab.embedded.yarn.containers import Ask, EmbeddedContainer, ExitStatus
from lab.embedded.yarn.scheduler_node import SchedulerNode
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, NodeState, Resource, ResourceInformation


class NodeAction(Enum):
    """Say what a NodeManager is told to do; values of NodeActionProto."""

    NORMAL = 0
    RESYNC = 1
    SHUTDOWN = 2


class UnknownNodeError(Exception):
    """Say that an update names a node outside the active map."""

    def __init__(self, node_id: NodeId) -> None:
        super().__init__(str(node_id))
        self.node_id = node_id


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer:
    """Hold what a NodeManager is told; `resource` only once after an update."""

    action: NodeAction
    response_id: int = 0
    resource: Resource | None = None
    diagnostics: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class RMNode:
    """Be one node as the ResourceManager sees it.

    Attributes:
        capability: changes with an update at once; the scheduler's own total follows.
        original: capability when graceful decommissioning began, restored by recommissioning.
        has_news: an update waits to be told in the next heartbeat answer.
        last_answer: what the last heartbeat was answered, for its repetition.
        last_heartbeat: monotonic seconds.
    """

    node_id: NodeId
    http_port: int
    capability: Resource
    scheduler: SchedulerNode
    state: NodeState = NodeState.RUNNING
    original: Resource | None = None
    has_news: bool = False
    response_id: int = 0
    last_answer: HeartbeatAnswer = HeartbeatAnswer(action=NodeAction.NORMAL)
    last_heartbeat: float = 0.0


@dataclass(slots=True, kw_only=True)
class Rules:
    """Hold what the configuration of a real ResourceManager would say.

    Attributes:
        minimum_memory_mib: smallest memory a node may register with.
        minimum_vcores: smallest vcores a node may register with.
        expiry_seconds: a node silent for longer is LOST.
        invisible_seconds: how long reports show no use after an update.
        custom_types: names of custom resource types; others are dropped.
    """

    minimum_memory_mib: int = 128
    minimum_vcores: int = 1
    expiry_seconds: float = 600.0
    invisible_seconds: float = 0.03
    custom_types: tuple[str, ...] = ()


@dataclass(slots=True)
class ResourceManagerState:
    """Be everything the ResourceManager knows; lost in a restart, except what NodeManagers report again."""

    rules: Rules = field(default_factory=Rules)
    nodes: dict[NodeId, RMNode] = field(default_factory=dict)
    inactive: dict[NodeId, RMNode] = field(default_factory=dict)
    asks: list[Ask] = field(default_factory=list)
    finished: list[EmbeddedContainer] = field(default_factory=list)
    counter: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def register(
        self,
        node_id: NodeId,
        resource: Resource,
        *,
        http_port: int,
        now: float,
        containers: Iterable[EmbeddedContainer] = (),
    ) -> HeartbeatAnswer:
        """Take a node in; `containers` are those which its NodeManager says it still runs."""
        resource = self.known_types_only(resource)
        rules = self.rules
        if resource.memory_mib < rules.minimum_memory_mib or resource.vcores < rules.minimum_vcores:
            return HeartbeatAnswer(
                action=NodeAction.SHUTDOWN,
                diagnostics=f"NodeManager from {node_id.host} doesn't satisfy minimum allocations",
            )
        kept = set(containers)
        old = self.nodes.get(node_id)
        if old is not None:
            self._end_all(old, [one for one in old.scheduler.containers if one not in kept], ExitStatus.ABORTED)
            if kept:
                self._reconnect(old, resource, now)
                return HeartbeatAnswer(action=NodeAction.NORMAL)
        scheduler = SchedulerNode(total=resource)
        for container in kept:
            scheduler.add(container)
        self.inactive.pop(node_id, None)
        self.nodes[node_id] = RMNode(
            node_id=node_id,
            http_port=http_port,
            capability=resource,
            scheduler=scheduler,
            has_news=old is not None and old.has_news,
            last_heartbeat=now,
        )
        return HeartbeatAnswer(action=NodeAction.NORMAL)

    def heartbeat(self, node_id: NodeId, response_id: int, *, now: float, healthy: bool = True) -> HeartbeatAnswer:
        """Take a node's report: launch, finish, kill, place; and tell it about an update."""
        node = self.nodes.get(node_id)
        if node is None:
            return HeartbeatAnswer(action=NodeAction.RESYNC, diagnostics=f"Node not found resyncing {node_id}")
        if response_id + 1 == node.response_id:
            return node.last_answer  # the NodeManager has not got it
        if response_id != node.response_id:
            self._deactivate(node, NodeState.REBOOTED)
            return HeartbeatAnswer(action=NodeAction.RESYNC, diagnostics="Too far behind rm response id")
        node.last_heartbeat = now
        node.response_id = response_id + 1
        self._set_health(node, healthy=healthy)
        self._finish_containers(node, now)
        if node.state is NodeState.DECOMMISSIONING:
            self._shrink_to_use(node, now)
        self._end_all(node, node.scheduler.overdue_victims(now), ExitStatus.PREEMPTED)
        if node.state is NodeState.RUNNING:
            self._place(node, now)
        news = node.capability if node.has_news else None
        node.has_news = False
        node.last_answer = HeartbeatAnswer(action=NodeAction.NORMAL, response_id=node.response_id, resource=news)
        return node.last_answer

    def unregister(self, node_id: NodeId) -> None:
        """Let a node go that stops in good order."""
        if node := self.nodes.get(node_id):
            self._deactivate(node, NodeState.SHUTDOWN)

    def expire(self, now: float) -> None:
        """Declare silent nodes LOST."""
        for node in list(self.nodes.values()):
            if now - node.last_heartbeat > self.rules.expiry_seconds:
                self._deactivate(node, NodeState.LOST)

    def check_known(self, node_ids: Iterable[NodeId]) -> None:
        """Refuse a batch that names a node outside the active map.

        Raises:
            UnknownNodeError: for the first such node.
        """
        for node_id in node_ids:
            if node_id not in self.nodes:
                raise UnknownNodeError(node_id)

    def apply_update(self, update: NodeResourceUpdate, *, now: float) -> None:
        """Change a node, some time after the call was answered; a node gone meanwhile is skipped."""
        node = self.nodes.get(update.node_id)
        if node is None:
            return
        node.capability = self.known_types_only(update.resource)
        if node.state in (NodeState.RUNNING, NodeState.DECOMMISSIONING):
            node.has_news = True
            self._update_scheduler(node, update.overcommit_timeout_millis, now)

    def decommission(self, node_id: NodeId) -> None:
        """Begin a graceful decommission."""
        node = self.nodes[node_id]
        node.original = node.capability
        node.state = NodeState.DECOMMISSIONING

    def recommission(self, node_id: NodeId, *, now: float) -> None:
        """Take a decommissioning node back with the capability it had when that began."""
        node = self.nodes[node_id]
        node.state = NodeState.RUNNING
        if node.original is not None:
            node.capability, node.original = node.original, None
            node.has_news = True
            self._update_scheduler(node, 0, now)

    def deactivate(self, node_id: NodeId, state: NodeState) -> None:
        """Take a node out of the active map; its containers end."""
        self._deactivate(self.nodes[node_id], state)

    def launch(self, container: EmbeddedContainer) -> None:
        """Start a container on its node, whether or not it fits."""
        self.nodes[container.node_id].scheduler.add(container)

    def finish(self, container: EmbeddedContainer, exit_status: ExitStatus) -> None:
        """End a running container; with an application master its application ends, everywhere."""
        node = self.nodes.get(container.node_id)
        if node is not None and container.is_running:
            self._end_all(node, [container], exit_status)

    def end_application(self, application: int) -> None:
        """Withdraw an application's asks and end its containers."""
        self.asks = [ask for ask in self.asks if ask.application != application]
        for container in [one for one in self.running_containers() if one.application == application]:
            self.finish(container, ExitStatus.KILLED_AFTER_APPLICATION_COMPLETION)

    def running_containers(self) -> Iterator[EmbeddedContainer]:
        """Walk through the containers of all active nodes."""
        for node in self.nodes.values():
            yield from node.scheduler.containers

    def cluster_total(self) -> Resource:
        """Sum the totals of the nodes that can be scheduled on."""
        running = [node.scheduler.total for node in self.nodes.values() if node.state is NodeState.RUNNING]
        return Resource(sum(total.memory_mib for total in running), sum(total.vcores for total in running))

    def known_types_only(self, resource: Resource) -> Resource:
        """Drop unknown custom types and set missing ones to 0."""
        given = {entry.name: entry for entry in resource.custom}
        custom = tuple(given.get(name) or ResourceInformation(name, 0) for name in self.rules.custom_types)
        return Resource(resource.memory_mib, resource.vcores, custom)

    def _update_scheduler(self, node: RMNode, timeout_millis: int, now: float) -> None:
        victims = node.scheduler.update_total(
            node.capability, timeout_millis, now=now, invisible_seconds=self.rules.invisible_seconds
        )
        self._end_all(node, victims, ExitStatus.PREEMPTED)

    def _reconnect(self, node: RMNode, resource: Resource, now: float) -> None:
        """Keep a known node that says it still runs containers; only a total that differs touches its books."""
        node.response_id = 0
        node.last_heartbeat = now
        if resource != node.capability:
            node.capability = resource
            self._update_scheduler(node, -1, now)

    def _set_health(self, node: RMNode, *, healthy: bool) -> None:
        """Move between RUNNING and UNHEALTHY; containers of an unhealthy node are lost, its capability stays."""
        if not healthy and node.state is NodeState.RUNNING:
            node.state = NodeState.UNHEALTHY
            self._end_all(node, list(node.scheduler.containers), ExitStatus.ABORTED)
        elif healthy and node.state is NodeState.UNHEALTHY:
            node.state = NodeState.RUNNING
            node.scheduler = SchedulerNode(total=node.capability)

    def _finish_containers(self, node: RMNode, now: float) -> None:
        for container in list(node.scheduler.containers):
            container.is_launched = True
            if container.ends_at is not None and now >= container.ends_at:
                self._end_all(node, [container], ExitStatus.SUCCESS)

    def _shrink_to_use(self, node: RMNode, now: float) -> None:
        """Do what every heartbeat of a decommissioning node does: total becomes use, with timeout 0."""
        scheduler = node.scheduler
        if not scheduler.containers:
            self._deactivate(node, NodeState.DECOMMISSIONED)
            return
        node.capability = Resource(scheduler.used_memory_mib, scheduler.used_vcores, node.capability.custom)
        self._update_scheduler(node, 0, now)

    def _place(self, node: RMNode, now: float) -> None:
        """Fill the node from the oldest ask that fits, again and again."""
        for ask in self.asks:
            while ask.count > 0 and node.scheduler.has_room_for(ask.resource):
                ask.count -= 1
                node.scheduler.add(
                    EmbeddedContainer(
                        number=next(self.counter),
                        node_id=node.node_id,
                        resource=ask.resource,
                        queue=ask.queue,
                        application=ask.application,
                        ends_at=None if ask.container_seconds is None else now + ask.container_seconds,
                    )
                )
        self.asks = [ask for ask in self.asks if ask.count > 0]

    def _deactivate(self, node: RMNode, state: NodeState) -> None:
        self._end_all(node, list(node.scheduler.containers), ExitStatus.ABORTED)
        node.state = state
        self.nodes.pop(node.node_id, None)
        self.inactive[node.node_id] = node

    def _end_all(self, node: RMNode, containers: list[EmbeddedContainer], exit_status: ExitStatus) -> None:
        for container in containers:
            if not container.is_running:
                continue
            node.scheduler.remove(container, exit_status)
            self.finished.append(container)
            if container.is_application_master:
                self.end_application(container.application)

# SPDX-License-Identifier: Apache-2.0
"""Answer what the controller knows: views for the HTTP API, rows for metrics, sentences for `explain`.

Satisfies `api.reader.ControllerReader`. Everything is computed when asked, from the same plans that the writers act on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from batch_resources.ledger import Hold, ManagerPlan, NodePlan
from batch_resources.resources import BatchResources, YarnResources
from batch_resources.sends import unconfirmed
from yarn_copilot.controller.amounts import batch_view
from yarn_copilot.controller.boundary_words import boundary_sentences
from yarn_copilot.controller.explaining import explain_node
from yarn_copilot.controller.manager_reports import to_yarn
from yarn_copilot.controller.memory import ManagerMemory, NodeMemory
from yarn_copilot.controller.order_views import drain_view, order_views, planned_view
from yarn_copilot.controller.program import Controller
from yarn_copilot.controller.stages_told import agent_view, stage_view
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.controller.state.nodes import NodeFacts
from yarn_copilot.controller.view import (
    BatchView,
    BoundaryView,
    ClusterView,
    ConfigView,
    ControllerView,
    GivingWayView,
    NodeManagerView,
    NodeView,
    OriginView,
    QueueView,
    ReasonView,
    YarnView,
)
from yarn_copilot.hadoop.model import NodeState, QueueInfo, Resource
from yarn_copilot.observability.table import Amount, MetricsTable, NodeManagerRow, PipelineRow


class Reader:
    """Read one controller."""

    def __init__(
        self,
        controller: Controller,
        *,
        identity: str,
        version: str,
        config: Callable[[], ConfigView],
    ) -> None:
        """Take what only `cli` knows: name, version, the state of the configuration."""
        self._controller = controller
        self._identity = identity
        self._version = version
        self._config = config

    def controller(self) -> ControllerView:
        """Describe this replica."""
        controller = self._controller
        outside = controller.outside
        missing = controller.missing()
        return ControllerView(
            identity=self._identity,
            leader=outside.leadership.is_leader,
            term=outside.leadership.term,
            leader_identity=outside.leadership.holder,
            ready=not missing,
            ready_missing=missing,
            stuck=controller.stuck(),
            kubernetes_age_seconds=controller.gate.kubernetes_age_seconds(),
            started_seconds=outside.clock.monotonic() - controller.started_at,
            version=self._version,
            mode=controller.settings.capacity.mode.value,
            config=self._config(),
        )

    def nodes(self) -> list[NodeView]:
        """Describe every node that has something to do with YARN, by name."""
        views = (self.node(name) for name in sorted(self._controller.book.memories))
        return [view for view in views if view is not None]

    def node(self, name: str) -> NodeView | None:
        """Describe one node; a node without a NodeManager is known but not managed."""
        facts = self._controller.nodes.get(name)
        if facts is None:
            return None
        memory = self._controller.book.memory(name)
        now = self._controller.outside.clock.monotonic()
        plan = memory.plan if memory else None
        units = self._sums(facts, memory)
        wall = self._controller.outside.clock.wall()
        orders = facts.orders.at(wall)
        target = _batch(units[0])
        return NodeView(
            node=name,
            managed=memory is not None and bool(memory.managers),
            reasons=[
                ReasonView(reason=reason.value, message=notice.message, since_seconds=now - notice.since)
                for reason, notice in self._controller.notices.of(name).items()
            ],
            origin=self._origin(facts, plan, now),
            allocatable=_batch(facts.allocatable),
            reserve=_batch(plan.reserve if plan and plan.window_minimum else None),
            others=_batch(facts.others),
            kubernetes_requested=_batch(self._controller.pods.requested(name)),
            window_minimum=_batch(plan.window_minimum if plan else None),
            target=target,
            capacity=_batch(units[1]),
            used=_batch(units[2]),
            claimed=_batch(facts.claimed),
            claim_wanted=_batch(plan.claim if plan else None),
            boundary=_boundary(plan),
            node_managers=[self._manager(manager, plan, now) for manager in memory.managers.values()] if memory else [],
            mode="" if memory is None else memory.mode.value,
            orders=order_views(orders, wall),
            drain=drain_view(
                plan,
                orders,
                is_unmanaged=memory is None and self._controller.ready,
                containers=self._containers(memory),
                notices=self._controller.notices.of(name),
                moments=(now, wall),
            ),
            planned=None if plan is None else planned_view(plan, target),
            updated_age_seconds=None if memory is None or memory.planned_at is None else now - memory.planned_at,
        )

    def clusters(self) -> list[ClusterView]:
        """Describe every configured YARN cluster, by id."""
        return [self._cluster(state) for _, state in sorted(self._controller.states.items())]

    def queues(self) -> list[QueueView]:
        """Describe every queue of every cluster, parents before children."""
        views: list[QueueView] = []
        now = self._controller.outside.clock.monotonic()
        for _, state in sorted(self._controller.states.items()):
            if state.queues is not None and state.queues_read_at is not None:
                views.extend(_queue_views(state.cluster, state.queues, "", now - state.queues_read_at))
        return views

    def explain(self, name: str) -> list[str] | None:
        """Explain one node in sentences; None for an unknown name."""
        view = self.node(name)
        if view is None:
            return None
        memory, facts = self._controller.book.memory(name), self._controller.nodes.get(name)
        plan, policy = memory.plan if memory else None, self._controller.planning.policy_of(memory)
        boundary: Iterable[str] = ()
        if plan is not None and facts is not None:
            pods = self._controller.demand.pods_on(name)
            boundary = boundary_sentences(plan, policy, pods, has_ratio=facts.has_ratio)
        writes = self._controller.gate.why_not_yarn()
        return explain_node(view, plan, policy, why_no_writes=writes, boundary=boundary)

    def table(self) -> MetricsTable:
        """Give the rows of one scrape."""
        book = self._controller.book
        return MetricsTable(
            pipeline=list(self._pipeline_rows()),
            node_managers=list(self._manager_rows()),
            reasons=self._controller.notices.counts(),
            managed_nodes=sum(1 for memory in book.memories.values() if memory.managers),
            held_nodes=self._controller.notices.held_nodes(),
        )

    def _pipeline_rows(self) -> Iterator[PipelineRow]:
        for name, memory in self._controller.book.memories.items():
            facts, plan = self._controller.nodes.get(name), memory.plan
            if facts is None or plan is None:
                continue
            target, capacity, used = self._sums(facts, memory)
            yield PipelineRow(
                node=name,
                origin=_amount(plan.origin),
                reserve=_amount(plan.reserve if plan.window_minimum else None),
                others=_amount(facts.others),
                kubernetes_requested=_amount(self._controller.pods.requested(name)),
                window_minimum=_amount(plan.window_minimum),
                target=_amount(target),
                capacity=_amount(capacity),
                used=_amount(used),
                claimed=_amount(facts.claimed),
            )

    def _manager_rows(self) -> Iterator[NodeManagerRow]:
        for name, memory in self._controller.book.memories.items():
            for manager in memory.managers.values():
                report = self._controller.book.reports.of(manager)
                if report is not None:
                    used = manager.evidence.settled
                    yield NodeManagerRow(
                        cluster=manager.key.cluster,
                        node_id=manager.key.node_id,
                        node=name,
                        capacity=(report.capability.memory_mib, report.capability.vcores),
                        used=None if used is None else (used.memory_mib, used.vcores),
                    )

    def _containers(self, memory: NodeMemory | None) -> int | None:
        """Count the containers on a node; None while one of its ResourceManagers cannot be read."""
        total = 0
        for manager in memory.managers.values() if memory else ():
            report = self._controller.book.reports.of(manager)
            if self._controller.book.reports.reachable_since(manager) is None:
                return None
            total += 0 if report is None else report.containers
        return total

    def _sums(self, facts: NodeFacts, memory: NodeMemory | None) -> tuple[BatchResources | None, ...]:
        """Add up target, capacity and use over a node's NodeManagers, in Koordinator's units."""
        if memory is None or memory.plan is None:
            return None, None, None
        reports = (self._controller.book.reports.of(manager) for manager in memory.managers.values())
        columns: tuple[Iterable[YarnResources | None], ...] = (
            [decision.target for decision in memory.plan.managers],
            [None if report is None else to_yarn(report.capability) for report in reports],
            [manager.evidence.settled for manager in memory.managers.values()],
        )
        return tuple(self._sum(column, facts.normalization_ratio) for column in columns)

    def _sum(self, values: Iterable[YarnResources | None], ratio: Fraction | None) -> BatchResources | None:
        units = self._controller.planning.policy.units
        known = [units.to_batch(value, normalization_ratio=ratio) for value in values if value is not None]
        total = None
        for amount in known:
            total = amount if total is None else total + amount
        return total

    def _origin(self, facts: NodeFacts, plan: NodePlan | None, now: float) -> OriginView:
        resources = facts.origin.resources
        stale = plan is not None and Hold.ORIGIN_STALE in plan.holds
        return OriginView(
            state="stale" if stale else facts.origin.state.value,
            cpu_milli=None if resources is None else resources.cpu_milli,
            memory_bytes=None if resources is None else resources.memory_bytes,
            age_seconds=self._controller.ages.age_seconds(facts.name, now),
            detail=facts.origin.detail,
        )

    def _manager(self, manager: ManagerMemory, plan: NodePlan | None, now: float) -> NodeManagerView:
        state = self._controller.states.get(manager.key.cluster)
        report = self._controller.book.reports.of(manager)
        decision = _decision(plan, manager)
        pending = unconfirmed(manager.sends)
        return NodeManagerView(
            cluster=manager.key.cluster,
            node_id=manager.key.node_id,
            state=report.state.name if report else "UNKNOWN",
            capacity=_yarn(to_yarn(report.capability)) if report else None,
            used=_yarn(manager.evidence.settled),
            target=_yarn(decision.target if decision else None),
            used_settled=manager.evidence.complete and not manager.evidence.is_falling,
            read_age_seconds=None if state is None else state.age_seconds(now),
            pending_send=_yarn(pending[-1].resources) if pending else None,
            agent=agent_view(manager.agent, now),
            giving_way=stage_view(decision.giving_way, plan.over_since, now) if plan and decision else GivingWayView(),
        )

    def _cluster(self, state: ClusterState) -> ClusterView:
        counts: dict[str, int] = {}
        for report in state.reports.values():
            counts[report.state.name] = counts.get(report.state.name, 0) + 1
        managers = self._controller.book.residents.managers_of_cluster(state.cluster)
        return ClusterView(
            id=state.cluster,
            addresses=list(state.addresses),
            reachable=state.reachable,
            age_seconds=state.age_seconds(self._controller.outside.clock.monotonic()),
            error=state.error,
            nodes_by_state={name.name: counts[name.name] for name in NodeState if name.name in counts},
            pending_updates=sum(1 for _, manager in managers if unconfirmed(manager.sends)),
        )


def _boundary(plan: NodePlan | None) -> BoundaryView | None:
    if plan is None or plan.demand is None or not plan.boundary:
        return None
    return BoundaryView(
        why_cpu=plan.boundary[0].value,
        why_memory=plan.boundary[1].value,
        pods_wait_for=_batch(plan.demand.kubernetes),
        yarn_waits=plan.demand.yarn_waits,
    )


def _decision(plan: NodePlan | None, manager: ManagerMemory) -> ManagerPlan | None:
    if plan is None:
        return None
    return next((decision for decision in plan.managers if decision.key == manager.key), None)


def _queue_views(cluster: str, queue: QueueInfo, parent: str, age_seconds: float) -> Iterator[QueueView]:
    path = queue.path or (f"{parent}.{queue.name}" if parent else queue.name)
    yield QueueView(
        cluster=cluster,
        path=path,
        state=queue.state,
        capacity_fraction=queue.capacity,
        maximum_capacity_fraction=queue.maximum_capacity,
        used_fraction=queue.current_capacity,
        allocated=_of_resource(queue.allocated),
        pending=_of_resource(queue.pending),
        containers_allocated=queue.allocated_containers,
        containers_pending=queue.pending_containers,
        applications_running=queue.applications_running,
        applications_pending=queue.applications_pending,
        age_seconds=age_seconds,
    )
    for child in queue.children:
        yield from _queue_views(cluster, child, path, age_seconds)


def _of_resource(resource: Resource) -> YarnView:
    return YarnView(memory_mib=resource.memory_mib, vcores=resource.vcores)


def _batch(resources: BatchResources | None) -> BatchView | None:
    return None if resources is None else batch_view(resources)


def _yarn(resources: YarnResources | None) -> YarnView | None:
    return None if resources is None else YarnView(memory_mib=resources.memory_mib, vcores=resources.vcores)


def _amount(resources: BatchResources | None) -> Amount | None:
    return None if resources is None else (resources.cpu_milli, resources.memory_bytes)

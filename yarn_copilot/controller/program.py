# SPDX-License-Identifier: Apache-2.0
"""Join views, planner and writers into one controller and run its loops.

Everything outside comes in through `Outside`; settings are turned into values by `translation`. The loops end only by
cancellation: an unexpected error in one is logged, counted and the loop starts again.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from batch_resources.giving_way import Overcommit
from batch_resources.planner.plan import Planner, plan_node
from yarn_copilot.config.settings import CpuUnit, Settings
from yarn_copilot.controller.book import NodeBook
from yarn_copilot.controller.cluster_set import ClusterSet
from yarn_copilot.controller.clusters import ClusterLoops, ClusterPort, build_cluster
from yarn_copilot.controller.context import LoopContext
from yarn_copilot.controller.demand.loop import DemandLoop
from yarn_copilot.controller.dirty import DirtyNodes
from yarn_copilot.controller.fresh_reads.reader import FreshReads
from yarn_copilot.controller.gate import WriteGate
from yarn_copilot.controller.intake import KubernetesIntake
from yarn_copilot.controller.node_agents.loop import NodeAgents
from yarn_copilot.controller.notices import NodeNotices
from yarn_copilot.controller.planning.loop import PlanningLoop
from yarn_copilot.controller.ports import Clock, EventSink, Leadership, MakeNodeAgent
from yarn_copilot.controller.pulse import Pulse
from yarn_copilot.controller.replica_notices import ReplicaNotices
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.controller.state.metric_ages import MetricAges, reduce_node_metric
from yarn_copilot.controller.state.nodes import NodeReducer, NodeTable
from yarn_copilot.controller.state.pods import PodLedger, PodReducer
from yarn_copilot.controller.state.selectors import LabelSelector
from yarn_copilot.controller.steps import StepListener, ignore
from yarn_copilot.controller.third_party.reconciler import ClaimReconciler
from yarn_copilot.controller.translation import (
    to_agent_settings,
    to_book_settings,
    to_label_rules,
    to_node_modes,
    to_policy,
)
from yarn_copilot.controller.watches import KubernetesWatches
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.reasons import Reason

logger = logging.getLogger(__name__)

RESTART_WAIT_SECONDS = 1.0
STUCK_SECONDS = 60.0
"""No loop may take so long beyond the deadline of one call without coming round."""
_FRESH_AGE_SHARE = 0.5
"""A report that comes before half of the allowed age is over changes no plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Hold everything that the controller reaches outside of itself.

    Attributes:
        kubernetes: reads and writes the API server.
        clusters: YARN clusters by id.
        make_agent: reaches the program beside a NodeManager; None: nobody is asked.
        leadership: whether this replica may write.
        events: where changes are told.
        clock: both clocks.
        metrics: what is counted.
        decide: the planner.
        on_step: told of each step of a transfer.
    """

    kubernetes: KubeClient
    clusters: Mapping[str, ClusterPort]
    leadership: Leadership
    events: EventSink
    clock: Clock
    metrics: Metrics
    decide: Planner = plan_node
    on_step: StepListener = ignore
    make_agent: MakeNodeAgent | None = None


class Controller:
    """Be one replica of the controller; belongs to one event loop."""

    def __init__(self, settings: Settings, outside: Outside) -> None:
        """Build all parts; nothing is read before `run`."""
        self.settings = settings
        self.outside = outside
        self.started_at = outside.clock.monotonic()
        self.dirty = DirtyNodes(outside.clock)
        self.pulse = Pulse(outside.clock, limit_seconds=STUCK_SECONDS + settings.hadoop.call_timeout_seconds)
        self.notices = NodeNotices(
            outside.events, outside.leadership, outside.clock, outside.metrics, clusters=outside.clusters
        )
        self.replica_notices = ReplicaNotices(outside.events, outside.leadership, outside.metrics)
        self._build_views()
        self._build_loops()

    def _build_views(self) -> None:
        settings, outside = self.settings, self.outside
        managers = settings.node_managers
        intake = KubernetesIntake(self.dirty, outside.clock, self.notices.tell_foreign_writer)
        host_selector = LabelSelector.parse(managers.host_node_selector) if managers.host_node_selector else None
        self.reduce_node = NodeReducer(
            host_selector,
            physical_cpu=settings.capacity.cpu_unit is CpuUnit.PHYSICAL,
            modes=to_node_modes(settings),
            mapped_labels=to_label_rules(settings).keys,
        )
        self.reduce_pod = PodReducer(LabelSelector.parse(managers.pod_selector))
        self.nodes = NodeTable(intake.node_changed)
        self.nodes.on_version, self.nodes.on_gap = intake.version_seen, intake.versions_missed
        self.pods = PodLedger(
            intake.pod_changed,
            count_node_manager_pod=managers.count_node_manager_pod,
            on_managers_changed=intake.managers_changed,
        )
        self.ages = MetricAges(
            outside.clock,
            intake.age_changed,
            fresh_seconds=settings.capacity.origin_max_age_seconds * _FRESH_AGE_SHARE,
        )
        self.watches = KubernetesWatches(
            outside.kubernetes,
            nodes=(self.reduce_node, self.nodes),
            pods=(self.reduce_pod, self.pods),
            metrics=(reduce_node_metric, self.ages),
            clock=outside.clock,
        )
        self.cluster_set = ClusterSet(outside.clusters, settings, outside.clock)
        self.states, self.clusters = self.cluster_set.states, self.cluster_set.loops
        self.book = NodeBook(
            nodes=self.nodes,
            pods=self.pods,
            ages=self.ages,
            clusters=self.states,
            heartbeats=self.cluster_set.heartbeats,
            settings=to_book_settings(settings),
            mark=self.dirty.mark,
            wall=outside.clock.wall,
        )
        intake.join(self.book)
        self.demand = DemandLoop(self.dirty, outside.clock, outside.metrics)
        self.demand.set_boundary(to_policy(settings).boundary)
        self.pods.on_waiting = self.demand.pod_waiting
        self.book.load_on = self.demand.load
        self.ages.on_availability = self._node_metrics_availability

    def _build_loops(self) -> None:
        settings, outside = self.settings, self.outside
        self.gate = WriteGate(
            outside.leadership,
            outside.clock,
            kubernetes_contact=self.watches.contact,
            has_complete_view=self.watches.is_complete,
            max_silence_seconds=settings.capacity.kubernetes_max_silence_seconds,
            observes=settings.capacity.observes,
        )
        context = LoopContext(
            book=self.book,
            nodes=self.nodes,
            reduce_node=self.reduce_node,
            dirty=self.dirty,
            demand=self.demand,
            gate=self.gate,
            clock=outside.clock,
            metrics=outside.metrics,
            pulse=self.pulse,
            decide=outside.decide,
            on_step=outside.on_step,
        )

        def build(state: ClusterState, port: ClusterPort, settings: Settings) -> ClusterLoops:
            loops = build_cluster(
                state,
                port,
                context=context,
                settings=settings,
                notices=self.notices,
                on_reachable=self.replica_notices.tell_reachable,
            )
            loops.capacity.decide_again = lambda wanted: self.planning.decide_again(wanted)
            return loops

        self.cluster_set.join(build)
        self.claims = ClaimReconciler(
            outside.kubernetes, outside.kubernetes, context=context, on_refused=self.replica_notices.tell_claim_refused
        )
        self.fresh_reads = FreshReads(
            outside.kubernetes,
            outside.kubernetes,
            context=context,
            pods=self.pods,
            reduce_pod=self.reduce_pod,
        )
        self.agents = NodeAgents(
            outside.make_agent, context=context, settings=to_agent_settings(settings), on_kill=self.notices.tell_kill
        )
        self.planning = PlanningLoop(
            context,
            pods=self.pods,
            capacities=self.cluster_set.capacities,
            claims=self.claims,
            fresh_reads=self.fresh_reads,
            agents=self.agents,
            notices=self.notices,
            policy=to_policy(settings),
        )
        self.planning.batch_interval_seconds = settings.capacity.batch_interval_seconds

    async def run(self) -> None:
        """Run all loops until cancelled."""
        async with asyncio.TaskGroup() as group:
            self.watches.start(group)
            self.cluster_set.start(functools.partial(self._keep, group))
            self._keep(group, "third_party", self._run_claims)
            self._keep(group, "fresh_reads", self._run_fresh_reads)
            self._keep(group, "demand", self.demand.run)
            self._keep(group, "planning", self._run_planning)
            self._keep(group, "node_agents", self.agents.run)
            self._keep(group, "pulse", self._run_pulse)

    def _keep(self, group: asyncio.TaskGroup, name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        return group.create_task(self._run_for_ever(name, run), name=name)

    async def _run_for_ever(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await run()
            except Exception as problem:
                logger.exception("A loop failed unexpectedly and starts again", extra={"loop": name})
                self.outside.metrics.count_error(name, problem)
                self.dirty.mark_all(list(self.book.memories))
            await self.outside.clock.sleep(RESTART_WAIT_SECONDS)

    async def _run_claims(self) -> None:
        await self.claims.run(parallel=self.settings.kubernetes.parallel_patches)

    async def _run_fresh_reads(self) -> None:
        await self.fresh_reads.run(parallel=self.settings.kubernetes.parallel_patches)

    async def _run_planning(self) -> None:
        await self.planning.run(self._wait_for_complete_view)

    async def _wait_for_complete_view(self) -> None:
        await self.watches.wait_complete()
        while not all(state.has_view or state.error for state in self.states.values()):
            await self.outside.clock.sleep(0.05)

    async def _run_pulse(self) -> None:
        """Notice that writes which were refused are allowed again, and keep the gauges of the outside fresh."""
        while True:
            if self.gate.was_refused and not self.gate.why_not_yarn():
                self.plan_everything()
            self.watches.tell_metrics(self.outside.metrics)
            self._look_at_lag()
            self.outside.metrics.set_ready(self.ready)
            await self.outside.clock.sleep(1.0)

    def _look_at_lag(self) -> None:
        lag = self.book.lag.seconds(now=self.outside.clock.monotonic())
        self.outside.metrics.set_watch_lag(lag)
        self.replica_notices.tell_watch_lag(
            lag,
            settle_seconds=self.book.settings.settle_seconds,
            matters=self.settings.capacity.is_strict_somewhere,
        )

    @property
    def ready(self) -> bool:
        """Tell whether the first complete view exists."""
        return not self.missing()

    def missing(self) -> list[str]:
        """Say what the first complete view still lacks.

        A cluster that does not answer holds back only a replica that has no other: its own nodes are frozen.
        """
        missing = self.watches.missing()
        unread = [id_ for id_, state in sorted(self.states.items()) if not state.has_view]
        if not self.states:
            missing.append("no YARN cluster is configured")
        elif len(unread) == len(self.states) or any(not self.states[id_].error for id_ in unread):
            missing.extend(
                f"the node list of cluster {id_} has not been read yet: {self.states[id_].error or 'no answer so far'}"
                for id_ in unread
            )
        return missing

    def plan_everything(self) -> None:
        """Plan all nodes again, and look for the NodeManagers of each."""
        self.gate.was_refused = False
        now = self.outside.clock.monotonic()
        for name in set(self.book.memories) | set(self.pods.nodes_with_managers()):
            self.book.residents.identify(name, now=now)
            self.dirty.mark(name)

    def leadership_changed(self, is_leader: bool, term: int) -> None:
        """Start a term: forget what only the last one knew, and plan everything."""
        self.outside.metrics.set_leader(is_leader, term)
        self.book.reports.office_since = self.outside.clock.monotonic() if is_leader else None
        self.book.term_name = f"{secrets.token_hex(6)}-{term}"
        for memory in self.book.memories.values():
            memory.claim.written_version = 0
            memory.claim.possible = ()
            memory.claim.foreign_since = None
            memory.over_since = None
            for manager in memory.managers.values():
                manager.distrust_use()
                manager.overcommit = Overcommit()
        if is_leader:
            self.notices.forget_all()
            self.plan_everything()
        self.replica_notices.tell_leadership(is_leader, term)

    def observe(self) -> None:
        """Decide as a leader would, for a process that never writes."""
        self.book.reports.office_since = self.outside.clock.monotonic()
        self.book.term_name = f"{secrets.token_hex(6)}-0"
        self.plan_everything()
        logger.info("This replica observes: it computes and shows everything and writes nothing")

    def apply(self, settings: Settings) -> None:
        """Take over the reloadable part of new settings; the caller has kept the fixed part."""
        self.settings = settings
        self.planning.policy = to_policy(settings)
        self.demand.set_boundary(self.planning.policy.boundary)
        self.planning.batch_interval_seconds = settings.capacity.batch_interval_seconds
        self.book.apply(to_book_settings(settings))
        self.agents.settings = to_agent_settings(settings)
        self.gate.max_silence_seconds = settings.capacity.kubernetes_max_silence_seconds
        self.ages.set_fresh_seconds(settings.capacity.origin_max_age_seconds * _FRESH_AGE_SHARE)
        self.cluster_set.apply(settings)
        self.pods.set_count_node_manager_pod(settings.node_managers.count_node_manager_pod)
        self.plan_everything()

    async def set_cluster(self, id_: str, port: ClusterPort) -> None:
        """Add a YARN cluster, or lead to one in another way, while the others go on."""
        await self.cluster_set.put(id_, port)
        self._clusters_changed()

    async def remove_cluster(self, id_: str) -> None:
        """Stop reading and writing a YARN cluster; what its NodeManagers used stays claimed."""
        await self.cluster_set.remove(id_)
        self.outside.metrics.forget_cluster(id_)
        self._clusters_changed()

    def _clusters_changed(self) -> None:
        self.notices.set_clusters(self.states)
        self.plan_everything()

    def _node_metrics_availability(self, reason: str) -> None:
        """Take that NodeMetrics can be read, or why not."""
        self.notices.quiet = frozenset({Reason.NODE_METRIC_UNAVAILABLE}) if reason else frozenset()
        if reason and self.settings.capacity.require_node_metric:
            self.replica_notices.tell_node_metrics_unavailable(reason)
        self.dirty.mark_all(list(self.book.memories))

    def stuck(self) -> list[str]:
        """Say which loops have stopped turning; empty for a healthy process."""
        if not self.watches.is_complete():
            return []  # nothing is planned yet, and /readyz says what is missing
        return self.pulse.stuck([loops.poller.name for loops in self.clusters.values()], self.dirty)

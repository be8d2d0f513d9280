# SPDX-License-Identifier: Apache-2.0
"""Join what Kubernetes and the ResourceManagers said into one observation per node.

The book and its register of residents are the only places that change the memory of a node. One event loop; no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from batch_resources.dips import doubted_until, observe_dip
from batch_resources.giving_way import observe_excess
from batch_resources.growth import observe_origin
from batch_resources.ledger import Demand, ManagerObservation, NodeObservation
from batch_resources.planner.claim import manager_claim
from batch_resources.planner.giving_way import exceeds_origin
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH, BatchResources
from yarn_copilot.controller.departure import Departures
from yarn_copilot.controller.manager_reports import BookSettings, ManagerReports
from yarn_copilot.controller.memory import NodeMemory
from yarn_copilot.controller.residents import Residents
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.controller.state.metric_ages import MetricAges
from yarn_copilot.controller.state.nodes import NodeFacts, NodeTable
from yarn_copilot.controller.state.pods import PodLedger
from yarn_copilot.controller.watch_lag import WatchLag


class NodeBook:
    """Hold the memory of all nodes and make observations of it."""

    def __init__(
        self,
        *,
        nodes: NodeTable,
        pods: PodLedger,
        ages: MetricAges,
        clusters: Mapping[str, ClusterState],
        heartbeats: Mapping[str, float],
        settings: BookSettings,
        mark: Callable[[str], None],
        wall: Callable[[], float],
    ) -> None:
        """Take the views it joins.

        Args:
            nodes: facts of all Nodes.
            pods: sums and NodeManager pods.
            ages: ages of Koordinator's reports.
            clusters: what each ResourceManager said.
            heartbeats: each cluster's NodeManager heartbeat interval in seconds.
            settings: times and weights.
            mark: called with the name of a node that a change of another one concerns.
            wall: seconds since 1970, by which an operator's orders end.
        """
        self._wall = wall
        self._nodes = nodes
        self._pods = pods
        self._ages = ages
        self._heartbeats = heartbeats
        self._departures = Departures()
        self.lag = WatchLag(window_seconds=settings.settle_seconds)
        self.reports = ManagerReports(clusters, heartbeats, settings)
        self.residents = Residents(
            nodes=nodes, pods=pods, clusters=clusters, reports=self.reports, departures=self._departures, mark=mark
        )
        self.term_name = ""
        """Names this term of office in the counters of our writes; unlike every other term of any replica."""
        self.load_on: Callable[[str], BatchResources] = lambda name: ZERO_BATCH
        """Gives what the waiting pods need that are to be served on a node."""

    @property
    def settings(self) -> BookSettings:
        """Give the times and weights; a reload replaces them."""
        return self.reports.settings

    def apply(self, settings: BookSettings) -> None:
        """Take over new times and weights."""
        self.reports.settings = settings
        self.lag.window_seconds = settings.settle_seconds

    def memory(self, name: str) -> NodeMemory | None:
        """Give a node's memory; None for a node that never had anything to do with YARN."""
        return self.residents.memories.get(name)

    @property
    def memories(self) -> Mapping[str, NodeMemory]:
        """Give the memory of every node, by name."""
        return self.residents.memories

    def heartbeat_seconds(self, cluster: str) -> float:
        """Give the heartbeat interval of a cluster's NodeManagers."""
        return self._heartbeats[cluster]

    def observe(self, memory: NodeMemory, policy: Policy, *, now: float) -> NodeObservation | None:
        """Make the observation that the planner gets; None when the Node is gone."""
        facts = self._nodes.get(memory.name)
        if facts is None:
            return None
        gone = self._departures.settle(
            memory, self.reports.of, self.reports.reachable_since, self.settings.lost_hold_seconds, now=now
        )
        for key in gone:
            self.residents.let_go(key, memory.name)
        memory.dip = observe_dip(memory.dip, facts.origin, now=now)
        doubted = doubted_until(memory.dip, policy.dips)
        # An origin that is not believed yet must not bound growth afterwards.
        if facts.origin.resources is not None and (doubted is None or doubted <= now):
            memory.window = observe_origin(
                memory.window, facts.origin.resources, now=now, length_seconds=policy.growth_window_seconds
            )
        orders = facts.orders.at(self._wall())
        drains = orders.drain is not None or (self.settings.drains_cordoned and facts.is_cordoned)
        managers = tuple([self.reports.observe(manager, drains=drains) for manager in memory.managers.values()])
        self._note_unread(memory, managers, facts, policy)
        lingering, lingering_is_known = memory.lingering(now=now, hold_seconds=self.settings.lost_hold_seconds)
        observation = NodeObservation(
            lingering=lingering,
            lingering_is_known=lingering_is_known,
            node=memory.name,
            origin=facts.origin,
            origin_age_seconds=self._ages.age_seconds(memory.name, now),
            requested=self._pods.requested(memory.name),
            others=facts.others,
            claimed=facts.claimed,
            claim_is_foreign=self._is_foreign(memory, now),
            normalization_ratio=facts.normalization_ratio,
            managers=managers,
            window=memory.window,
            unread_claim=memory.unread_claim,
            release_is_proven=memory.release_proven,
            permissions=memory.permissions.permissions(
                facts, self.term_name, watch_lag_seconds=self.lag.seconds(now=now)
            ),
            orders=orders,
            is_abandoned=self._is_abandoned(memory, now),
            demand=Demand(
                kubernetes=self.load_on(memory.name), yarn_waits=self.reports.yarn_waits(memory.managers.values())
            ),
            dip=memory.dip,
            standing=memory.standing,
        )
        memory.over_since = observe_excess(memory.over_since, exceeds_origin(observation, policy, now=now), now=now)
        return observation if memory.over_since is None else replace(observation, over_since=memory.over_since)

    def _is_abandoned(self, memory: NodeMemory, now: float) -> bool:
        """Tell whether the node has been without a NodeManager for longer than a restart, or a loss, may take."""
        moment = self._abandoned_at(memory)
        return moment is not None and now >= moment

    def _abandoned_at(self, memory: NodeMemory) -> float | None:
        if memory.managers or memory.empty_since is None:
            return None
        return memory.empty_since + self.settings.lost_hold_seconds

    def order_moment(self, memory: NodeMemory, *, now: float) -> float | None:
        """Give the moment at which time alone changes what an operator's orders mean; None without one."""
        facts = self._nodes.get(memory.name)
        if facts is None:
            return None
        wall = self._wall()
        end = facts.orders.next_moment(wall)
        moments = [] if end is None else [now + end - wall]
        forgotten_at = self._abandoned_at(memory) if facts.orders.releases else None
        if forgotten_at is not None and forgotten_at > now:
            moments.append(forgotten_at)
        return min(moments, default=None)

    def names_with_other_demand(self, cluster: str) -> list[str]:
        """Name the nodes of a cluster whose newest plan took another answer to the question whether YARN waits."""
        names = {name for name, _ in self.residents.managers_of_cluster(cluster)}
        return sorted(name for name in names if self._has_other_demand(self.memories[name]))

    def _has_other_demand(self, memory: NodeMemory) -> bool:
        plan = memory.plan
        if plan is None or plan.demand is None:
            return False
        return plan.demand.yarn_waits is not self.reports.yarn_waits(memory.managers.values())

    @staticmethod
    def _note_unread(
        memory: NodeMemory, managers: tuple[ManagerObservation, ...], facts: NodeFacts, policy: Policy
    ) -> None:
        """Find out once which part of the claim found belongs to NodeManagers whose cluster was never read."""
        read = [manager for manager in managers if manager.used is not None]
        if len(read) == len(managers):
            memory.unread_claim = None
        elif read and memory.unread_claim is None and facts.claimed is not None:
            rest = facts.claimed
            for manager in read:
                rest = rest - manager_claim(manager, policy, facts.normalization_ratio)
            memory.unread_claim = rest.floored()

    def note_version(self, facts: NodeFacts, *, now: float) -> bool:
        """Take a version of a Node that the watch delivered; tell whether a fresh read waited for it."""
        self.lag.note_delivered(facts.version, now=now)
        memory = self.memories.get(facts.name)
        return memory is not None and memory.uid == facts.uid and memory.permissions.note_version(facts, now=now)

    def note_gap(self, *, now: float) -> None:
        """Note that versions of Nodes may have been missed."""
        self.lag.note_gap()
        for memory in self.memories.values():
            memory.permissions.note_gap(now=now)

    def _is_foreign(self, memory: NodeMemory, now: float) -> bool:
        since = memory.claim.foreign_since
        if since is not None and memory.managers and now - since >= self.settings.foreign_hold_seconds:
            memory.claim.foreign_since = None
            memory.claim.written_version = 0
            return False
        return since is not None

    def note_node_change(self, before: NodeFacts | None, after: NodeFacts | None, *, now: float) -> bool:
        """Look for a foreign change of our entry in a new version of a Node.

        Returns:
            Whether somebody else changed our entry just now.
        """
        if after is None:
            return False
        memory = self.memories.get(after.name)
        if memory is None:
            return False
        if before is not None and before.origin != after.origin:
            memory.origin_changed_at = now
        claim = memory.claim
        if after.third_party_error:
            return False  # what became of our entry cannot be read
        if after.version <= claim.written_version or (before is not None and before.claimed == after.claimed):
            return False
        if claim.is_ours(after.claimed, after.version) or not claim.written_version:
            return False
        claim.foreign_since = now
        return True

    def next_moment(self, memory: NodeMemory) -> float | None:
        """Give the moment at which a waiting time of the book ends; None when nothing waits."""
        departure = self._departures.next_moment(
            memory, self.reports.of, self.reports.reachable_since, self.settings.lost_hold_seconds
        )
        if memory.claim.foreign_since is None:
            return departure
        quiet = memory.claim.foreign_since + self.settings.foreign_hold_seconds
        return quiet if departure is None else min(departure, quiet)

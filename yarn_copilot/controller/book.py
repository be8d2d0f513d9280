# SPDX-License-Identifier: Apache-2.0
"""Join what Kubernetes and the ResourceManagers said into one observation per node.

The book owns the memory of every node that carries a NodeManager, did so, or carries our entry. It is the only
place that changes that memory. One event loop; no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from batch_resources.dips import doubted_until, observe_dip
from batch_resources.giving_way import observe_excess
from batch_resources.growth import observe_origin
from batch_resources.ledger import Demand, ManagerKey, ManagerObservation, NodeObservation
from batch_resources.planner.claim import manager_claim
from batch_resources.planner.giving_way import exceeds_origin
from batch_resources.planner.policy import Mode, Policy, strictest
from batch_resources.resources import ZERO_BATCH, BatchResources
from yarn_copilot.controller.departure import Departures
from yarn_copilot.controller.identity.matching import Candidate, candidates, match
from yarn_copilot.controller.manager_reports import BookSettings, ManagerReports
from yarn_copilot.controller.memory import ManagerMemory, NodeMemory
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.controller.state.metric_ages import MetricAges
from yarn_copilot.controller.state.nodes import NodeFacts, NodeTable
from yarn_copilot.controller.state.pods import PodLedger
from yarn_copilot.controller.watch_lag import WatchLag
from yarn_copilot.hadoop.model import NodeId


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
        self._mark = mark
        self._nodes = nodes
        self._pods = pods
        self._ages = ages
        self._clusters = clusters
        self._heartbeats = heartbeats
        self._departures = Departures()
        self.lag = WatchLag(window_seconds=settings.settle_seconds)
        self.reports = ManagerReports(clusters, heartbeats, settings)
        self.term_name = ""
        """Names this term of office in the counters of our writes; unlike every other term of any replica."""
        self.load_on: Callable[[str], BatchResources] = lambda name: ZERO_BATCH
        """Gives what the waiting pods need that are to be served on a node."""
        self.memories: dict[str, NodeMemory] = {}
        # Nodes, by name and uid, from which an entry was removed that belonged to no NodeManager.
        self._cleared: dict[str, str] = {}
        self.holders: dict[ManagerKey, str] = {}
        # The same by cluster, with the memory at hand: every read of a node list walks over it.
        self._held: dict[str, dict[ManagerKey, tuple[str, ManagerMemory]]] = {}

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
        return self.memories.get(name)

    def managers_of_cluster(self, cluster: str) -> Iterator[tuple[str, ManagerMemory]]:
        """Give every NodeManager of a cluster with the name of its node."""
        yield from self._held.get(cluster, {}).values()

    def names_of_cluster(self, cluster: str) -> list[str]:
        """Name the nodes that a change of a cluster's membership may concern."""
        names = {name for name in self.memories if self._concerns(self.memories[name], cluster)}
        for name in self._pods.nodes_with_managers():
            if name not in self.memories:
                names.add(name)
        names.update(facts.name for facts in self._nodes.all() if facts.host_daemon)
        return sorted(names)

    def _concerns(self, memory: NodeMemory, cluster: str) -> bool:
        return not memory.managers or any(key.cluster == cluster for key in memory.managers)

    def identify_again(self, name: str, *, now: float) -> bool:
        """Match the NodeManagers of a node anew and tell whether that changed anything."""
        before = self._identities(name)
        self.identify(name, now=now)
        return before != self._identities(name)

    def _identities(self, name: str) -> list[tuple[ManagerKey, NodeId | None, Candidate | None]] | None:
        memory = self.memories.get(name)
        if memory is None:
            return None
        return [(key, manager.node_id, manager.candidate) for key, manager in memory.managers.items()]

    def identify(self, name: str, *, now: float) -> NodeMemory | None:
        """Match the NodeManagers of a node anew.

        Returns:
            The node's memory, or None when it has nothing to do with YARN.
        """
        facts = self._nodes.get(name)
        memory = self.memories.get(name)
        if facts is None:
            self._cleared.pop(name, None)
            if memory is not None:
                self._forget(memory)
            return None
        if memory is not None and memory.uid != facts.uid:
            self._forget(memory)
            memory = None
        found = candidates(self._pods.managers(name), facts)
        if not found and facts.claimed is None and not facts.third_party_error and not facts.orders.releases:
            if memory is None:
                return None
            if not memory.managers:
                self._clear(memory)
                return None
        if found:
            self._cleared.pop(name, None)
        if memory is None:
            memory = self._begin(facts, now=now)
        self._assign(memory, found, now=now)
        self._set_mode(memory, facts, now=now)
        return memory

    def _set_mode(self, memory: NodeMemory, facts: NodeFacts, *, now: float) -> None:
        """Find out how the node is planned: by its labels, else by the strictest mode of its clusters."""
        asked = (self.settings.cluster_modes.get(key.cluster, self.settings.default_mode) for key in memory.managers)
        memory.mode = facts.mode or strictest(asked) or self.settings.default_mode
        for manager in memory.managers.values():
            manager.set_strict(memory.mode is Mode.STRICT, now=now)

    def _begin(self, facts: NodeFacts, *, now: float) -> NodeMemory:
        memory = self.memories[facts.name] = NodeMemory(name=facts.name, uid=facts.uid)
        memory.permissions.note_version(facts, now=now)
        if self._cleared.get(facts.name) == facts.uid:
            memory.claim.foreign_since = now  # we removed that entry, and somebody put it back
        return memory

    def _clear(self, memory: NodeMemory) -> None:
        """Forget a node on which nothing of ours is left, and remember if that was our doing."""
        if memory.claim.written_version or memory.claim.possible:
            self._cleared[memory.name] = memory.uid
        self._forget(memory)

    def heartbeat_seconds(self, cluster: str) -> float:
        """Give the heartbeat interval of a cluster's NodeManagers."""
        return self._heartbeats[cluster]

    def cluster_of(self, candidate: Candidate) -> str:
        """Give the id of a candidate's cluster; it may be one that is not configured."""
        if candidate.cluster:
            return candidate.cluster
        if self.settings.default_cluster:
            return self.settings.default_cluster
        return next(iter(self._clusters)) if len(self._clusters) == 1 else "default"

    def _assign(self, memory: NodeMemory, found: Iterable[Candidate], *, now: float) -> None:
        wanted: dict[ManagerKey, ManagerMemory] = {}
        for candidate in found:
            cluster = self.cluster_of(candidate)
            state = self._clusters.get(cluster)
            node_id = None if state is None else match(candidate, state.index, state.reports)
            if node_id is None:
                node_id = self._last_known(memory, cluster, candidate)
            if node_id is None and not candidate.is_pod and candidate.override is None:
                continue  # a host without a NodeManager is not ours, whatever its labels say
            key = ManagerKey(cluster=cluster, node_id=str(node_id) if node_id else candidate.override or "")
            holder = self.holders.get(key)
            if node_id is not None and holder not in (None, memory.name) and not self._moved_here(key, candidate):
                key, node_id = ManagerKey(cluster=cluster, node_id=""), None
            known = memory.managers.get(key)
            if known is None:
                known = self._new_manager(key, node_id, candidate, now=now)
            known.candidate, known.node_id = candidate, node_id
            known.agent.note_presence(candidate.agent is not None, now=now)
            wanted[key] = known
        for key, known in memory.managers.items():
            if key not in wanted and known.node_id is not None:
                known.candidate = None
                wanted[key] = known
        memory.managers = wanted
        for key, known in wanted.items():
            if known.node_id is not None and (known.candidate is not None or key not in self.holders):
                self._hold(known, memory.name, now=now)
        self._departures.note_presence(memory, now=now)

    def _new_manager(
        self, key: ManagerKey, node_id: NodeId | None, candidate: Candidate, *, now: float
    ) -> ManagerMemory:
        """Begin the memory of a NodeManager with what the cluster's newest read says of it."""
        manager = ManagerMemory(key=key, node_id=node_id, candidate=candidate)
        state = self._clusters.get(key.cluster)
        if state is not None:
            manager.incarnation = state.incarnation
            if node_id is None:
                manager.not_running_since = now
            elif state.reachable:
                self.reports.take(manager, state, now=now)
        return manager

    def _hold(self, manager: ManagerMemory, name: str, *, now: float) -> None:
        """Note who holds a node id; a former holder only waits for what ran there to be over."""
        key = manager.key
        former = self.memories.get(self.holders.get(key, name))
        self.holders[key] = name
        self._held.setdefault(key.cluster, {})[key] = (name, manager)
        if former is None or former.name == name:
            return
        left = former.managers.get(key)
        if left is not None:
            left.candidate = None
            left.sends = ()
            if left.not_running_since is None:
                left.not_running_since = now
        self._mark(former.name)

    @staticmethod
    def _last_known(memory: NodeMemory, cluster: str, candidate: Candidate) -> NodeId | None:
        """Keep the id that a NodeManager had while the RM's list (right after its restart, say) lacks it."""
        for key, known in memory.managers.items():
            if key.cluster == cluster and known.candidate is not None and known.candidate.source == candidate.source:
                return known.node_id
        return None

    def _moved_here(self, key: ManagerKey, candidate: Candidate) -> bool:
        """Tell whether a node id that another node holds has come here: its old pod is gone, or it is named here."""
        other = self.memories.get(self.holders[key])
        known = None if other is None else other.managers.get(key)
        if known is None or known.candidate is None:
            return True
        return candidate.override is not None and known.candidate.override is None

    def _forget(self, memory: NodeMemory) -> None:
        for key in memory.managers:
            self._let_go(key, memory.name)
        del self.memories[memory.name]

    def _let_go(self, key: ManagerKey, name: str) -> None:
        if self.holders.get(key) == name:
            del self.holders[key]
            del self._held[key.cluster][key]

    def observe(self, memory: NodeMemory, policy: Policy, *, now: float) -> NodeObservation | None:
        """Make the observation that the planner gets; None when the Node is gone."""
        facts = self._nodes.get(memory.name)
        if facts is None:
            return None
        gone = self._departures.settle(
            memory, self.reports.of, self.reports.reachable_since, self.settings.lost_hold_seconds, now=now
        )
        for key in gone:
            self._let_go(key, memory.name)
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
        names = {name for name, _ in self.managers_of_cluster(cluster)}
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

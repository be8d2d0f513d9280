# SPDX-License-Identifier: Apache-2.0
"""Know which NodeManagers are on which node: identify them again when something changes, and follow one that moves.

The register holds the memory of every node that carries a NodeManager, did so, or carries our entry. A node id has one
holder at a time. One event loop; no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from batch_resources.ledger import ManagerKey
from batch_resources.planner.policy import Mode, strictest
from yarn_copilot.controller.departure import Departures
from yarn_copilot.controller.identity.matching import Candidate, candidates, match
from yarn_copilot.controller.manager_reports import BookSettings, ManagerReports
from yarn_copilot.controller.memory import ManagerMemory, NodeMemory
from yarn_copilot.controller.state.cluster import ClusterState
from yarn_copilot.controller.state.nodes import NodeFacts, NodeTable
from yarn_copilot.controller.state.pods import PodLedger
from yarn_copilot.hadoop.model import NodeId


class Residents:
    """Be the register of nodes and of the NodeManagers on them."""

    def __init__(
        self,
        *,
        nodes: NodeTable,
        pods: PodLedger,
        clusters: Mapping[str, ClusterState],
        reports: ManagerReports,
        departures: Departures,
        mark: Callable[[str], None],
    ) -> None:
        """Take what tells of NodeManagers.

        Args:
            nodes: facts of all Nodes.
            pods: NodeManager pods.
            clusters: what each ResourceManager said.
            reports: what reads prove; holds the settings.
            departures: told whether a node carries a NodeManager.
            mark: called with the name of a node that a change of another one concerns.
        """
        self._nodes = nodes
        self._pods = pods
        self._clusters = clusters
        self._reports = reports
        self._departures = departures
        self._mark = mark
        self.memories: dict[str, NodeMemory] = {}
        # Nodes, by name and uid, from which an entry was removed that belonged to no NodeManager.
        self._cleared: dict[str, str] = {}
        self.holders: dict[ManagerKey, str] = {}
        # The same by cluster, with the memory at hand: every read of a node list walks over it.
        self._held: dict[str, dict[ManagerKey, tuple[str, ManagerMemory]]] = {}

    @property
    def _settings(self) -> BookSettings:
        return self._reports.settings

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
        asked = (self._settings.cluster_modes.get(key.cluster, self._settings.default_mode) for key in memory.managers)
        memory.mode = facts.mode or strictest(asked) or self._settings.default_mode
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

    def cluster_of(self, candidate: Candidate) -> str:
        """Give the id of a candidate's cluster; it may be one that is not configured."""
        if candidate.cluster:
            return candidate.cluster
        if self._settings.default_cluster:
            return self._settings.default_cluster
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
                self._reports.take(manager, state, now=now)
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
            self.let_go(key, memory.name)
        del self.memories[memory.name]

    def let_go(self, key: ManagerKey, name: str) -> None:
        """Note that a node no longer holds a node id; nothing happens where another one holds it."""
        if self.holders.get(key) == name:
            del self.holders[key]
            del self._held[key.cluster][key]

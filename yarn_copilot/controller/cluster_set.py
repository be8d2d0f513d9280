# SPDX-License-Identifier: Apache-2.0
"""Hold the clusters of one controller: what is known of each, its loops, and their comings and goings.

The mappings are shared with the views and the planner and change in place. Loops begin and end in the controller's own
task group; a cluster that comes, changes or goes touches no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from yarn_copilot.config.settings import Settings
from yarn_copilot.controller.clusters import ClusterLoops, ClusterPort
from yarn_copilot.controller.node_capacity.reconciler import CapacityReconciler
from yarn_copilot.controller.ports import Clock
from yarn_copilot.controller.state.cluster import ClusterState

Keeper = Callable[[str, Callable[[], Awaitable[None]]], asyncio.Task[None]]


class ClusterSet:
    """Own states and loops by cluster id; belongs to one event loop.

    Attributes:
        ports: what leads to each cluster.
        states: what each ResourceManager last said.
        heartbeats: NodeManager heartbeat intervals, seconds.
        loops: the loops of each cluster.
        capacities: the capacity writers among them.
    """

    def __init__(self, ports: Mapping[str, ClusterPort], settings: Settings, clock: Clock) -> None:
        """Begin with the clusters of the start; `join` adds their loops."""
        self._settings = settings
        self._clock = clock
        self._build: Callable[[ClusterState, ClusterPort, Settings], ClusterLoops] | None = None
        self._keep: Keeper | None = None
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self.ports: dict[str, ClusterPort] = dict(ports)
        self.states: dict[str, ClusterState] = {id_: ClusterState(id_, port.addresses) for id_, port in ports.items()}
        self.heartbeats: dict[str, float] = {id_: self._heartbeat(port) for id_, port in ports.items()}
        self.loops: dict[str, ClusterLoops] = {}
        self.capacities: dict[str, CapacityReconciler] = {}

    def join(self, build: Callable[[ClusterState, ClusterPort, Settings], ClusterLoops]) -> None:
        """Build the loops of all clusters, and those of later ones in the same way."""
        self._build = build
        for id_ in self.ports:
            self._make_loops(id_)

    def start(self, keep: Keeper) -> None:
        """Run all loops; `keep` runs one for ever under a name."""
        self._keep = keep
        for id_ in self.loops:
            self._start_loops(id_)

    def apply(self, settings: Settings) -> None:
        """Take over reloadable settings."""
        self._settings = settings
        for id_, port in self.ports.items():
            self.heartbeats[id_] = self._heartbeat(port)
            self.loops[id_].apply(settings)

    async def put(self, id_: str, port: ClusterPort) -> None:
        """Add a cluster, or lead to it in another way from now on.

        Of a cluster that stays, what is known is kept and counts as old: the ResourceManager that answers next may be
        another one. An update that was in flight counts as lost.
        """
        await self._end_loops(id_)
        self.ports[id_] = port
        state = self.states.get(id_)
        if state is None:
            self.states[id_] = ClusterState(id_, port.addresses)
        else:
            state.addresses = port.addresses
            state.fail("its configuration has changed and it has not been read since", now=self._clock.monotonic())
        self.heartbeats[id_] = self._heartbeat(port)
        self._make_loops(id_)
        self._start_loops(id_)

    async def remove(self, id_: str) -> None:
        """Forget a cluster; one that is not known is no error."""
        await self._end_loops(id_)
        self.ports.pop(id_, None)
        self.states.pop(id_, None)
        self.heartbeats.pop(id_, None)
        self.loops.pop(id_, None)
        self.capacities.pop(id_, None)

    def _heartbeat(self, port: ClusterPort) -> float:
        return self._settings.yarn.heartbeat_interval_seconds or port.heartbeat_seconds

    def _make_loops(self, id_: str) -> None:
        if self._build is not None:
            self.loops[id_] = self._build(self.states[id_], self.ports[id_], self._settings)
            self.capacities[id_] = self.loops[id_].capacity

    def _start_loops(self, id_: str) -> None:
        if self._keep is not None:
            loops = self.loops[id_]
            self._tasks[id_] = [
                self._keep("cluster_view", loops.poller.run),
                self._keep("node_capacity", loops.capacity.run),
                self._keep("queues", loops.queues.run),
                self._keep("node_labels", loops.node_labels.run),
            ]

    async def _end_loops(self, id_: str) -> None:
        tasks = self._tasks.pop(id_, [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

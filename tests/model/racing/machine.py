# SPDX-License-Identifier: Apache-2.0
"""Let hypothesis choose what both sides do, and what is late or lost meanwhile.

What is late is drawn once for a whole run, so that transfers come to their end under it; what happens is drawn step by
step, each with the time until the next. Both schedulers hand out whatever they may from the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from batch_resources.resources import BatchResources
from tests.model.racing.kubernetes import BIND_SECONDS, PatchFate
from tests.model.racing.world import CLUSTERS, NODES, ORIGIN, RacingWorld
from tests.model.racing.yarn import Fate
from tests.unit.controller.world import GIB
from yarn_copilot.hadoop.model import Resource

nodes = st.sampled_from(NODES)
clusters = st.sampled_from(CLUSTERS)
waits = st.sampled_from((0.25, 0.5, 1.0, 2.0, 4.0, 11.0, 14.0, 18.0))
tenths = st.sampled_from((0, 3, 5, 8, 10))
sizes = st.sampled_from((1, 2, 4))
patch_fates = st.builds(
    PatchFate,
    landing_seconds=st.sampled_from((0.0, 0.0, 1.0, 6.0)),
    is_lost=st.sampled_from((False, False, False, True)),
    answer_is_lost=st.sampled_from((False, False, True)),
)
fates = st.builds(
    Fate,
    landing_seconds=st.sampled_from((0.0, 0.0, 1.0, 3.0)),
    allocation_seconds=st.sampled_from((0.0, 0.0, 1.0, 2.0)),
    copy_seconds=st.sampled_from((None, None, 2.0, 4.0)),
    is_lost=st.sampled_from((False, False, False, True)),
    answer_is_lost=st.sampled_from((False, False, True)),
)
old_reads = st.sampled_from((0.0, 0.0, 0.5, 2.0))
zeros = st.sampled_from((0.0, 0.5, 3.0))


class Racing(RuleBasedStateMachine):
    """Race one controller; any rule may raise `SoldTwiceError`."""

    def __init__(self) -> None:
        """Begin with a loop of its own."""
        super().__init__()
        self.runner = asyncio.Runner()
        self.world: RacingWorld

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something on the machine's loop."""
        self.runner.run(work)

    async def _begin(self) -> None:
        self.world = RacingWorld()
        await self.world.start(1.0)

    @initialize(cores=sizes, vcores=sizes, bind_seconds=st.sampled_from((0.25, 2.0, BIND_SECONDS)), seconds=waits)
    def begin(self, cores: int, vcores: int, bind_seconds: float, seconds: float) -> None:
        """Start with work waiting on both sides."""
        self.run(self._begin())
        self.world.waiting_pods = BatchResources(cpu_milli=cores * 500, memory_bytes=cores * GIB)
        self.world.bind_seconds = bind_seconds
        self.world.waiting_containers = Resource(vcores * 1024, vcores)
        self._pass(seconds)

    def teardown(self) -> None:
        """End the controller and the loop."""
        if hasattr(self, "world"):
            sent = sum(len(manager.batches) for manager in self.world.late.values())
            note(f"{self.world.judge.states} states judged, {sent} updates, {len(self.world.kube.patches)} patches")
            self.run(self.world.stop())
        self.runner.close()

    def _pass(self, seconds: float) -> None:
        self.run(self.world.advance(seconds))

    # Kubernetes

    @rule(node=nodes, cpu=tenths, memory=tenths, seconds=waits)
    def origin_changes(self, node: str, cpu: int, memory: int, seconds: float) -> None:
        """Publish another origin."""
        origin = BatchResources(cpu_milli=ORIGIN.cpu_milli * cpu // 10, memory_bytes=ORIGIN.memory_bytes * memory // 10)
        self.world.kube.publish_origin(node, origin)
        self._pass(seconds)

    @rule(node=nodes, unknown=st.booleans(), seconds=waits)
    def origin_goes_or_comes_back(self, node: str, *, unknown: bool, seconds: float) -> None:
        """Degrade the Node, or publish all of it."""
        self.world.kube.publish_origin(node, None if unknown else ORIGIN)
        self._pass(seconds)

    @rule(node=nodes, count=st.integers(1, 30), wait=st.booleans(), seconds=waits)
    def pods_end(self, node: str, count: int, *, wait: bool, seconds: float) -> None:
        """End the oldest pods; others wait to take their place, or none does for a while."""
        for _ in range(count):
            self.world.kube.finish(node)
        waiting, self.world.waiting_pods = self.world.waiting_pods, self.world.waiting_pods if wait else None
        self._pass(seconds)
        self.world.waiting_pods = waiting

    @rule(fate=patch_fates, seconds=waits)
    def patches_become_late(self, fate: PatchFate, seconds: float) -> None:
        """Change what becomes of patches, for a while."""
        self.world.kube.fate = fate
        self._pass(seconds)
        self.world.kube.fate = PatchFate()

    @rule(stops=st.booleans(), loses=st.booleans(), seconds=waits)
    def the_watch_falls_behind(self, *, stops: bool, loses: bool, seconds: float) -> None:
        """Hold versions back, deliver or lose them; koord-manager stops meanwhile, or not."""
        self.world.kube.silent, self.world.kube.koord_manager_stops = True, stops
        self._pass(seconds)
        if loses:
            self.world.kube.lose_versions()
        else:
            self.world.kube.release_held()
        self._pass(0.25)
        self.world.kube.koord_manager_stops = False

    # YARN

    @rule(cluster=clusters, vcores=st.integers(1, 20), wait=st.booleans(), seconds=waits)
    def containers_end(self, cluster: str, vcores: int, *, wait: bool, seconds: float) -> None:
        """End some on every node; others wait to take their place, or none does for a while."""
        manager = self.world.late[cluster]
        for node_id in manager.managers:
            manager.end_container(node_id, Resource(vcores * 1024, vcores))
        waiting = self.world.waiting_containers
        self.world.waiting_containers = waiting if wait else None
        self._pass(seconds)
        self.world.waiting_containers = waiting

    @rule(cluster=clusters, fate=fates, reads=old_reads, zero=zeros, stops=st.booleans(), seconds=waits)
    def yarn_becomes_late(
        self, cluster: str, fate: Fate, reads: float, zero: float, *, stops: bool, seconds: float
    ) -> None:
        """Change what becomes of updates and reads; heartbeats stop for a while, or not."""
        manager = self.world.late[cluster]
        manager.fate, manager.read_seconds, manager.zero_seconds, manager.heartbeats_stop = fate, reads, zero, stops
        self._pass(seconds)
        manager.heartbeats_stop = False
        if fate.is_lost or fate.answer_is_lost:
            manager.fate = Fate()

    @rule(cluster=clusters, fails_over=st.booleans(), seconds=waits)
    def answers_to_heartbeats_are_lost(self, cluster: str, *, fails_over: bool, seconds: float) -> None:
        """Take reports and lose the answers for a while; another ResourceManager takes over at its end, or not."""
        manager = self.world.late[cluster]
        manager.answers_are_lost = True
        self._pass(seconds)
        manager.answers_are_lost = False
        if fails_over:
            manager.fail_over()
            self._pass(0.25)

    @rule(cluster=clusters, seconds=waits)
    def another_resource_manager_takes_over(self, cluster: str, seconds: float) -> None:
        """Fail over."""
        self.world.late[cluster].fail_over()
        self._pass(seconds)

    @rule(cluster=clusters, keeps=st.booleans(), seconds=waits)
    def node_managers_restart(self, cluster: str, *, keeps: bool, seconds: float) -> None:
        """Restart a cluster's NodeManagers."""
        manager = self.world.late[cluster]
        for node_id in manager.managers:
            manager.restart_manager(node_id, keeps_containers=keeps)
        self._pass(seconds)

    # the bridge

    @rule(seconds=waits)
    def the_controller_crashes(self, seconds: float) -> None:
        """Start another one."""
        self.run(self.world.crash())
        self._pass(seconds)

    @rule(away=st.sampled_from((0.25, 2.0, 11.0)), seconds=waits)
    def the_lease_is_lost_and_won(self, away: float, seconds: float) -> None:
        """Stop leading for a while."""
        self.world.lead(False)
        self._pass(away)
        self.world.lead(True)
        self._pass(seconds)

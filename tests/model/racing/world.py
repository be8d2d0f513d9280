# SPDX-License-Identifier: Apache-2.0
"""Run the product's whole controller, mode strict, between two late sides, and judge every tick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.model.racing.judge import Judge, Sides, SoldTwiceError
from tests.model.racing.kubernetes import LateKubernetes
from tests.model.racing.yarn import LateResourceManager
from tests.unit.controller.strict_world import STRICT
from tests.unit.controller.world import GIB, MIB, World, settings, third_text
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource
from yarn_copilot.observability.metrics import Metrics

TICK_SECONDS = 0.25
_HEARTBEAT_TICKS = 4
CLUSTERS = ("one", "two")
NODES = ("node-1", "node-2")
ORIGIN = BatchResources(cpu_milli=20_000, memory_bytes=64 * GIB)
FLOOR = BatchResources(cpu_milli=1000, memory_bytes=GIB)


class RacingWorld(World):
    """Hold two nodes: one with a NodeManager of each of two clusters, one with a single NodeManager."""

    kube: LateKubernetes

    def __init__(self) -> None:
        """Put everything in place; nothing runs before `start`."""
        self.judge = Judge()
        self.late: dict[str, LateResourceManager] = {}
        self.node_of: dict[tuple[str, NodeId], str] = {}
        self.problem: SoldTwiceError | None = None
        self.waiting_pods: BatchResources | None = None
        self.bind_seconds = 0.25
        self.waiting_containers: Resource | None = None
        self._ticks = 0
        super().__init__(
            settings(capacity={**STRICT, "strict": {**STRICT["strict"], "kubernetes_weight": 1}}), clusters=()
        )
        self.kube = LateKubernetes(self.clock)
        for cluster in CLUSTERS:
            self.late[cluster] = LateResourceManager(self.clock, self._offer_judge(cluster))
            self.rms[cluster] = self.late[cluster]
        for name, count in zip(NODES, (2, 1), strict=True):
            claimed = third_text(FLOOR.cpu_milli * count, FLOOR.memory_bytes * count)
            self.node(name, origin=(ORIGIN.cpu_milli, ORIGIN.memory_bytes), third=claimed)
            self.kube.publish_origin(name, ORIGIN)
        for cluster, index in (("one", 1), ("two", 1), ("one", 2)):
            self.node_of[(cluster, self.manager(index, cluster=cluster))] = f"node-{index}"
        self.controller = self._controller()

    def _scheduler(self, cluster: str) -> LateResourceManager:
        return self.late[cluster]

    async def advance(self, seconds: float) -> None:
        """Let time pass tick by tick, everything due happening between, and judge after each.

        Raises:
            SoldTwiceError: a unit was sold twice.
        """
        for _ in range(max(round(seconds / TICK_SECONDS), 1)):
            await self.kube.delivered()
            await self.clock.advance(TICK_SECONDS)
            self._ticks += 1
            if self._ticks % _HEARTBEAT_TICKS == 0:
                for manager in self.late.values():
                    manager.heartbeat()
                if not self.kube.silent:
                    self.kube.bookmark()
            await self.kube.tick()
            for manager in self.late.values():
                manager.tick()
            self._take_all()
            self.look()

    def _take_all(self) -> None:
        """Let both schedulers hand out whatever they may, as long as work waits."""
        if self.waiting_pods is not None:
            for name in NODES:
                while self.kube.schedule(name, self.waiting_pods, bind_seconds=self.bind_seconds):
                    pass
        if self.waiting_containers is not None:
            for cluster, node_id in self.node_of:
                while self.late[cluster].start_container(node_id, self.waiting_containers):
                    pass

    async def crash(self) -> None:
        """Replace the controller by one that knows nothing; what is on its way stays there."""
        await self.stop()
        self.metrics = Metrics(wall_clock=self.clock.wall)
        self.controller = self._controller()
        self.leadership.term += 1
        self.controller.leadership_changed(True, self.leadership.term)
        self._task = asyncio.create_task(self.controller.run())

    def look(self) -> None:
        """Judge both nodes as they are now."""
        if self.problem is not None:
            raise self.problem
        for name in NODES:
            self.judge.look(name, self.sides(name))

    def sides(self, name: str) -> Sides:
        """Give one node as the judge wants it."""
        used = permitted = ZERO_BATCH
        for cluster, manager, node_id in self._managers(name):
            real = manager.managers[node_id]
            told = real.adopted if real.told is None else real.told
            amounts = [*manager.offered(node_id), real.adopted, told, real.used, self._believed(name, cluster, node_id)]
            used = used + to_batch(real.used)
            permitted = permitted + highest(amounts)
        kubernetes = self.kube.booked(name)
        for amount in (self.kube.allocatable(name), *self.kube.cached(name)):
            kubernetes = kubernetes.at_least(amount)
        return Sides(
            origin=self.kube.origin(name),
            booked=self.kube.booked(name),
            used=used,
            permitted_kubernetes=kubernetes,
            permitted_yarn=permitted.at_least(self._in_hand(name)),
        )

    def _managers(self, name: str) -> list[tuple[str, LateResourceManager, NodeId]]:
        return [
            (cluster, self.late[cluster], node_id) for (cluster, node_id), node in self.node_of.items() if node == name
        ]

    def _believed(self, name: str, cluster: str, node_id: NodeId) -> Resource:
        """Give the use that the controller takes for real: it may be replaced as long as it is believed."""
        memory = self.controller.book.memory(name)
        for key, known in (memory.managers if memory else {}).items():
            if key.cluster == cluster and known.node_id == node_id and known.applied.used is not None:
                return Resource(known.applied.used.memory_mib, known.applied.used.vcores)
        return Resource(0, 0)

    def _in_hand(self, name: str) -> BatchResources:
        """Give what a fresh read that is in the controller's hand allows YARN."""
        memory = self.controller.book.memory(name)
        fresh = None if memory is None else memory.permissions.fresh
        if fresh is None or fresh.requested is None or fresh.facts.origin.resources is None:
            return ZERO_BATCH
        return (fresh.facts.origin.resources - fresh.requested).floored()

    def _offer_judge(self, cluster: str) -> Callable[[Sequence[NodeResourceUpdate]], None]:
        def judge(updates: Sequence[NodeResourceUpdate]) -> None:
            for update in updates:
                name = self.node_of[(cluster, update.node_id)]
                before = after = ZERO_BATCH
                for other, manager, node_id in self._managers(name):
                    offered = highest(manager.offered(node_id))
                    before = before + offered
                    is_it = (other, node_id) == (cluster, update.node_id)
                    after = after + (offered.at_least(to_batch(update.resource)) if is_it else offered)
                try:
                    self.judge.judge_offer(name, self.sides(name), before, after)
                except SoldTwiceError as problem:
                    self.problem = problem  # raised at the next look: here it would only end a task of the product

        return judge


def to_batch(resource: Resource) -> BatchResources:
    """Give a YARN vector in Koordinator's units."""
    return BatchResources(cpu_milli=resource.vcores * 1000, memory_bytes=resource.memory_mib * MIB)


def highest(amounts: Sequence[Resource]) -> BatchResources:
    """Take the largest of each resource."""
    total = ZERO_BATCH
    for amount in amounts:
        total = total.at_least(to_batch(amount))
    return total

# SPDX-License-Identifier: Apache-2.0
"""Run one controller for one node with two greedy sides, and write down every tick who holds what."""

from __future__ import annotations

from dataclasses import dataclass

from batch_resources.keys import BATCH_CPU
from batch_resources.resources import BatchResources
from tests.model.racing.kubernetes import LateKubernetes
from tests.model.racing.yarn import LateResourceManager
from tests.unit.controller.world import GIB, World, settings, third_text
from yarn_copilot.hadoop.model import Resource

NODE = "node-1"
TICK_SECONDS = 0.5
MEMORY = 512 * GIB
"""More than anybody asks for: cpu alone decides."""
CACHE_SECONDS = 1.0
"""kube-scheduler decides by what was published so long ago."""
BIND_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Hold one moment, cpu in milli-cores, time in seconds since the run began.

    Attributes:
        second: the moment.
        origin: O.
        claimed: T on the Node.
        allocatable: A as published.
        capacity: C at the ResourceManager.
        booked: K, binds in flight included.
        used: Y.
        sold_twice: K or Y has just grown, and both together are more than O and than every O of the last settle time.
    """

    second: float
    origin: int
    claimed: int
    allocatable: int
    capacity: int
    booked: int
    used: int
    sold_twice: bool = False

    @property
    def excess(self) -> int:
        """Give what is held beyond origin."""
        return max(self.booked + self.used - self.origin, 0)


@dataclass(slots=True)
class Work:
    """Hold a pod or a container.

    Attributes:
        milli: its size.
        seconds: for how long it runs.
        ends_at: when it ends; None while it waits.
    """

    name: str
    milli: int
    seconds: float
    ends_at: float | None = None


class PictureWorld(World):
    """Hold one node; pods and containers start as soon as either scheduler believes that there is room."""

    kube: LateKubernetes

    def __init__(self, mode: str, origin_milli: int) -> None:
        """Put everything in place; settings are the defaults, but for the mode."""
        self.samples: list[Sample] = []
        self.pods: list[Work] = []
        self.containers: list[Work] = []
        self._origins: list[tuple[float, int]] = []
        self._ticks = 0
        super().__init__(settings(capacity={"mode": mode, "growth_window_seconds": 60}), clusters=())
        self.kube = LateKubernetes(self.clock)
        self.resource_manager = LateResourceManager(self.clock, lambda updates: None)
        self.rms["default"] = self.resource_manager
        self.began = self.clock.monotonic()
        self.node(NODE, origin=(origin_milli, MEMORY), third=third_text(1000, GIB))
        self.set_origin(origin_milli)
        self.node_id = self.manager(1)
        self.controller = self._controller()

    def _scheduler(self, cluster: str) -> LateResourceManager:
        return self.resource_manager

    @property
    def second(self) -> float:
        """Give the time since the run began."""
        return self.clock.monotonic() - self.began

    def set_origin(self, milli: int) -> None:
        """Let koord-manager publish another origin."""
        self.kube.publish_origin(NODE, BatchResources(cpu_milli=milli, memory_bytes=MEMORY))
        self.report(NODE)

    def submit_pod(self, name: str, milli: int, seconds: float) -> None:
        """Let a batch pod wait for a node."""
        self.pods.append(Work(name, milli, seconds))
        self.waiting_pod(name, cpu=milli, memory=milli // 1000 * GIB)

    def submit_container(self, name: str, milli: int, seconds: float) -> None:
        """Let an application wait for a container of whole vcores."""
        self.containers.append(Work(name, milli, seconds))

    async def advance(self, seconds: float) -> None:
        """Let time pass tick by tick, both schedulers acting between, and write down each."""
        for _ in range(max(round(seconds / TICK_SECONDS), 1)):
            await self.kube.delivered()
            await self.clock.advance(TICK_SECONDS)
            self._ticks += 1
            if self._ticks % 2 == 0:
                self.resource_manager.heartbeat()
                self.kube.bookmark()
            await self.kube.tick()
            self.resource_manager.tick()
            before = self._held()
            self._end_work()
            self._start_pods()
            if self._ticks % 2 == 0:
                self._start_containers()
            after = self._held()
            self._write_down(grew=sum(after) > sum(before))

    def _held(self) -> tuple[int, int]:
        return tuple(  # type: ignore[return-value]  # two of them
            sum(work.milli for work in side if work.ends_at is not None) for side in (self.pods, self.containers)
        )

    def _end_work(self) -> None:
        for work in [work for work in self.pods if work.ends_at is not None and work.ends_at <= self.second]:
            self.pods.remove(work)
            self.kube.delete("pods", f"batch/{work.name}")
        for work in [work for work in self.containers if work.ends_at is not None and work.ends_at <= self.second]:
            self.containers.remove(work)
            self.resource_manager.end_container(self.node_id, _vector(work.milli))

    def _start_pods(self) -> None:
        """Decide by a cached allocatable; the bind lands later, and is booked from now on."""
        moment = self.clock.monotonic() - CACHE_SECONDS
        versions = self.kube.sides[NODE].versions
        cached = [amount for at, amount in versions if at <= moment] or [versions[0][1]]
        room = cached[-1].cpu_milli - self._held()[0]
        for work in self.pods:
            if work.ends_at is None and work.milli <= room:
                room -= work.milli
                work.ends_at = self.second + work.seconds
                self.bind(work.name, NODE)

    def _start_containers(self) -> None:
        for work in self.containers:
            if work.ends_at is None and self.resource_manager.start_container(self.node_id, _vector(work.milli)):
                work.ends_at = self.second + work.seconds
        waiting = sum(work.milli for work in self.containers if work.ends_at is None)
        self.resource_manager.pending = _vector(waiting)

    def _write_down(self, *, grew: bool) -> None:
        booked, used = self._held()
        origin = self.kube.origin(NODE).cpu_milli
        self._origins.append((self.second, origin))
        settle = self.settings.capacity.strict.settle_seconds
        self._origins = [item for item in self._origins if item[0] >= self.second - settle]
        highest = max(amount for _, amount in self._origins)
        claim = self.claim(NODE)
        self.samples.append(
            Sample(
                second=self.second,
                origin=origin,
                claimed=0 if claim is None else claim[0],
                allocatable=int(self.kube.objects["nodes"][NODE]["status"]["allocatable"][BATCH_CPU]),
                capacity=self.rm.capacity(self.node_id).vcores * 1000,
                booked=booked,
                used=used,
                sold_twice=grew and booked + used > highest,
            )
        )


def _vector(milli: int) -> Resource:
    return Resource(milli // 1000 * 1024, milli // 1000)

# SPDX-License-Identifier: Apache-2.0
"""Play a compressed day: online load on every node, batch pods that come and go, an application that breathes.

Everything that happens follows from the seed, except what the schedulers decide and when.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from batch_resources.resources import BatchResources
from lab.demo.backend import Backend
from lab.demo.ledger import PODS_PATH, KubernetesLedger
from lab.demo.usage import Waiting
from lab.errors import LabError
from lab.koordinator.api import Api, ApiError
from lab.koordinator.stand_in import StandIn
from lab.kubernetes import bodies
from lab.load.day import DAY_SECONDS, OnlineDay

MERGE_PATCH: Final = "application/merge-patch+json"
_STEPS_PER_DAY: Final = 24
_TYPE_NODE: Final = {"apiVersion": "v1", "kind": "Node"}
_TYPE_POD: Final = {"apiVersion": "v1", "kind": "Pod"}
_GIB: Final = 2**30
_KUBELET_SECONDS: Final = 0.2
_OFFER_SECONDS: Final = 30.0
_OFFER_POLL_SECONDS: Final = 0.02
_CALL_ERRORS: Final = (ApiError, aiohttp.ClientError, TimeoutError, ConnectionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlan:
    """Plan one batch pod: when it comes, how large it is, how long it stays."""

    name: str
    at_seconds: float
    request: BatchResources
    lifetime_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Plan how many containers the application wants from a moment on."""

    at_seconds: float
    wanted: int


def plan_pods(seed: int, duration_seconds: float, node_count: int) -> list[PodPlan]:
    """Plan the pods of a play; sizes are skewed, most are small, as in published traces of batch work."""
    return list(_pods(random.Random(f"{seed}/pods"), duration_seconds, node_count))


def _pods(rng: random.Random, duration_seconds: float, node_count: int) -> Iterator[PodPlan]:
    at_seconds, number = 0.5, 0
    while at_seconds < duration_seconds * 0.95:
        number += 1
        cores = min(int(rng.paretovariate(1.5)), 4)
        yield PodPlan(
            name=f"batch-{number}",
            at_seconds=at_seconds,
            request=BatchResources(cpu_milli=cores * 1000, memory_bytes=cores * rng.choice((1, 2, 3)) * _GIB),
            lifetime_seconds=rng.uniform(0.08, 0.3) * duration_seconds,
        )
        at_seconds += rng.expovariate(1.0) * 3.0 / node_count


def plan_waves(seed: int, duration_seconds: float, node_count: int) -> list[Wave]:
    """Plan the application's appetite, ending with some containers held."""
    rng = random.Random(f"{seed}/waves")
    count = max(int(duration_seconds / 4), 3)
    waves = [
        Wave(at_seconds=0.3 + duration_seconds * index / count, wanted=rng.randint(node_count, 5 * node_count))
        for index in range(count)
    ]
    waves[-1] = Wave(at_seconds=waves[-1].at_seconds, wanted=2 * node_count)
    return waves


class Scenario:
    """Play on one cluster. `play` runs once; `clock_text` may be asked at any time."""

    def __init__(self, backend: Backend, api: Api, stand_in: StandIn, ledger: KubernetesLedger, *, seed: int) -> None:
        """Prepare; nothing happens yet."""
        self._backend = backend
        self._api = api
        self._stand_in = stand_in
        self._ledger = ledger
        self._seed = seed
        self._day = OnlineDay(seed=seed)
        self._began: float | None = None
        self._wanted_containers = 0
        self.asked_containers = 0
        self.asked_pods = 0
        self._duration_seconds = 0.0

    async def make_nodes(self) -> None:
        """Create the Nodes and the pods of their NodeManagers, and publish the first load."""
        for node in self._backend.nodes:
            spec = bodies.NodeSpec(
                name=node.name,
                cpu=str(node.capacity.cpu_milli // 1000),
                memory=f"{node.capacity.memory_bytes // _GIB}Gi",
                addresses={"InternalIP": node.address, "Hostname": node.host_name},
            )
            await self._api.call("POST", "/api/v1/nodes", body={**_TYPE_NODE, **bodies.node(spec)})
            path = f"/api/v1/nodes/{node.name}"
            await self._merge(f"{path}/status", {"status": bodies.node_status(spec)})
            await self._merge(path, {"spec": {"taints": None}})
            pod = bodies.NodeManagerPod(
                name=f"node-manager-{node.name}",
                node_name=node.name,
                node_id=node.node_id,
                pod_ip=node.address,
                cpu_milli=500,
                memory_bytes=_GIB // 2,
            )
            body = {**_TYPE_POD, **bodies.node_manager_pod(pod)}
            # Without a class it would have priority 0, and kube-scheduler would evict it to make room for batch pods.
            body["spec"]["priorityClassName"] = "koord-prod"
            await self._api.call("POST", PODS_PATH, body=body)
            await self._merge(f"{PODS_PATH}/{pod.name}/status", {"status": bodies.node_manager_pod_status(pod)})
        self._set_load(0.0)

    async def first_offers(self) -> None:
        """Wait until every node offers batch resources: before that neither scheduler has anything to sell.

        Raises:
            LabError: if a node offers none in time.
        """
        deadline = time.monotonic() + _OFFER_SECONDS
        while missing := [node.name for node in self._backend.nodes if not self._is_offered(node.name)]:
            if time.monotonic() > deadline:
                raise LabError(
                    f"the stand-in for koord-manager published no batch resources on {', '.join(missing)} within "
                    f"{_OFFER_SECONDS:g} s; look at what it logged above"
                )
            await asyncio.sleep(_OFFER_POLL_SECONDS)

    def _is_offered(self, node: str) -> bool:
        ledger = self._ledger.read(node)
        return ledger is not None and ledger.offered is not None

    async def play(self, duration_seconds: float) -> None:
        """Play the day in so many seconds; afterwards nothing changes any more by itself."""
        self._began, self._duration_seconds = time.monotonic(), duration_seconds
        kubelet = asyncio.create_task(self._be_kubelet())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._play_load(duration_seconds))
                tasks.create_task(self._play_containers(duration_seconds))
                for plan in plan_pods(self._seed, duration_seconds, len(self._backend.nodes)):
                    tasks.create_task(self._play_pod(plan, duration_seconds))
            self._wanted_containers = 0
            await self._backend.workload.withdraw()
            await self._delete_unbound_pods()
        finally:
            kubelet.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await kubelet

    def clock_text(self) -> str:
        """Tell the time of the played day, and how much of the play is over."""
        if self._began is None:
            return "before the day"
        elapsed = time.monotonic() - self._began
        if elapsed >= self._duration_seconds:
            return "the day is over, everything is left alone"
        minutes = int(DAY_SECONDS * elapsed / self._duration_seconds / 60)
        played = f"{elapsed:.0f} s of {self._duration_seconds:g} s"
        return f"{minutes // 60:02d}:{minutes % 60:02d} of the played day ({played})"

    def waiting(self) -> Waiting:
        """Count what waits now, on both sides."""
        pods = sum(not pod["spec"].get("nodeName") for pod in self._ledger.pods.values())
        containers = max(self._wanted_containers - self._backend.workload.held(), 0) if self._wanted_containers else 0
        return Waiting(pods=pods, containers=containers)

    async def _play_load(self, duration_seconds: float) -> None:
        for index in range(_STEPS_PER_DAY):
            self._set_load(DAY_SECONDS * index / _STEPS_PER_DAY)
            await self._until((index + 1) * duration_seconds / _STEPS_PER_DAY)

    def _set_load(self, second: float) -> None:
        for node in self._backend.nodes:
            used = self._day.load(node.name, node.capacity, second)
            self._stand_in.set_load(node.name, used.cpu_milli, used.memory_bytes)

    async def _play_containers(self, duration_seconds: float) -> None:
        workload = self._backend.workload
        for wave in plan_waves(self._seed, duration_seconds, len(self._backend.nodes)):
            await self._until(wave.at_seconds)
            await workload.withdraw()
            difference = wave.wanted - workload.held()
            self._wanted_containers = wave.wanted
            self.asked_containers += max(difference, 0)
            if difference > 0:
                await workload.ask(difference)
            elif difference < 0:
                await workload.release(-difference)

    async def _play_pod(self, plan: PodPlan, duration_seconds: float) -> None:
        await self._until(plan.at_seconds)
        self.asked_pods += 1
        body = bodies.batch_pod(
            bodies.BatchPod(name=plan.name, cpu_milli=plan.request.cpu_milli, memory_bytes=plan.request.memory_bytes)
        )
        with contextlib.suppress(*_CALL_ERRORS):
            await self._api.call("POST", PODS_PATH, body={**_TYPE_POD, **body})
        ends_at = plan.at_seconds + plan.lifetime_seconds
        if ends_at < duration_seconds:
            await self._until(ends_at)
            await self._end_pod(plan.name)

    async def _end_pod(self, name: str) -> None:
        """Let a pod that ran succeed first, as most do; then delete it."""
        with contextlib.suppress(*_CALL_ERRORS):
            if name in self._ledger.bound:
                await self._merge(f"{PODS_PATH}/{name}/status", {"status": {"phase": "Succeeded"}})
            await self._api.call("DELETE", f"{PODS_PATH}/{name}", body={"gracePeriodSeconds": 0})

    async def _delete_unbound_pods(self) -> None:
        for name, pod in list(self._ledger.pods.items()):
            if not pod["spec"].get("nodeName"):
                with contextlib.suppress(*_CALL_ERRORS):
                    await self._api.call("DELETE", f"{PODS_PATH}/{name}", body={"gracePeriodSeconds": 0})

    async def _be_kubelet(self) -> None:
        """Call bound pods Running, as a kubelet would soon do."""
        while True:
            for name, pod in list(self._ledger.pods.items()):
                if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase", "Pending") == "Pending":
                    with contextlib.suppress(*_CALL_ERRORS):
                        await self._merge(f"{PODS_PATH}/{name}/status", {"status": {"phase": "Running"}})
            await asyncio.sleep(_KUBELET_SECONDS)

    async def _merge(self, path: str, patch: dict[str, Any]) -> None:
        await self._api.call("PATCH", path, body=patch, content_type=MERGE_PATCH)

    async def _until(self, at_seconds: float) -> None:
        if self._began is not None:
            await asyncio.sleep(max(self._began + at_seconds - time.monotonic(), 0))

# SPDX-License-Identifier: Apache-2.0
"""Run a whole controller against fakes in a time that tests move."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from batch_resources.annotations.third_party import read_third_party
from tests.unit.controller.kubernetes import ORIGIN, THIRD, FakeKubernetes
from tests.unit.controller.outside import ZERO, FakeAgent, FakeResourceManager, LeadershipSwitch, RecordingEvents
from tests.unit.kube.manual_clock import ManualClock
from yarn_copilot.config.settings import Settings
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.controller.memory import NodeMemory
from yarn_copilot.controller.ports import SchedulerReader
from yarn_copilot.controller.program import Controller, Outside
from yarn_copilot.controller.reading import Reader
from yarn_copilot.controller.steps import Step
from yarn_copilot.controller.view import ConfigView
from yarn_copilot.hadoop.model import NodeId, Resource
from yarn_copilot.observability.metrics import Metrics

MIB = 1 << 20
GIB = 1 << 30
_BOOKMARK_SECONDS = 30.0


def settings(**sections: dict[str, Any]) -> Settings:
    """Give settings of mode shared that follow at once, with changes by section."""
    merged: dict[str, Any] = {"capacity": {"mode": "shared", "growth_window_seconds": 0}}
    for section, values in sections.items():
        merged[section] = {**merged.get(section, {}), **values}
    return Settings.model_validate(merged)


def origin_text(cpu_milli: object, memory_bytes: object) -> str:
    """Write the origin annotation."""
    resources = {"kubernetes.io/batch-cpu": cpu_milli, "kubernetes.io/batch-memory": memory_bytes}
    return json.dumps({"resources": resources})


def third_text(cpu_milli: object, memory_bytes: object, name: str = "hadoop-yarn") -> str:
    """Write a third-party annotation with one entry."""
    resources = {"kubernetes.io/batch-cpu": str(cpu_milli), "kubernetes.io/batch-memory": str(memory_bytes)}
    return json.dumps({"allocations": [{"name": name, "priority": "koord-batch", "resources": resources}]})


class World:
    """Hold the fakes and one running controller."""

    def __init__(self, configured: Settings | None = None, *, clusters: tuple[str, ...] = ("default",)) -> None:
        self.clock = ManualClock()
        self.kube = FakeKubernetes(self.clock)
        self.rms = {id_: FakeResourceManager() for id_ in clusters}
        self.leadership = LeadershipSwitch()
        self.events = RecordingEvents()
        self.metrics = Metrics(wall_clock=self.clock.wall)
        self.settings = configured or settings()
        self.agents: dict[str, FakeAgent] = {}
        self.controller = self._controller()
        self._task: asyncio.Task[None] | None = None
        self._uids = 0

    def _scheduler(self, cluster: str) -> SchedulerReader | None:
        """Give what tells a cluster's scheduler's own figures; mode strict needs them."""
        return None

    def _note_step(self, step: Step, node: str) -> None:
        """Hear of a step of a transfer."""

    def _controller(self) -> Controller:
        return Controller(
            self.settings,
            Outside(
                kubernetes=self.kube,
                clusters={
                    id_: ClusterPort(
                        resource_manager=rm,
                        addresses=("rm:8032",),
                        heartbeat_seconds=1.0,
                        scheduler=self._scheduler(id_),
                    )
                    for id_, rm in self.rms.items()
                },
                leadership=self.leadership,
                events=self.events,
                clock=self.clock,
                metrics=self.metrics,
                on_step=self._note_step,
                make_agent=self.agent,
            ),
        )

    def agent(self, address: str) -> FakeAgent:
        """Give the agent at an address."""
        return self.agents.setdefault(address, FakeAgent(self.clock))

    @property
    def rm(self) -> FakeResourceManager:
        """Give the only ResourceManager."""
        return self.rms["default"]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self, seconds: float = 2.0) -> None:
        """Run the controller and give it some time."""
        self.controller.leadership_changed(self.leadership.is_leader, self.leadership.term)
        self._task = asyncio.create_task(self.controller.run())
        await self.advance(seconds)

    async def stop(self) -> None:
        """End the controller."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def restart(self, seconds: float = 2.0) -> None:
        """Replace the controller by a new one that knows nothing; the outside stays."""
        await self.stop()
        self.metrics = Metrics(wall_clock=self.clock.wall)
        self.controller = self._controller()
        await self.start(seconds)

    async def advance(self, seconds: float) -> None:
        """Let time pass, with a sign of life of the watches now and then."""
        await self.kube.delivered()
        left = seconds
        while left > 0:
            step = min(left, _BOOKMARK_SECONDS)
            await self.clock.advance(step)
            left -= step
            if not self.kube.silent:
                self.kube.bookmark()
        await self.clock.advance(0)

    def lead(self, is_leader: bool) -> None:
        """Win or lose the lease, as the elector tells it."""
        self.leadership.is_leader = is_leader
        self.leadership.term += int(is_leader)
        self.controller.leadership_changed(is_leader, self.leadership.term)

    def node(
        self,
        name: str = "node-1",
        *,
        origin: tuple[object, object] | None = (20_000, 64 * GIB),
        third: str | None = None,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        addresses: tuple[str, ...] = (),
        metric: bool = True,
    ) -> None:
        """Create a Node with its NodeMetric."""
        self._uids += 1
        texts = dict(annotations or {})
        if origin is not None:
            texts[ORIGIN] = origin_text(*origin)
        if third is not None:
            texts[THIRD] = third
        allocatable = {"kubernetes.io/batch-cpu": "1", "kubernetes.io/batch-memory": "1"}
        body = {
            "metadata": {"name": name, "uid": f"uid-{self._uids}", "labels": labels or {}, "annotations": texts},
            "status": {
                "allocatable": allocatable,
                "addresses": [{"type": "InternalIP", "address": address} for address in addresses],
            },
        }
        self.kube.put("nodes", name, body)
        if metric:
            self.report(name)

    def report(self, name: str = "node-1") -> None:
        """Let koordlet report."""
        now = datetime.fromtimestamp(self.clock.wall(), UTC).isoformat()
        self.kube.put("nodemetrics", name, {"metadata": {"name": name}, "status": {"updateTime": now}})

    def pod(
        self,
        name: str,
        node: str = "node-1",
        *,
        cpu: object = None,
        memory: object = None,
        phase: str = "Running",
        manager: bool = False,
        annotations: dict[str, str] | None = None,
        created: str = "2026-01-01T00:00:00Z",
        ip: str = "",
        agent_port: int = 0,
    ) -> None:
        """Create or replace a pod in namespace `yarn`."""
        requests = {
            key: value
            for key, value in (("kubernetes.io/batch-cpu", cpu), ("kubernetes.io/batch-memory", memory))
            if value is not None
        }
        labels = {"app.kubernetes.io/component": "node-manager"} if manager else {}
        ports = [{"name": "copilot", "containerPort": agent_port}] if agent_port else []
        body = {
            "metadata": {
                "name": name,
                "namespace": "yarn",
                "labels": labels,
                "annotations": annotations or {},
                "creationTimestamp": created,
            },
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}, "ports": ports}]},
            "status": {"phase": phase, "podIP": ip},
        }
        self.kube.put("pods", f"yarn/{name}", body)

    def waiting_pod(self, name: str, *, cpu: object, memory: object, **spec: Any) -> None:
        """Create a pod in namespace `batch` that has no node."""
        requests = {"kubernetes.io/batch-cpu": str(cpu), "kubernetes.io/batch-memory": str(memory)}
        body = {
            "metadata": {"name": name, "namespace": "batch"},
            "spec": {"containers": [{"resources": {"requests": requests}}], **spec},
            "status": {"phase": "Pending"},
        }
        self.kube.put("pods", f"batch/{name}", body)

    def bind(self, name: str, node: str) -> None:
        """Put a waiting pod on a node, as kube-scheduler does."""
        body = json.loads(json.dumps(self.kube.objects["pods"][f"batch/{name}"]))
        body["spec"]["nodeName"] = node
        self.kube.put("pods", f"batch/{name}", body)

    def manager(self, index: int = 1, *, used: Resource = ZERO, cluster: str | None = None, **rm: Any) -> NodeId:
        """Create Node `node-N` with a NodeManager pod `nm-N`, registered as `nm-N:8041`."""
        if f"node-{index}" not in self.kube.objects["nodes"]:
            self.node(f"node-{index}")
        suffix = f"-{cluster}" if cluster else ""
        annotations = {"yarn.hadoop.apache.org/cluster-id": cluster} if cluster else {}
        self.pod(f"nm-{index}{suffix}", f"node-{index}", manager=True, annotations=annotations)
        return self.rms[cluster or "default"].add(f"nm-{index}{suffix}:8041", used=used, **rm)

    def claim(self, name: str = "node-1") -> tuple[int, int] | None:
        """Give our entry as (vcores' milli-cores, MiB); None where there is none."""
        return entry(self.kube.annotation(name))

    def memory(self, name: str = "node-1") -> NodeMemory:
        """Give what the controller remembers of a node."""
        memory = self.controller.book.memory(name)
        assert memory is not None
        return memory

    @property
    def reader(self) -> Reader:
        """Read the controller as the API does."""
        return Reader(self.controller, identity="one", version="1", config=lambda: ConfigView())


def entry(text: str | None) -> tuple[int, int] | None:
    """Read our entry of a third-party annotation as (milli-cores, MiB)."""
    claimed = read_third_party(text).entry("hadoop-yarn")
    return None if claimed is None else (claimed.cpu_milli, claimed.memory_bytes // MIB)

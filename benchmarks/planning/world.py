# SPDX-License-Identifier: Apache-2.0
"""Fill a controller in mode strict with nodes, pods and a node list, as watches and polls would, without any server.

Everything is at rest: capacity is as planned, claimed and published. Writes are only noted by the writers' queues,
which nobody empties.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, ORIGIN_ANNOTATION, THIRD_PARTY_ANNOTATION
from yarn_copilot.config.settings import Settings
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.controller.program import Controller, Outside
from yarn_copilot.controller.reading import Reader
from yarn_copilot.controller.view import ConfigView
from yarn_copilot.hadoop.model import (
    ClusterMetrics,
    NodeId,
    NodeReport,
    NodeResourceUpdate,
    NodeState,
    QueueInfo,
    Resource,
    SchedulerReading,
)
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.clock import SystemClock
from yarn_copilot.kube.credentials import StaticCredentials
from yarn_copilot.kube.lease import SoleLeader
from yarn_copilot.kube.model import Node, Pod
from yarn_copilot.observability.metrics import Metrics

GIB: Final = 1 << 30
CORES: Final = 32
MEMORY_GIB: Final = 128
POD: Final = {BATCH_CPU: "500", BATCH_MEMORY: str(GIB)}
_ZONES: Final = 4
_COMMON_LABELS: Final = {f"company.example/label-{number}": f"value-{number}" for number in range(20)}
_SETTINGS: Final[Mapping[str, Any]] = {
    "capacity": {"mode": "strict", "growth_window_seconds": 60},
    "leader_election": {"enabled": False},
}


class _Silent:
    """Take Events and drop them."""

    def node_event(self, node_name: str, *, type: str, reason: str, message: str) -> None:
        """Drop an Event on a Node."""

    def controller_event(self, *, type: str, reason: str, message: str) -> None:
        """Drop an Event on the controller."""


class _Manager:
    """Be a ResourceManager that is never called: the node list is put into the state by hand."""

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """Give no nodes."""
        return ()

    async def get_cluster_metrics(self) -> ClusterMetrics:
        """Count none."""
        return ClusterMetrics(0, 0, 0, 0, 0, 0, 0, 0)

    async def get_queue_info(self, queue: str) -> QueueInfo:
        """Give an empty queue."""
        nothing = Resource(0, 0)
        return QueueInfo(queue, queue, "RUNNING", 1.0, 1.0, 0.0, nothing, nothing, nothing, 0, 0)

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Take nothing."""

    async def read_scheduler(self, node_ids: Collection[NodeId]) -> Mapping[NodeId, SchedulerReading]:
        """Give nothing."""
        return {}

    async def aclose(self) -> None:
        """Close nothing."""


def node_body(index: int, *, version: int, origin_cores: int = CORES, claimed_cores: int = 0) -> bytes:
    """Write a Node as the API server sends it, with the labels and addresses of an ordinary one."""
    name = f"node-{index:05}"
    origin = {BATCH_CPU: origin_cores * 1000, BATCH_MEMORY: MEMORY_GIB * GIB}
    annotations = {ORIGIN_ANNOTATION: json.dumps({"resources": origin})}
    memory = claimed_cores * 4 * GIB
    if claimed_cores:
        held = {BATCH_CPU: str(claimed_cores * 1000), BATCH_MEMORY: str(memory)}
        entry = {"name": "hadoop-yarn", "priority": "koord-batch", "resources": held}
        annotations[THIRD_PARTY_ANNOTATION] = json.dumps({"allocations": [entry]})
    allocatable = {
        BATCH_CPU: str((origin_cores - claimed_cores) * 1000),
        BATCH_MEMORY: str(MEMORY_GIB * GIB - memory),
    }
    labels = {**_COMMON_LABELS, "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{index % _ZONES}"}
    return json.dumps(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{index}",
                "resourceVersion": str(version),
                "labels": labels,
                "annotations": annotations,
            },
            "spec": {"taints": [{"key": "batch", "value": "true", "effect": "NoSchedule"}]},
            "status": {
                "allocatable": allocatable,
                "addresses": [{"type": "InternalIP", "address": f"10.{index >> 8}.{index & 255}.1"}],
            },
        }
    ).encode()


def pod_body(name: str, *, node: str = "", requests: Mapping[str, str] = POD, **spec: Any) -> bytes:
    """Write a pod as the API server sends it; without a node it waits."""
    tolerations = [
        {"key": "batch", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        },
    ]
    placed = {"nodeName": node} if node else {}
    is_manager = name.startswith("nm-")
    return json.dumps(
        {
            "metadata": {
                "name": name,
                "namespace": "batch",
                "labels": {"app.kubernetes.io/component": "node-manager"} if is_manager else {},
            },
            "spec": {
                "containers": [{"resources": {"requests": {} if is_manager else dict(requests)}}],
                "tolerations": tolerations,
                **placed,
                **spec,
            },
            "status": {"phase": "Running" if node else "Pending"},
        }
    ).encode()


class World:
    """Hold the controller.

    Attributes:
        controller: the product's own, never run.
        version: newest resourceVersion handed out.
    """

    def __init__(self, *, nodes: int, pods_per_node: int) -> None:
        """Fill it; nothing is planned yet."""
        self.count = nodes
        self.version = 0
        self._pods_per_node = pods_per_node
        self._nodes = msgspec.json.Decoder(Node)
        self._pods = msgspec.json.Decoder(Pod)
        clock, manager = SystemClock(), _Manager()
        self.controller = Controller(
            Settings.model_validate(_SETTINGS),
            Outside(
                kubernetes=KubeClient(StaticCredentials("http://127.0.0.1:9")),
                clusters={
                    "default": ClusterPort(
                        resource_manager=manager, addresses=(), heartbeat_seconds=1.0, scheduler=manager
                    )
                },
                leadership=SoleLeader("one"),
                events=_Silent(),
                clock=clock,
                metrics=Metrics(),
            ),
        )
        self._reader = Reader(self.controller, identity="", version="", config=ConfigView)
        self.controller.leadership_changed(True, 1)
        self._fill()

    def _fill(self) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for index in range(self.count):
            self.put_node(index)
            self.controller.ages.upserted(f"node-{index:05}", now)
            self.put_pod(f"nm-{index:05}", pod_body(f"nm-{index:05}", node=f"node-{index:05}"))
            for number in range(self._pods_per_node):
                name = f"pod-{index:05}-{number}"
                self.put_pod(name, pod_body(name, node=f"node-{index:05}"))
        self.report(Resource(1024, 1))
        self.controller.plan_everything()

    def put_node(self, index: int, *, origin_cores: int = CORES, claimed_cores: int = 0) -> None:
        """Deliver a version of a Node."""
        self.version += 1
        body = node_body(index, version=self.version, origin_cores=origin_cores, claimed_cores=claimed_cores)
        facts = self.controller.reduce_node(self._nodes.decode(body))
        self.controller.nodes.upserted(facts.name, facts)

    def put_pod(self, name: str, body: bytes) -> None:
        """Deliver a version of a pod."""
        self.controller.pods.upserted(f"batch/{name}", self.controller.reduce_pod(self._pods.decode(body)))

    def report(self, capacity: Resource, *, only: Collection[int] = ()) -> None:
        """Deliver a node list without use; `only` names the nodes that differ from the one before."""
        state = self.controller.states["default"]
        known = {report.node_id: report for report in state.reports.values()}
        for index in only or range(self.count):
            report = _report(index, capacity)
            known[report.node_id] = report
        now = self.controller.outside.clock.monotonic()
        poller = self.controller.clusters["default"].poller
        changes = state.take(list(known.values()), began_at=now, ended_at=now)
        poller._learn(changes, poller._unproven(), now=now)

    def explain(self, name: str) -> list[str] | None:
        """Explain a node as the API does."""
        return self._reader.explain(name)

    def mark_all(self) -> None:
        """Let the next cycle plan every node."""
        self.controller.dirty.mark_all(list(self.controller.book.memories))


def _report(index: int, capacity: Resource) -> NodeReport:
    return NodeReport(
        node_id=NodeId(f"nm-{index:05}", 8041),
        state=NodeState.RUNNING,
        http_address=f"nm-{index:05}:8042",
        rack="/default-rack",
        capability=capacity,
        used=Resource(0, 0),
        containers=0,
        last_health_report_millis=index,
    )

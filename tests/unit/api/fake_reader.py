# SPDX-License-Identifier: Apache-2.0
"""Answer the API with views that a test sets."""

from __future__ import annotations

from dataclasses import dataclass, field

from yarn_copilot.controller.view import (
    BatchView,
    ClusterView,
    ConfigView,
    ControllerView,
    NodeManagerView,
    NodeView,
    OriginView,
    QueueView,
    ReasonView,
    YarnView,
)

GIB = 1 << 30


def controller_view(**changes: object) -> ControllerView:
    values: dict[str, object] = {
        "identity": "pod-a",
        "leader": True,
        "term": 2,
        "leader_identity": "pod-a",
        "ready": True,
        "kubernetes_age_seconds": 0.5,
        "started_seconds": 75.0,
        "version": "1.0",
        "mode": "shared",
        "config": ConfigView(path="/etc/c.yaml", hash="abc"),
    }
    return ControllerView(**{**values, **changes})  # type: ignore[arg-type]  # a test names the fields it changes


def node_view(name: str = "worker-1", *reasons: ReasonView, managed: bool = True) -> NodeView:
    return NodeView(
        node=name,
        managed=managed,
        reasons=list(reasons),
        origin=OriginView(state="known", cpu_milli=60646, memory_bytes=120 * GIB, age_seconds=12.0),
        kubernetes_requested=BatchView(cpu_milli=2000, memory_bytes=4 * GIB),
        capacity=BatchView(cpu_milli=58000, memory_bytes=116 * GIB),
        used=BatchView(cpu_milli=10000, memory_bytes=20 * GIB),
        claimed=BatchView(cpu_milli=10000, memory_bytes=20 * GIB),
        node_managers=[
            NodeManagerView(
                cluster="blue",
                node_id=f"{name}:8041",
                state="RUNNING",
                capacity=YarnView(memory_mib=118784, vcores=58),
                used=YarnView(memory_mib=20480, vcores=10),
                read_age_seconds=0.2,
            )
        ],
    )


def queue_view(path: str = "root.batch") -> QueueView:
    return QueueView(
        cluster="blue",
        path=path,
        state="RUNNING",
        capacity_fraction=0.5,
        maximum_capacity_fraction=1.0,
        used_fraction=0.25,
        allocated=YarnView(memory_mib=2048, vcores=2),
        pending=YarnView(memory_mib=0, vcores=0),
        containers_allocated=2,
        age_seconds=3.0,
    )


@dataclass
class FakeReader:
    """Hold what is answered; `broken` makes every view raise."""

    view: ControllerView = field(default_factory=controller_view)
    node_views: list[NodeView] = field(default_factory=lambda: [node_view()])
    cluster_views: list[ClusterView] = field(
        default_factory=lambda: [
            ClusterView(
                id="blue", addresses=["rm:8032"], reachable=True, age_seconds=0.9, nodes_by_state={"RUNNING": 3}
            )
        ]
    )
    queue_views: list[QueueView] = field(default_factory=lambda: [queue_view()])
    broken: bool = False

    def controller(self) -> ControllerView:
        return self.view

    def nodes(self) -> list[NodeView]:
        if self.broken:
            raise RuntimeError("secret detail")
        return self.node_views

    def node(self, name: str) -> NodeView | None:
        return next((node for node in self.node_views if node.node == name), None)

    def clusters(self) -> list[ClusterView]:
        return self.cluster_views

    def queues(self) -> list[QueueView]:
        return self.queue_views

    def explain(self, name: str) -> list[str] | None:
        return None if self.node(name) is None else [f"{name} is managed.", "Origin is 60646 milli-cores."]

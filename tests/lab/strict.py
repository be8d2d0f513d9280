# SPDX-License-Identifier: Apache-2.0
"""Set up nodes that the stand-in for Koordinator looks after, and a controller in mode strict with short times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from batch_resources.resources import BatchResources
from lab.cluster import Lab
from lab.judge.recording import Recording
from lab.koordinator.api import read_kubeconfig
from lab.koordinator.running import RunningStandIn
from lab.koordinator.stand_in import Pace
from lab.kubernetes.bodies import NodeSpec
from lab.processes import probes
from tests.lab.bridge import GIB, Bridge, BridgedNode, Unique

SETTLE_SECONDS: Final = 2.0
MACHINE: Final = BatchResources(cpu_milli=32_000, memory_bytes=64 * GIB)
STRICT: Final[Mapping[str, Any]] = {
    "capacity": {
        "mode": "strict",
        "growth_window_seconds": 0,
        "strict": {"settle_seconds": SETTLE_SECONDS, "fresh_read_seconds": 1},
    },
    "yarn": {"poll_interval_seconds": 0.25, "confirm_interval_seconds": 0.1, "message_lifetime_seconds": 3},
    "hadoop": {"call_timeout_seconds": 2, "connect_timeout_seconds": 1},
}
"""Times that a busy machine of two cores still keeps: a bind takes far less than the settle time."""

_FASTER: Final = 30.0
"""Koordinator's 300 s become 10 s."""


@dataclass(frozen=True, slots=True)
class StrictLab:
    """Hold what a test of mode strict works with."""

    bridge: Bridge
    nodes: list[BridgedNode]
    koordinator: RunningStandIn
    recording: Recording

    def set_origin(self, node: BridgedNode, units: int) -> None:
        """Play a load that leaves so many cores and so many times 2 GiB."""
        self.koordinator.set_origin(node.name, units * 1000, units * 2 * GIB)

    def has_converged(self, node: BridgedNode) -> bool:
        """Tell whether what is claimed is what YARN has, and all the rest is published for Kubernetes.

        Raises:
            NotReadyError: not yet; what is there is in it.
        """
        memory, vcores = self.bridge.capacity(node)
        claim = self.bridge.claim(node)
        origin, allocatable = self.bridge.origin(node), self.allocatable(node)
        capacity = BatchResources(cpu_milli=vcores * 1000, memory_bytes=memory << 20)
        state = f"{node.name}: O={origin} A={allocatable} T={claim} C={capacity}"
        if claim is None or capacity != BatchResources(cpu_milli=claim.cpu_milli, memory_bytes=claim.memory_bytes):
            raise probes.NotReadyError(state)
        if origin != allocatable + capacity:
            raise probes.NotReadyError(state)
        return True

    def allocatable(self, node: BridgedNode) -> BatchResources:
        """Read what is published for Kubernetes."""
        return self.bridge.batch_allocatable(node)


@contextmanager
def strict_lab(
    lab: Lab,
    unique: Unique,
    *,
    units: int = 20,
    config: Mapping[str, Any] = STRICT,
    pods: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[StrictLab]:
    """Make a node for every NodeManager with an origin of so many units, and record everything.

    Args:
        lab: where.
        unique: makes names.
        units: of 1 core and 2 GiB.
        config: of the controller.
        pods: fields of the pods of NodeManagers by their number from 0 (see `NodeManagerPod`).
    """
    bridge = Bridge(lab, unique, config=config)
    nodes = [BridgedNode(unique("node"), manager) for manager in lab.yarn.node_managers]
    for number, node in enumerate(nodes):
        cores, memory = MACHINE.cpu_milli // 1000, MACHINE.memory_bytes // GIB
        lab.enroll(node.manager, NodeSpec(name=node.name, cpu=str(cores), memory=f"{memory}Gi"), **pods.get(number, {}))
    with ExitStack() as stack:
        koordinator = stack.enter_context(
            RunningStandIn(
                read_kubeconfig(lab.kubernetes.kubeconfig),
                nodes=[node.name for node in nodes],
                machine=MACHINE,
                pace=Pace(time_scale=_FASTER),
            )
        )
        recording = stack.enter_context(Recording(lab, {node.node_id: node.name for node in nodes}))
        found = StrictLab(bridge, nodes, koordinator, recording)
        for node in nodes:
            found.set_origin(node, units)
        for node in nodes:
            bridge.wait(lambda node=node: found.allocatable(node).cpu_milli > 0, "origin is published")  # type: ignore[misc]
        yield found

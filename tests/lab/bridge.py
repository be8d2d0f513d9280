# SPDX-License-Identifier: Apache-2.0
"""Set up nodes and controllers for tests of the running bridge, and read both sides without the bridge's help.

What YARN has is read from the ResourceManager's REST interface, what Koordinator is told from the Node object with the
official client's quantity parser. Sizes on the YARN side are (memory MiB, vcores), on the Kubernetes side `Claim`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kubernetes.utils.quantity import parse_quantity

from batch_resources.resources import BatchResources
from lab.cluster import Lab
from lab.controller import ControllerProcess, Program
from lab.hadoop.node_manager import NodeManager
from lab.kubernetes import bodies
from lab.kubernetes.bodies import NodeSpec
from lab.processes import probes
from tests.lab import access

Unique = Callable[[str], str]
YarnSize = tuple[int, int]

MIB: Final = 1 << 20
GIB: Final = 1 << 30
MILLI_CORES_PER_VCORE: Final = 1000
OUR_ENTRY: Final = "hadoop-yarn"
SETTLED_SECONDS: Final = 20.0
"""Ten times the two seconds in which a claim should follow."""
APPLIED_SECONDS: Final = 10.0
"""Ten times the second in which a capacity should follow."""

FAST: Final[Mapping[str, Any]] = {
    "capacity": {"mode": "shared", "growth_window_seconds": 0},
    "yarn": {"poll_interval_seconds": 0.25, "confirm_interval_seconds": 0.1},
}
"""Configuration for tests that are not about times; what they say of capacities holds in mode shared."""


class Claim(NamedTuple):
    """Hold what our entry on a Node says: milli-cores and bytes."""

    cpu_milli: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class BridgedNode:
    """Name a Kubernetes node and the NodeManager on it."""

    name: str
    manager: NodeManager

    @property
    def node_id(self) -> str:
        """Give the id by which the ResourceManager knows the NodeManager."""
        return self.manager.node_id


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Merge configurations section by section; later ones win."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            known = result.get(key)
            if isinstance(value, Mapping) and isinstance(known, Mapping):
                result[key] = merged(known, value)
            else:
                result[key] = value
    return result


def now_text() -> str:
    """Write the present as a NodeMetric's update time."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def claim_in(annotations: Mapping[str, str]) -> Claim | None:
    """Read our entry from a Node's annotations; None where there is none or the text is no JSON."""
    try:
        document = json.loads(annotations.get(bodies.THIRD_PARTY_ANNOTATION, "{}"))
        entries = [entry for entry in document.get("allocations", []) if entry.get("name") == OUR_ENTRY]
    except (ValueError, AttributeError):
        return None
    if not entries:
        return None
    resources = entries[0]["resources"]
    return Claim(_whole(resources[bodies.BATCH_CPU]), _whole(resources[bodies.BATCH_MEMORY]))


def _whole(quantity: str) -> int:
    return int(parse_quantity(quantity))  # type: ignore[no-untyped-call]  # the official client is not typed


def _batch(quantities: Mapping[str, str]) -> BatchResources:
    return BatchResources(
        cpu_milli=_whole(quantities.get(bodies.BATCH_CPU, "0")),
        memory_bytes=_whole(quantities.get(bodies.BATCH_MEMORY, "0")),
    )


class Bridge:
    """Hold the nodes and controllers of one test on a lab."""

    def __init__(self, lab: Lab, unique: Unique, *, config: Mapping[str, Any] = FAST) -> None:
        self.lab = lab
        self.unique = unique
        self.objects = lab.objects
        self.config = config
        self.token = access.grant_access(lab)
        # A controller that another test killed still holds the Lease.
        self.objects.delete(f"/apis/coordination.k8s.io/v1/namespaces/{access.NAMESPACE}/leases/yarn-copilot")

    # Setting up

    def enroll(self, number: int, *, cpu_milli: int | str, memory_bytes: int | str, **pod: Any) -> BridgedNode:
        """Create a node for the lab's NodeManager `number` (from 0), its NodeMetric and its pod."""
        node = BridgedNode(self.unique("node"), self.lab.yarn.node_managers[number])
        spec = NodeSpec(name=node.name, batch_cpu_milli=cpu_milli, batch_memory_bytes=memory_bytes)
        self.objects.write_node_metric(node.name, {"updateTime": now_text()})
        self.lab.enroll(node.manager, spec, **pod)
        return node

    def enroll_all(self, *, cpu_milli: int = 8_000, memory_bytes: int = 8 * GIB) -> list[BridgedNode]:
        """Create a node for every NodeManager of the lab."""
        return [
            self.enroll(number, cpu_milli=cpu_milli, memory_bytes=memory_bytes)
            for number in range(len(self.lab.yarn.node_managers))
        ]

    def controller(
        self,
        *configs: Mapping[str, Any],
        name: str | None = None,
        token: str | None = None,
        program: Program | None = None,
    ) -> ControllerProcess:
        """Make a controller with the rights of `deploy/kubernetes`."""
        config = merged(self.config, {"leader_election": {"namespace": access.NAMESPACE}}, *configs)
        return self.lab.controller(
            config, name=name or self.unique("controller"), token=token or self.token, program=program
        )

    def start(self, *configs: Mapping[str, Any]) -> ControllerProcess:
        """Start a controller and wait until it is ready."""
        controller = self.controller(*configs).start()
        controller.wait_ready()
        return controller

    def set_origin(self, node: BridgedNode, cpu_milli: int | str, memory_bytes: int | str) -> None:
        """Publish an origin."""
        self.objects.set_origin(node.name, cpu_milli, memory_bytes)

    # Reading

    def capacity(self, node: BridgedNode) -> YarnSize:
        """Read the node's total at the ResourceManager."""
        return self.lab.yarn.capacity(node.node_id)

    def used(self, node: BridgedNode) -> YarnSize:
        """Read the node's use at the ResourceManager."""
        return self.lab.yarn.used(node.node_id)

    def claim(self, node: BridgedNode) -> Claim | None:
        """Read our entry from the Node object."""
        return claim_in(self.objects.node(node.name)["metadata"].get("annotations", {}))

    def origin(self, node: BridgedNode) -> BatchResources:
        """Read the origin annotation; zero where it is absent."""
        annotations = self.objects.node(node.name)["metadata"].get("annotations", {})
        return _batch(json.loads(annotations.get(bodies.ORIGIN_ANNOTATION, "{}")).get("resources", {}))

    def batch_allocatable(self, node: BridgedNode) -> BatchResources:
        """Read what kube-scheduler may book; zero where the keys are missing."""
        return _batch(self.objects.node(node.name)["status"].get("allocatable", {}))

    def third_party_text(self, node: BridgedNode) -> str | None:
        """Read the whole annotation as stored."""
        annotations: dict[str, str] = self.objects.node(node.name)["metadata"].get("annotations", {})
        return annotations.get(bodies.THIRD_PARTY_ANNOTATION)

    def events(self, node: BridgedNode, reason: str) -> list[dict[str, Any]]:
        """List the Events on a node with a reason."""
        return self._events("default", node.name, reason)

    def controller_events(self, reason: str) -> list[dict[str, Any]]:
        """List the Events on the controller itself with a reason."""
        return self._events(access.NAMESPACE, None, reason)

    def _events(self, namespace: str, name: str | None, reason: str) -> list[dict[str, Any]]:
        items = self.objects.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        return [
            item
            for item in items
            if item["reason"] == reason and (name is None or item["involvedObject"]["name"] == name)
        ]

    # Expecting

    def claim_for(self, *used: YarnSize) -> Claim:
        """Compute what must be claimed for the use of a node's NodeManagers: at least the floor of each."""
        options = self.lab.yarn.options
        memory = sum(max(size[0], options.floor_memory_mib) for size in used)
        vcores = sum(max(size[1], options.floor_vcores) for size in used)
        return Claim(vcores * MILLI_CORES_PER_VCORE, memory * MIB)

    def wait(
        self, condition: Callable[[], object], what: str, *, seconds: float = SETTLED_SECONDS, poll: float = 0.05
    ) -> None:
        """Wait for a condition with a deadline."""
        probes.wait_until(condition, what=what, timeout_seconds=seconds, poll_seconds=poll)

    def wait_capacity(
        self, node: BridgedNode, memory_mib: int, vcores: int, *, seconds: float = APPLIED_SECONDS
    ) -> None:
        """Wait until the ResourceManager shows a capacity."""

        def is_applied() -> bool:
            seen = self.capacity(node)
            if seen != (memory_mib, vcores):
                raise probes.NotReadyError(f"{node.name} has {seen}, wanted {(memory_mib, vcores)}")
            return True

        self.wait(is_applied, f"the capacity of {node.name} is applied", seconds=seconds, poll=0.02)

    def wait_claim(self, node: BridgedNode, claim: Claim | None, *, seconds: float = SETTLED_SECONDS) -> None:
        """Wait until the Node shows a claim."""

        def is_claimed() -> bool:
            seen = self.claim(node)
            if seen != claim:
                raise probes.NotReadyError(f"{node.name} shows {seen}, wanted {claim}")
            return True

        self.wait(is_claimed, f"the claim of {node.name} follows", seconds=seconds, poll=0.02)

    def wait_settled(self, *nodes: BridgedNode, seconds: float = SETTLED_SECONDS) -> None:
        """Wait until every claim equals what the ResourceManager says is used (or the floor)."""
        for node in nodes:

            def is_settled(node: BridgedNode = node) -> bool:
                used, claim = self.used(node), self.claim(node)
                if claim != self.claim_for(used):
                    raise probes.NotReadyError(f"{node.name} uses {used} and claims {claim}")
                return True

            self.wait(is_settled, f"the claim of {node.name} equals use", seconds=seconds, poll=0.02)

    def wait_event(self, node: BridgedNode, reason: str, *, text: str = "", seconds: float = SETTLED_SECONDS) -> str:
        """Wait for an Event on a node whose message holds a text; returns the message."""

        def find() -> str:
            messages = [str(event["message"]) for event in self.events(node, reason)]
            found = [message for message in messages if text in message]
            if not found:
                raise probes.NotReadyError(f"{reason}: {messages}")
            return found[-1]

        return probes.wait_until(find, what=f"an Event {reason} on {node.name} with {text!r}", timeout_seconds=seconds)

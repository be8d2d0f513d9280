# SPDX-License-Identifier: Apache-2.0
"""Name what the controller needs from outside, by shape.

Adapters (`yarn_copilot.kube`, `yarn_copilot.hadoop`) satisfy these without importing them; `yarn_copilot.cli`
joins both. Everything here is asynchronous I/O with a deadline inside the adapter, or a clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from batch_resources.resources import BatchResources
from yarn_copilot.hadoop.model import (
    AttributeOperation,
    ClusterMetrics,
    NodeAttribute,
    NodeId,
    NodeReport,
    NodeResourceUpdate,
    QueueInfo,
    Resource,
    SchedulerReading,
)
from yarn_copilot.kube.model import Node, Pod
from yarn_copilot.node_agent.model import NodeAgentState


class Clock(Protocol):
    """Give the two clocks; tests inject their own."""

    def monotonic(self) -> float:
        """Give seconds that never run backwards."""

    def wall(self) -> float:
        """Give seconds since 1970-01-01 UTC; used only for texts and for the first sight of a NodeMetric."""

    async def sleep(self, seconds: float) -> None:
        """Suspend the caller."""


class ResourceManager(Protocol):
    """Be one YARN cluster's ResourceManager, wherever its active instance is.

    Every method raises a `HadoopRPCError` (see `yarn_copilot.hadoop.errors`) and ends within the call deadline.
    """

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """List the nodes in all states."""

    async def get_cluster_metrics(self) -> ClusterMetrics:
        """Count the nodes by state."""

    async def get_queue_info(self, queue: str) -> QueueInfo:
        """Read a queue with all its children; `root` gives all."""

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Send one batch.

        Raises:
            UnrecognizedNodeError: one node is not in the RM's active map; nothing was applied; `node_id` names it.
        """

    async def aclose(self) -> None:
        """Close connections."""


class SchedulerReader(Protocol):
    """Ask one YARN cluster's active ResourceManager what its scheduler works with.

    The node list of `ResourceManager` has no such figures; only the web services do (available beside used).
    """

    async def read_scheduler(self, node_ids: Collection[NodeId]) -> Mapping[NodeId, SchedulerReading]:
        """Read the nodes named; what the ResourceManager does not know is missing in the answer.

        Raises:
            YarnCopilotError: nothing could be read.
        """


class PartitionReader(Protocol):
    """Read what one YARN cluster's partitions wait for, those with a label included."""

    async def read(self) -> Mapping[str, Resource] | None:
        """Give pending resources by partition, the default one under the empty text; None when that is unknown."""


class NodeAgent(Protocol):
    """Be the program beside one NodeManager; satisfied by `yarn_copilot.node_agent.client`."""

    async def state(self) -> NodeAgentState:
        """Read drain, running and lingering work.

        Raises:
            NodeAgentError: no answer within its deadline, or not the promised one.
        """

    async def kill(self, resources: BatchResources, *, deadline_seconds: float) -> BatchResources:
        """Kill tasks until so much is free, and verify; returns what was freed.

        Raises:
            NodeAgentError: refused, or no answer; in the latter case something may have been killed.
        """

    async def aclose(self) -> None:
        """Close connections."""


class MakeNodeAgent(Protocol):
    """Reach the agent at an address, IP:PORT; nothing is sent yet."""

    def __call__(self, address: str) -> NodeAgent: ...


class LabelKeeper(Protocol):
    """Read and write one YARN cluster's partitions (node labels) and node attributes.

    Every method raises a `HadoopRPCError` and ends within the call deadline.
    """

    async def get_nodes_to_labels(self) -> Mapping[NodeId, tuple[str, ...]]:
        """Read the labels of the nodes that have some; a port of 0 stands for the whole host."""

    async def get_nodes_to_attributes(self) -> Mapping[str, tuple[NodeAttribute, ...]]:
        """Read the attributes of all hosts, by name without a port."""

    async def replace_labels_on_nodes(
        self, labels: Mapping[NodeId, Iterable[str]], *, fail_on_unknown_nodes: bool = True
    ) -> None:
        """Give nodes these labels instead of what they have; all or nothing."""

    async def map_attributes_to_nodes(
        self,
        operation: AttributeOperation,
        attributes: Mapping[str, Iterable[NodeAttribute]],
        *,
        fail_on_unknown_nodes: bool = True,
    ) -> None:
        """Change attributes of hosts."""


class PodLister(Protocol):
    """List pods from the API server's storage, not from a cache."""

    async def list_node_pods(self, node_name: str) -> Sequence[Pod]:
        """List the pods bound to a node as they are now.

        Raises:
            KubeAPIError: the list could not be read, or holds a pod that cannot be decoded.
        """


class NodeAnnotationWriter(Protocol):
    """Change annotations of a Node under a precondition, in one JSON patch."""

    async def patch_node_annotations(
        self, node_name: str, *, expected: Mapping[str, str | None], changed: Mapping[str, str | None]
    ) -> Node:
        """Write `changed` (None removes) if each annotation of `expected` still has that text (None: is absent).

        Returns:
            The Node as the API server stored it.

        Raises:
            PreconditionFailedError: an expected text differs; nothing was written.
            KubeAPIError: the call was refused or lost; see its `retryable`.
        """


class NodeReader(Protocol):
    """Read one Node from the API server's storage, not from a cache."""

    async def get_node(self, node_name: str) -> Node:
        """Read the Node as stored now."""


class EventSink(Protocol):
    """Tell people what changed by Kubernetes Events; never blocks, never raises, folds repetitions."""

    def node_event(self, node_name: str, *, type: str, reason: str, message: str) -> None:
        """Record an Event on a Node; type is Normal or Warning, reason a constant of `observability.reasons`."""

    def controller_event(self, *, type: str, reason: str, message: str) -> None:
        """Record an Event on the controller's own pod (or its Lease where the pod is unknown)."""


class Leadership(Protocol):
    """Know whether this process may write."""

    @property
    def is_leader(self) -> bool:
        """Tell whether the lease is ours by the monotonic clock, now."""

    @property
    def term(self) -> int:
        """Count terms: changes every time this process becomes leader; 0 before the first."""

    @property
    def holder(self) -> str:
        """Name who leads, as far as this process has seen, "" where nobody does or it is unknown; for people."""

    def check(self) -> None:
        """Raise `NotLeaderError` unless the lease is ours for at least one more call deadline."""

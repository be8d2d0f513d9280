# SPDX-License-Identifier: Apache-2.0
"""Decode the few fields of Kubernetes objects that the bridge reads.

Source: Kubernetes API reference v1 (Node, Pod), coordination.k8s.io/v1 (Lease) and Koordinator's
slo.koordinator.sh/v1alpha1 (NodeMetric). Fields carry their JSON names, so no renaming table is needed.
Everything not listed is skipped while decoding, which is what makes a list of 50,000 pods cheap.
Quantities are kept as written (text or bare JSON number): `batch_resources.quantities` gives them meaning.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct


class ObjectMeta(Struct, frozen=True):
    """Hold the part of `metadata` that identifies an object and carries our annotations."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class NodeAddress(Struct, frozen=True):
    """Hold one entry of `status.addresses`; type is Hostname, InternalIP, InternalDNS, ExternalIP, ExternalDNS."""

    type: str
    address: str


class NodeTaint(Struct, frozen=True):
    """Hold one entry of `spec.taints`."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Struct, frozen=True):
    """Hold what keeps pods off a Node."""

    unschedulable: bool = False
    taints: list[NodeTaint] = []


class NodeStatus(Struct, frozen=True):
    """Hold what a Node offers; quantities as written by the API server."""

    allocatable: dict[str, Any] = {}
    addresses: list[NodeAddress] = []


class Node(Struct, frozen=True):
    """Hold a v1 Node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ResourceRequirements(Struct, frozen=True):
    """Hold `resources.requests`."""

    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}


class ContainerPort(Struct, frozen=True):
    """Hold a named port."""

    containerPort: int = 0
    name: str = ""


class Container(Struct, frozen=True):
    """Hold what kube-scheduler adds up for a container, and its ports; `restartPolicy: Always` marks a sidecar."""

    resources: ResourceRequirements = ResourceRequirements()
    restartPolicy: str | None = None
    ports: list[ContainerPort] = []


class PodSpec(Struct, frozen=True):
    """Hold the booking-relevant part of a pod's spec; what only matters while it waits stays raw JSON."""

    nodeName: str = ""
    hostname: str = ""
    subdomain: str = ""
    hostNetwork: bool = False
    containers: list[Container] = []
    initContainers: list[Container] = []
    overhead: dict[str, Any] = {}
    nodeSelector: Raw = Raw()
    affinity: Raw = Raw()
    tolerations: Raw = Raw()
    schedulingGates: Raw = Raw()


class PodStatus(Struct, frozen=True):
    """Hold phase and address of a pod."""

    phase: str = ""
    podIP: str = ""
    hostIP: str = ""


class Pod(Struct, frozen=True):
    """Hold a v1 Pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeMetricStatus(Struct, frozen=True):
    """Hold the RFC 3339 time of koordlet's last report."""

    updateTime: str | None = None


class NodeMetricMeta(Struct, frozen=True):
    """Hold name and version only: a NodeMetric is large and changes every minute on every node."""

    name: str
    resourceVersion: str = ""


class NodeMetric(Struct, frozen=True):
    """Hold the age of Koordinator's knowledge of a node (slo.koordinator.sh/v1alpha1)."""

    metadata: NodeMetricMeta
    status: NodeMetricStatus = NodeMetricStatus()


class LeaseSpec(Struct, frozen=True, omit_defaults=True):
    """Hold a coordination.k8s.io/v1 LeaseSpec; times are RFC 3339 with microseconds, UTC."""

    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    acquireTime: str | None = None
    renewTime: str | None = None
    leaseTransitions: int | None = None


class Lease(Struct, frozen=True):
    """Hold a coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()

# SPDX-License-Identifier: Apache-2.0
"""Describe nodes and pods of the lab and render them as API objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

BATCH_CPU: Final = "kubernetes.io/batch-cpu"
BATCH_MEMORY: Final = "kubernetes.io/batch-memory"
ORIGIN_ANNOTATION: Final = "node.koordinator.sh/originExtendedAllocatable"
THIRD_PARTY_ANNOTATION: Final = "node.koordinator.sh/thirdPartyAllocations"
NODE_ID_ANNOTATION: Final = "yarn.hadoop.apache.org/node-id"
CLUSTER_ID_ANNOTATION: Final = "yarn.hadoop.apache.org/cluster-id"
NODE_MANAGER_LABELS: Final = {"app.kubernetes.io/component": "node-manager"}
IMAGE: Final = "registry.invalid/none"  # nothing is ever pulled: there is no kubelet
Amount = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """Describe a node.

    Attributes:
        cpu, memory: capacity as Kubernetes quantities.
        batch_cpu_milli, batch_memory_bytes: batch resources in allocatable and, unless `origin` is False, in the
            origin annotation; None: neither.
        addresses: address type (InternalIP, Hostname ...) to address.
    """

    name: str
    cpu: str = "64"
    memory: str = "256Gi"
    batch_cpu_milli: Amount | None = None
    batch_memory_bytes: Amount | None = None
    origin: bool = True
    addresses: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPod:
    """Describe a pod that requests batch resources; `node_name` binds it, else kube-scheduler does."""

    name: str
    namespace: str = "default"
    cpu_milli: Amount = 1000
    memory_bytes: Amount = 1 << 30
    node_name: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeManagerPod:
    """Describe the pod of a NodeManager.

    Attributes:
        host_name: `spec.hostname`; None: the pod's name.
        subdomain: `spec.subdomain`, for a full name.
        pod_ip: `status.podIP`.
        node_id: override annotation `host:port`.
        cluster_id: cluster annotation.
        cpu_milli, memory_bytes: the pod's own batch request; None: no request.
        agent_port: port of the agent beside the NodeManager, named `copilot`; None: there is none.
    """

    name: str
    node_name: str
    namespace: str = "default"
    phase: str = "Running"
    host_name: str | None = None
    subdomain: str | None = None
    pod_ip: str | None = None
    node_id: str | None = None
    cluster_id: str | None = None
    cpu_milli: Amount | None = None
    memory_bytes: Amount | None = None
    agent_port: int | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: dict(NODE_MANAGER_LABELS))
    annotations: Mapping[str, str] = field(default_factory=dict)


def origin(cpu_milli: Amount, memory_bytes: Amount) -> str:
    """Render Koordinator's origin annotation."""
    resources = {BATCH_CPU: str(cpu_milli), BATCH_MEMORY: str(memory_bytes)}
    return json.dumps({"resources": resources}, separators=(",", ":"))


def node(spec: NodeSpec) -> dict[str, Any]:
    """Render a node without status."""
    annotations = dict(spec.annotations)
    if spec.origin and spec.batch_cpu_milli is not None and spec.batch_memory_bytes is not None:
        annotations.setdefault(ORIGIN_ANNOTATION, origin(spec.batch_cpu_milli, spec.batch_memory_bytes))
    labels = {"kubernetes.io/hostname": spec.name, **spec.labels}
    return {"metadata": {"name": spec.name, "annotations": annotations, "labels": labels}}


def node_status(spec: NodeSpec) -> dict[str, Any]:
    """Render the status of a ready node."""
    resources = {"cpu": spec.cpu, "memory": spec.memory, "pods": "1000"}
    if spec.batch_cpu_milli is not None:
        resources[BATCH_CPU] = str(spec.batch_cpu_milli)
    if spec.batch_memory_bytes is not None:
        resources[BATCH_MEMORY] = str(spec.batch_memory_bytes)
    condition = {"type": "Ready", "status": "True", "reason": "Lab", "message": "there is no kubelet"}
    return {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [condition],
        "addresses": [{"type": kind, "address": address} for kind, address in spec.addresses.items()],
    }


def batch_pod(pod: BatchPod) -> dict[str, Any]:
    """Render a pod of Koordinator's batch priority and best-effort class."""
    spec: dict[str, Any] = {
        "priorityClassName": "koord-batch",
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": dict(pod.node_selector),
        "containers": [_container("task", pod.cpu_milli, pod.memory_bytes)],
    }
    if pod.node_name is not None:
        spec["nodeName"] = pod.node_name
    labels = {"koordinator.sh/qosClass": "BE", **pod.labels}
    return {"metadata": {"name": pod.name, "labels": labels}, "spec": spec}


def node_manager_pod(pod: NodeManagerPod) -> dict[str, Any]:
    """Render the pod of a NodeManager, bound to its node."""
    annotations = dict(pod.annotations)
    if pod.node_id is not None:
        annotations[NODE_ID_ANNOTATION] = pod.node_id
    if pod.cluster_id is not None:
        annotations[CLUSTER_ID_ANNOTATION] = pod.cluster_id
    container = _container("node-manager", pod.cpu_milli, pod.memory_bytes)
    if pod.agent_port is not None:
        container["ports"] = [{"name": "copilot", "containerPort": pod.agent_port}]
    spec: dict[str, Any] = {
        "nodeName": pod.node_name,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    if pod.host_name is not None:
        spec["hostname"] = pod.host_name
    if pod.subdomain is not None:
        spec["subdomain"] = pod.subdomain
    return {"metadata": {"name": pod.name, "labels": dict(pod.labels), "annotations": annotations}, "spec": spec}


def node_manager_pod_status(pod: NodeManagerPod) -> dict[str, Any]:
    """Render the status that a kubelet would write."""
    status: dict[str, Any] = {"phase": pod.phase}
    if pod.pod_ip is not None:
        status |= {"podIP": pod.pod_ip, "podIPs": [{"ip": pod.pod_ip}]}
    return status


def node_metric_kind() -> dict[str, Any]:
    """Read the definition of the NodeMetric kind."""
    body: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("nodemetric-crd.yaml").read_text())
    return body


def priority_classes() -> list[dict[str, Any]]:
    """Render Koordinator's priority classes with the lowest value of each band."""
    values = {"koord-prod": 9000, "koord-mid": 7000, "koord-batch": 5000, "koord-free": 3000}
    return [{"metadata": {"name": name}, "value": value, "globalDefault": False} for name, value in values.items()]


def _container(name: str, cpu_milli: Amount | None, memory_bytes: Amount | None) -> dict[str, Any]:
    container: dict[str, Any] = {"name": name, "image": IMAGE}
    resources = {}
    if cpu_milli is not None:
        resources[BATCH_CPU] = str(cpu_milli)
    if memory_bytes is not None:
        resources[BATCH_MEMORY] = str(memory_bytes)
    if resources:
        container["resources"] = {"requests": resources, "limits": resources}
    return container

# SPDX-License-Identifier: Apache-2.0
"""Make and change the Kubernetes objects that tests, demo and benchmarks need.

There is no kubelet: a node is made ready by writing its status, a pod that the scheduler has bound never runs unless
its phase is written. Bodies come from `lab.kubernetes.bodies`; this file speaks HTTP. Calls of many objects go
through a pool of threads, each with its own connection.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import requests

from lab.kubernetes import bodies
from lab.kubernetes.bodies import BatchPod, NodeManagerPod, NodeSpec

T = TypeVar("T")
_TIMEOUT_SECONDS: Final = 30.0
_POOL_THREADS: Final = 16
_MERGE: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
NODE_METRICS: Final = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"


class KubernetesObjects:
    """Create, change and delete objects at one API server; safe to use from several threads."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self._url = url
        self._template = session
        self._idle: queue.SimpleQueue[requests.Session] = queue.SimpleQueue()

    # One request

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """Send one request and return the decoded answer.

        Args:
            method: HTTP method.
            path: path and query, beginning with a slash.
            body: JSON-able, or None.
            content_type: media type of the body.

        Raises:
            requests.HTTPError: any status of 400 and above, with the server's message.
        """
        with self._session() as session:
            answer = session.request(
                method,
                self._url + path,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": content_type},
                timeout=_TIMEOUT_SECONDS,
            )
        if answer.status_code >= 400:
            raise requests.HTTPError(
                f"{method} {path} answered {answer.status_code}: {answer.text[:500]}", response=answer
            )
        decoded: dict[str, Any] = answer.json()
        return decoded

    def get(self, path: str) -> dict[str, Any]:
        """GET an object or a list."""
        return self.request("GET", path)

    def apply(self, collection: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object; one that exists already is returned as it is."""
        try:
            return self.request("POST", collection, body)
        except requests.HTTPError as error:
            if error.response is None or error.response.status_code != requests.codes.conflict:
                raise
            return self.get(f"{collection}/{body['metadata']['name']}")

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON merge patch."""
        return self.request("PATCH", path, patch, content_type=_MERGE)

    def json_patch(self, path: str, operations: list[dict[str, Any]]) -> dict[str, Any]:
        """Send a JSON patch."""
        return self.request("PATCH", path, operations, content_type=_JSON_PATCH)

    def delete(self, path: str) -> None:
        """Delete an object at once; one that is not there is fine."""
        try:
            self.request("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        except requests.HTTPError as error:
            if error.response is None or error.response.status_code != requests.codes.not_found:
                raise

    def in_parallel(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """Call `function` for each item in a pool of threads; results in order."""
        with ThreadPoolExecutor(_POOL_THREADS) as pool:
            return list(pool.map(function, items))

    def delete_everything(self) -> None:
        """Delete all nodes, pods, node metrics and events, and the controller's lease in kube-system."""
        namespaces = [item["metadata"]["name"] for item in self.get("/api/v1/namespaces")["items"]]
        paths = [f"/api/v1/namespaces/{name}/{kind}" for name in namespaces for kind in ("pods", "events")]
        paths += ["/api/v1/nodes", NODE_METRICS]
        paths += ["/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/yarn-copilot"]
        self.in_parallel(self.delete, paths)

    # Nodes

    def create_node(self, spec: NodeSpec) -> dict[str, Any]:
        """Create a ready, untainted node with the allocatable of its description."""
        self.request("POST", "/api/v1/nodes", bodies.node(spec))
        self.merge(f"/api/v1/nodes/{spec.name}/status", {"status": bodies.node_status(spec)})
        return self.json_patch(f"/api/v1/nodes/{spec.name}", [{"op": "add", "path": "/spec/taints", "value": []}])

    def create_nodes(self, specs: Iterable[NodeSpec]) -> None:
        """Create many nodes."""
        self.in_parallel(self.create_node, specs)

    def node(self, name: str) -> dict[str, Any]:
        """Read a node."""
        return self.get(f"/api/v1/nodes/{name}")

    def annotate_node(self, name: str, annotations: Mapping[str, str | None]) -> dict[str, Any]:
        """Set annotations of a node; None removes one."""
        return self.merge(f"/api/v1/nodes/{name}", {"metadata": {"annotations": dict(annotations)}})

    def set_origin(self, name: str, cpu_milli: int | str, memory_bytes: int | str) -> dict[str, Any]:
        """Publish Koordinator's origin annotation; texts are written as they are."""
        return self.annotate_node(name, {bodies.ORIGIN_ANNOTATION: bodies.origin(cpu_milli, memory_bytes)})

    def set_batch_allocatable(self, name: str, cpu_milli: int | str, memory_bytes: int | str) -> dict[str, Any]:
        """Publish the batch resources that kube-scheduler may hand out."""
        return self.merge(
            f"/api/v1/nodes/{name}/status",
            {
                "status": {
                    part: {bodies.BATCH_CPU: str(cpu_milli), bodies.BATCH_MEMORY: str(memory_bytes)}
                    for part in ("capacity", "allocatable")
                }
            },
        )

    def third_party(self, name: str) -> dict[str, Any] | None:
        """Read and decode the third-party annotation of a node; None when absent."""
        text = self.node(name)["metadata"].get("annotations", {}).get(bodies.THIRD_PARTY_ANNOTATION)
        return None if text is None else json.loads(text)

    def delete_node(self, name: str) -> None:
        """Delete a node."""
        self.delete(f"/api/v1/nodes/{name}")

    # Pods

    def create_namespace(self, name: str) -> None:
        """Create a namespace if it is missing."""
        self.apply("/api/v1/namespaces", {"metadata": {"name": name}})

    def create_batch_pod(self, pod: BatchPod) -> dict[str, Any]:
        """Create a pod that requests batch resources; kube-scheduler places it unless it names a node."""
        return self.request("POST", f"/api/v1/namespaces/{pod.namespace}/pods", bodies.batch_pod(pod))

    def create_batch_pods(self, pods: Iterable[BatchPod]) -> None:
        """Create many batch pods."""
        self.in_parallel(self.create_batch_pod, pods)

    def create_node_manager_pod(self, pod: NodeManagerPod) -> dict[str, Any]:
        """Create the pod of a NodeManager on its node and write its phase and addresses."""
        self.request("POST", f"/api/v1/namespaces/{pod.namespace}/pods", bodies.node_manager_pod(pod))
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        return self.merge(f"{path}/status", {"status": bodies.node_manager_pod_status(pod)})

    def pod(self, namespace: str, name: str) -> dict[str, Any]:
        """Read a pod."""
        return self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def node_of_pod(self, namespace: str, name: str) -> str | None:
        """Return the node to which a pod is bound; None while it is pending."""
        node: str | None = self.pod(namespace, name)["spec"].get("nodeName")
        return node

    def set_pod_phase(self, namespace: str, name: str, phase: str) -> dict[str, Any]:
        """Write the phase of a pod (Pending, Running, Succeeded, Failed)."""
        return self.merge(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {"phase": phase}})

    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod at once."""
        self.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")

    # Koordinator

    def install_koordinator_kinds(self) -> None:
        """Install the NodeMetric kind and the priority classes of Koordinator."""
        self.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", bodies.node_metric_kind())
        for body in bodies.priority_classes():
            self.apply("/apis/scheduling.k8s.io/v1/priorityclasses", body)

    def write_node_metric(self, name: str, status: Mapping[str, Any]) -> dict[str, Any]:
        """Create the NodeMetric of a node if needed and write its status (`updateTime`, `nodeMetric` ...)."""
        self.apply(
            NODE_METRICS,
            {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": name}, "spec": {}},
        )
        return self.merge(f"{NODE_METRICS}/{name}/status", {"status": dict(status)})

    def delete_node_metric(self, name: str) -> None:
        """Delete the NodeMetric of a node."""
        self.delete(f"{NODE_METRICS}/{name}")

    # Access

    def service_account_token(self, namespace: str, name: str, *, lifetime_seconds: int) -> str:
        """Make a service account if needed and request a token for it."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.apply(accounts, {"metadata": {"name": name}})
        answer = self.request(
            "POST",
            f"{accounts}/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": lifetime_seconds},
            },
        )
        token: str = answer["status"]["token"]
        return token

    @contextmanager
    def _session(self) -> Iterator[requests.Session]:
        """Lend a session to one thread at a time; one whose connection broke is closed, not kept."""
        try:
            session = self._idle.get_nowait()
        except queue.Empty:
            session = self._new_session()
        try:
            yield session
        except requests.RequestException:
            session.close()
            raise
        self._idle.put(session)

    def _new_session(self) -> requests.Session:
        session = requests.Session()
        session.verify = self._template.verify
        session.headers.update(self._template.headers)
        session.trust_env = False
        return session

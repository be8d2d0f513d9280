# SPDX-License-Identifier: Apache-2.0
"""Install `deploy` on a real API server and `hadoop-config` on a real YARN, and use what they grant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import requests
import yaml

from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from lab.kubernetes.bodies import NodeSpec
from lab.kubernetes.objects import KubernetesObjects
from lab.processes import probes
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import read_clusters
from yarn_copilot.hadoop.errors import AccessDeniedError
from yarn_copilot.hadoop.model import FAR_OVERCOMMIT_TIMEOUT_MILLIS, NodeReport, NodeResourceUpdate, Resource

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
NAMESPACE = "koordinator-system"
NODE = "node-1"
EVENT = {
    "metadata": {"name": "test.1", "namespace": "default"},
    "involvedObject": {"kind": "Node", "name": NODE, "apiVersion": "v1"},
    "reason": "Test",
    "message": "written by a test",
    "type": "Normal",
    "source": {"component": "yarn-copilot"},
}
GROUPS = {
    "v1": "/api/v1",
    "apps/v1": "/apis/apps/v1",
    "policy/v1": "/apis/policy/v1",
    "networking.k8s.io/v1": "/apis/networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1": "/apis/rbac.authorization.k8s.io/v1",
}
PLURALS = {"PodDisruptionBudget": "poddisruptionbudgets", "NetworkPolicy": "networkpolicies"}


NODE_NAMESPACE = "hadoop"


def hadoop_properties(name: str) -> dict[str, str]:
    root = ElementTree.parse(ROOT / "hadoop-config" / name).getroot()  # noqa: S314 - our own file
    return {each.findtext("name", ""): each.findtext("value", "") for each in root.findall("property")}


@pytest.fixture(scope="module")
def prepared() -> Iterator[Lab]:
    """Run Kubernetes, and YARN with the ResourceManager's fragment merged in."""
    node = hadoop_properties("node-manager/yarn-site.xml")
    options = YarnOptions(
        floor_memory_mib=int(node["yarn.nodemanager.resource.memory-mb"]),
        floor_vcores=int(node["yarn.nodemanager.resource.cpu-vcores"]),
        # Most clusters leave the general switch off; who may change nodes must not hang on it.
        properties=hadoop_properties("resource-manager/yarn-site.xml") | {"yarn.acl.enable": "false"},
    )
    with Lab(node_managers=1, yarn_options=options) as lab:
        yield lab


@pytest.fixture(scope="module")
def installed(prepared: Lab) -> Lab:
    """Create every object of `deploy/kubernetes`; unknown and misplaced fields are errors."""
    objects = prepared.kubernetes.objects()
    objects.install_koordinator_kinds()
    probes.wait_until(  # a kind that was just made answers 429 until its storage is ready
        lambda: "items" in objects.get("/apis/slo.koordinator.sh/v1alpha1/nodemetrics"),
        what="NodeMetrics are served",
        timeout_seconds=30.0,
    )
    objects.create_namespace(NAMESPACE)
    objects.create_node(NodeSpec(name=NODE, cpu="4", memory="8Gi"))
    for document in _documents("kubernetes"):
        objects.request("POST", f"{_collection(document, NAMESPACE)}?fieldValidation=Strict", document)
    return prepared


@pytest.fixture
def account(installed: Lab) -> KubernetesObjects:
    """Call the API server as the controller's pod would."""
    token = installed.kubernetes.service_account_token(NAMESPACE, "yarn-copilot")
    return installed.kubernetes.objects(token)


def _documents(folder: str) -> list[dict[str, Any]]:
    paths = sorted((ROOT / "deploy" / folder).glob("*.yaml"))
    every = [one for path in paths for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return [one for one in every if one["kind"] != "Kustomization"]


def _collection(document: dict[str, Any], namespace: str) -> str:
    kind = document["kind"]
    plural = PLURALS.get(kind, kind.lower() + "s")
    scope = "" if kind.startswith("Cluster") else f"/namespaces/{namespace}"
    return f"{GROUPS[document['apiVersion']]}{scope}/{plural}"


def _lease(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"holderIdentity": "test"}}


def _status_of_refusal(account: KubernetesObjects, method: str, path: str, body: object = None) -> int:
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(requests.HTTPError) as caught:
        account.request(method, path, body, content_type=content_type)
    return int(caught.value.response.status_code)


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods", "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"])
def test_the_account_may_list_and_watch_what_the_controller_needs(installed: Lab, path: str) -> None:
    control_plane = installed.kubernetes
    with control_plane.session(control_plane.service_account_token(NAMESPACE, "yarn-copilot")) as session:
        assert "items" in session.get(control_plane.url + path, timeout=30).json()
        watch = session.get(f"{control_plane.url}{path}?watch=true&timeoutSeconds=1", stream=True, timeout=30)
        assert watch.status_code == 200
        watch.close()


def test_the_account_may_annotate_a_node_and_not_change_its_status(account: KubernetesObjects) -> None:
    annotated = account.annotate_node(NODE, {"node.koordinator.sh/thirdPartyAllocations": "{}"})
    assert annotated["metadata"]["annotations"]["node.koordinator.sh/thirdPartyAllocations"] == "{}"
    assert _status_of_refusal(account, "PATCH", f"/api/v1/nodes/{NODE}/status", {"status": {}}) == 403


def test_the_account_may_hold_its_own_lease_and_no_other(account: KubernetesObjects) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    held = account.request("POST", leases, _lease("yarn-copilot"))
    assert account.request("PUT", f"{leases}/yarn-copilot", held)["spec"]["holderIdentity"] == "test"
    assert account.get(f"{leases}/yarn-copilot")["metadata"]["name"] == "yarn-copilot"
    assert _status_of_refusal(account, "GET", f"{leases}/other") == 403
    assert _status_of_refusal(account, "DELETE", f"{leases}/yarn-copilot") == 403
    elsewhere = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert _status_of_refusal(account, "POST", elsewhere, {"metadata": {"name": "yarn-copilot"}}) == 403


def test_the_account_may_tell_events_about_nodes(account: KubernetesObjects) -> None:
    account.request("POST", "/api/v1/namespaces/default/events", EVENT)
    assert account.merge("/api/v1/namespaces/default/events/test.1", {"count": 2})["count"] == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/events"),
        ("DELETE", f"/api/v1/nodes/{NODE}"),
        ("DELETE", "/api/v1/namespaces/default/pods/any"),
        ("POST", "/api/v1/namespaces/default/pods/any/eviction"),
        ("DELETE", f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}"),
    ],
)
def test_the_account_may_do_nothing_else(account: KubernetesObjects, method: str, path: str) -> None:
    assert _status_of_refusal(account, method, path, {} if method != "GET" else None) == 403


def test_the_host_application_patch_sets_its_one_key(prepared: Lab) -> None:
    objects = prepared.kubernetes.objects()
    objects.create_namespace(NAMESPACE)
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    objects.request("POST", maps, {"metadata": {"name": "slo-controller-config"}, "data": {"colocation-config": "{}"}})
    patch = yaml.safe_load((ROOT / "hadoop-config/koordinator/host-application.yaml").read_text(encoding="utf-8"))
    patched = objects.request(
        "PATCH", f"{maps}/slo-controller-config", patch, content_type="application/strategic-merge-patch+json"
    )
    assert patched["data"] == {"colocation-config": "{}", **patch["data"]}


def test_the_node_manifests_are_created_as_they_are_written(prepared: Lab) -> None:
    objects = prepared.kubernetes.objects()
    kustomization = yaml.safe_load((ROOT / "deploy/node/kustomization.yaml").read_text(encoding="utf-8"))
    assert kustomization["namespace"] == NODE_NAMESPACE
    objects.create_namespace(NODE_NAMESPACE)
    documents = _documents("node")
    assert sorted(one["kind"] for one in documents) == ["ConfigMap", "ConfigMap", "DaemonSet"]
    for document in documents:
        collection = _collection(document, NODE_NAMESPACE)
        created = objects.request("POST", f"{collection}?fieldValidation=Strict", document)
        _assert_holds(created, document)


def test_a_wrong_field_of_a_node_manifest_would_be_refused(prepared: Lab) -> None:
    objects = prepared.kubernetes.objects()
    objects.create_namespace(NODE_NAMESPACE)
    (daemon_set,) = [one for one in _documents("node") if one["kind"] == "DaemonSet"]
    daemon_set["metadata"]["name"] = "wrong"
    pod = daemon_set["spec"]["template"]["spec"]
    pod["hostPid"] = pod.pop("hostPID")
    url = f"{_collection(daemon_set, NODE_NAMESPACE)}?fieldValidation=Strict"
    with pytest.raises(requests.HTTPError) as caught:
        objects.request("POST", url, daemon_set)
    assert caught.value.response.status_code == 400
    assert "hostPid" in caught.value.response.text


def _assert_holds(stored: Any, written: Any) -> None:
    """Check that what the API server stored has everything that was written; it adds defaults."""
    if isinstance(written, dict):
        for key, value in written.items():
            assert key in stored
            _assert_holds(stored[key], value)
    elif isinstance(written, list):
        assert len(stored) == len(written)
        for one, other in zip(stored, written, strict=True):
            _assert_holds(one, other)
    else:
        assert stored == written


def _client(lab: Lab, user: str) -> ResourceManagerClient:
    (cluster,) = read_clusters(lab.yarn.conf_dir).values()
    return ResourceManagerClient(cluster, user=user)


async def _only_node(client: ResourceManagerClient) -> NodeReport:
    (node,) = await client.get_cluster_nodes()
    return node


async def test_a_node_registers_with_the_floor_and_only_the_bridges_user_changes_it(prepared: Lab) -> None:
    bridge, stranger = _client(prepared, "yarn"), _client(prepared, "stranger")
    try:
        node = await _only_node(bridge)
        assert (node.capability.memory_mib, node.capability.vcores) == (1024, 1)
        update = NodeResourceUpdate(node.node_id, Resource(2048, 2), FAR_OVERCOMMIT_TIMEOUT_MILLIS)
        with pytest.raises(AccessDeniedError):
            await stranger.update_node_resource([update])
        await bridge.update_node_resource([update])
        node = await _only_node(bridge)
        assert (node.capability.memory_mib, node.capability.vcores) == (2048, 2)
    finally:
        await bridge.aclose()
        await stranger.aclose()

# SPDX-License-Identifier: Apache-2.0
"""Check that what `deploy/` and `hadoop-config/` hold can be read, fits together, and grants no more than needed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from yarn_copilot.config.loading import parse_settings
from yarn_copilot.config.settings import Settings
from yarn_copilot.hadoop.configuration import read_clusters

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
KUSTOMIZATION = ROOT / "deploy" / "kubernetes" / "kustomization.yaml"
HADOOP = ROOT / "hadoop-config"
NAMESPACED_BY_HAND = {"ClusterRoleBinding", "RoleBinding"}


@cache
def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def objects(kind: str) -> list[Any]:
    return [each for path in MANIFESTS if path != KUSTOMIZATION for each in documents(path) if each["kind"] == kind]


def the(kind: str, name: str = "yarn-copilot") -> Any:
    (found,) = [each for each in objects(kind) if each["metadata"]["name"] == name]
    return found


def container() -> Any:
    (only,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    return only


def settings() -> Settings:
    return parse_settings(the("ConfigMap")["data"]["config.yaml"].encode(), "config.yaml")


def properties(path: Path) -> dict[str, str]:
    root = ElementTree.parse(path).getroot()  # noqa: S314 - our own file
    assert root.tag == "configuration"
    listed = [(each.findtext("name", ""), each.findtext("value", "")) for each in root.findall("property")]
    assert len(dict(listed)) == len(listed)
    return dict(listed)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_every_manifest_is_an_object_without_a_namespace_of_its_own(path: Path) -> None:
    for document in documents(path):
        assert document["apiVersion"]
        assert document["kind"]
        assert "namespace" not in document.get("metadata", {})


def test_the_kustomization_lists_every_manifest() -> None:
    (kustomization,) = documents(KUSTOMIZATION)
    assert sorted(kustomization["resources"]) == [path.name for path in MANIFESTS if path != KUSTOMIZATION]


def test_the_settings_are_valid_and_only_the_documented_floor_is_set() -> None:
    assert settings().yarn.floor_memory_mib == 1024
    assert settings().leader_election.namespace is None  # the pod's own, wherever that is


def test_the_hadoop_configuration_names_a_resource_manager(tmp_path: Path) -> None:
    for name, text in the("ConfigMap", "yarn-copilot-hadoop")["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (cluster,) = read_clusters(tmp_path).values()
    assert [address.port for address in (*cluster.client_addresses, *cluster.admin_addresses)] == [8032, 8033]


def test_the_container_finds_its_files_where_they_are_mounted() -> None:
    mounts = {mount["mountPath"]: mount["name"] for mount in container()["volumeMounts"]}
    volumes = {each["name"]: each for each in the("Deployment")["spec"]["template"]["spec"]["volumes"]}
    config = Path(container()["args"][-1])
    assert volumes[mounts[str(config.parent)]]["configMap"]["name"] == "yarn-copilot"
    assert config.name in the("ConfigMap")["data"]
    assert volumes[mounts[str(settings().hadoop.conf_dir)]]["configMap"]["name"] == "yarn-copilot-hadoop"
    assert not any("subPath" in mount for mount in container()["volumeMounts"])


def test_the_probes_ask_the_port_that_is_served() -> None:
    (port,) = container()["ports"]
    assert port["containerPort"] == settings().server.port == 8080
    paths = {probe: container()[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe: asked["path"] for probe, asked in paths.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert {asked["port"] for asked in paths.values()} == {port["name"]}
    assert [each["targetPort"] for each in the("Service")["spec"]["ports"]] == [port["name"]]


def test_the_pod_runs_without_privileges() -> None:
    spec = the("Deployment")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert "limits" in container()["resources"]


def test_everything_selects_the_same_two_replicas() -> None:
    deployment = the("Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["replicas"] == 2
    assert deployment["selector"]["matchLabels"] == labels
    assert the("Service")["spec"]["selector"] == labels
    assert the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert the("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels


def test_roles_grant_exactly_what_the_program_calls() -> None:
    granted = {
        (group, resource, verb, *rule.get("resourceNames", []))
        for role in objects("ClusterRole") + objects("Role")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    reading = ("get", "list", "watch")
    assert granted == {
        *(("", "nodes", verb) for verb in (*reading, "patch")),
        *(("", "pods", verb) for verb in reading),
        *(("slo.koordinator.sh", "nodemetrics", verb) for verb in reading),
        *(("", "events", verb) for verb in ("create", "patch")),
        ("coordination.k8s.io", "leases", "create"),
        *(("coordination.k8s.io", "leases", verb, settings().leader_election.lease_name) for verb in ("get", "update")),
    }
    assert not any("*" in item for each in granted for item in each)


def test_leases_are_granted_in_one_namespace_only() -> None:
    assert not any("leases" in rule["resources"] for role in objects("ClusterRole") for rule in role["rules"])


@pytest.mark.parametrize("kind", sorted(NAMESPACED_BY_HAND))
def test_bindings_give_the_role_to_the_account_of_the_pod(kind: str) -> None:
    (kustomization,) = documents(KUSTOMIZATION)
    account = the("Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    assert the("ServiceAccount")["metadata"]["name"] == account
    (binding,) = objects(kind)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": kustomization["namespace"]}]
    role = binding["roleRef"]
    assert the(role["kind"], role["name"])


def test_vcores_count() -> None:
    scheduler = properties(HADOOP / "resource-manager" / "capacity-scheduler.xml")
    calculator = scheduler["yarn.scheduler.capacity.resource-calculator"]
    assert calculator == "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


def test_the_floor_is_the_same_everywhere_and_may_register() -> None:
    manager = properties(HADOOP / "resource-manager" / "yarn-site.xml")
    node = properties(HADOOP / "node-manager" / "yarn-site.xml")
    floor = (settings().yarn.floor_memory_mib, settings().yarn.floor_vcores)
    registered = (
        int(node["yarn.nodemanager.resource.memory-mb"]),
        int(node["yarn.nodemanager.resource.cpu-vcores"]),
    )
    assert registered == floor
    assert floor[0] >= int(manager["yarn.scheduler.minimum-allocation-mb"])
    assert floor[1] >= int(manager["yarn.scheduler.minimum-allocation-vcores"])


def test_node_ids_survive_a_restart_and_the_user_may_change_nodes() -> None:
    assert properties(HADOOP / "node-manager" / "yarn-site.xml")["yarn.nodemanager.address"].endswith(":8041")
    acl = properties(HADOOP / "resource-manager" / "yarn-site.xml")["yarn.admin.acl"]
    assert settings().hadoop.user in acl.split(" ")[0].split(",")


def test_koordinator_is_told_that_yarn_is_batch_work() -> None:
    (patch,) = documents(HADOOP / "koordinator" / "host-application.yaml")
    (application,) = json.loads(patch["data"]["host-application-config"])["applications"]
    assert (application["priority"], application["qos"]) == ("koord-batch", "BE")
    assert application["cgroupPath"] == {"base": "KubepodsBesteffort", "relativePath": "hadoop-yarn/"}


def test_every_property_says_why() -> None:
    for path in HADOOP.rglob("*.xml"):
        for each in ElementTree.parse(path).getroot().findall("property"):  # noqa: S314 - our own file
            assert len(each.findtext("description", "").split()) > 3, (path, each.findtext("name"))

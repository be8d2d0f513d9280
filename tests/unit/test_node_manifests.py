# SPDX-License-Identifier: Apache-2.0
"""Check that what `deploy/node` and `deploy/images` hold fits together and to the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from nm_proxy.settings import SCHEMA, NodeSettings
from yarn_copilot.config.loading import parse_as
from yarn_copilot.config.selectors import parse_selector, selector_matches
from yarn_copilot.config.settings import Settings
from yarn_copilot.hadoop.configuration import read_clusters

ROOT = Path(__file__).parents[2]
NODE = ROOT / "deploy" / "node"


def document(name: str) -> Any:
    return yaml.safe_load((NODE / name).read_text(encoding="utf-8"))


def pod() -> Any:
    return document("daemon-set.yaml")["spec"]["template"]


def settings() -> NodeSettings:
    text = document("config.yaml")["data"]["nm-proxy.yaml"]
    parsed: NodeSettings = parse_as(SCHEMA, text.encode(), "nm-proxy.yaml", {})
    return parsed


def mounts(container: dict[str, Any]) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def test_the_kustomization_lists_every_manifest() -> None:
    names = {path.name for path in NODE.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(document("kustomization.yaml")["resources"]) == names


def test_the_pod_is_neither_preempted_nor_evicted_by_batch_work() -> None:
    assert pod()["spec"]["priorityClassName"]
    assert pod()["metadata"]["annotations"]["koordinator.sh/eviction-policy"] == "[]"


def test_kubelet_waits_as_long_as_a_stop_may_take() -> None:
    assert pod()["spec"]["terminationGracePeriodSeconds"] == settings().stop.grace_seconds


def test_everything_that_the_settings_name_is_mounted() -> None:
    found = settings()
    volumes = {volume["name"] for volume in pod()["spec"]["volumes"]}
    wanted = {str(found.cgroup.root), str(found.hadoop.conf_dir), str(Path(str(found.copilot.socket)).parent)}
    wanted |= {str(Path(str(found.recovery.directory)).parent), "/data/yarn", "/etc/nm-proxy"}
    for container in (*pod()["spec"]["containers"], *pod()["spec"]["initContainers"]):
        assert set(mounts(container)) == wanted
        assert set(mounts(container).values()) == volumes
        assert container["securityContext"]["privileged"]


def test_the_cgroup_tree_is_the_hosts_and_writable() -> None:
    (volume,) = [one for one in pod()["spec"]["volumes"] if one["name"] == "cgroup"]
    assert volume["hostPath"]["path"] == "/sys/fs/cgroup"
    (mount,) = [one for one in pod()["spec"]["containers"][0]["volumeMounts"] if one["name"] == "cgroup"]
    assert not mount.get("readOnly", False)


def test_probes_ask_the_port_that_is_served() -> None:
    (container,) = pod()["spec"]["containers"]
    (port,) = container["ports"]
    assert port["containerPort"] == settings().health.port
    assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} == {"health"}


def test_the_controller_finds_the_pod_by_its_labels() -> None:
    wanted = parse_selector(Settings().node_managers.pod_selector)
    assert selector_matches(wanted, pod()["metadata"]["labels"])


def test_the_hadoop_configuration_can_be_read(tmp_path: Path) -> None:
    for name, text in document("hadoop.yaml")["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(read_clusters(tmp_path)) == 1


def test_images_copy_what_the_make_target_writes_and_use_no_network() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in (ROOT / "deploy" / "images").glob("*.Dockerfile"):
        text = path.read_text(encoding="utf-8")
        copied = [line.split()[1] for line in text.splitlines() if line.startswith("COPY ")]
        assert all(f"$(IMAGE)/{name}" in makefile for name in copied)
        assert "ARG BASE" in text
        assert not any(word in text for word in ("pip install", "apt-get", "curl", "wget"))

# SPDX-License-Identifier: Apache-2.0
"""Check that what `deploy/node` and `deploy/images` hold fits together and to the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from nm_proxy.settings import SCHEMA, NodeSettings
from yarn_copilot.config.loading import parse_as, parse_settings
from yarn_copilot.config.selectors import parse_selector, selector_matches
from yarn_copilot.config.settings import Settings
from yarn_copilot.controller.state.pods import PodReducer
from yarn_copilot.controller.state.selectors import LabelSelector
from yarn_copilot.hadoop.configuration import read_clusters
from yarn_copilot.kube.model import Pod

ROOT = Path(__file__).parents[2]
NODE = ROOT / "deploy" / "node"
TLS = ROOT / "deploy" / "node-tls"
HADOOP_PORTS = {
    *(8030, 8031, 8032, 8033, 8040, 8041, 8042, 8044, 8045, 8046, 8047, 8048, 8049),
    *(8069, 8070, 8088, 8089, 8090, 8091, 8188, 8190, 8788),
}
"""Those of yarn-default.xml (Hadoop 3.5.0) between 8000 and 9000."""


def document(name: str) -> Any:
    return yaml.safe_load((NODE / name).read_text(encoding="utf-8"))


def pod() -> Any:
    return document("daemon-set.yaml")["spec"]["template"]


def settings(environ: dict[str, str] | None = None) -> NodeSettings:
    text = document("config.yaml")["data"]["nm-proxy.yaml"]
    parsed: NodeSettings = parse_as(SCHEMA, text.encode(), "nm-proxy.yaml", environ or {})
    return parsed


def patch() -> Any:
    return yaml.safe_load((TLS / "copilot.yaml").read_text(encoding="utf-8"))


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
    (port,) = [one for one in container["ports"] if one["name"] == "health"]
    assert port["containerPort"] == settings().health.port
    assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} == {"health"}


def test_the_controller_finds_the_pod_by_its_labels() -> None:
    wanted = parse_selector(Settings().node_managers.pod_selector)
    assert selector_matches(wanted, pod()["metadata"]["labels"])


def test_the_controller_finds_the_port_at_which_the_node_tells_its_state() -> None:
    template = pod()
    running = {
        "metadata": {**template["metadata"], "name": "yarn-node-manager-x", "namespace": "hadoop"},
        "spec": {**template["spec"], "nodeName": "node-1"},
        "status": {"phase": "Running", "podIP": "10.0.0.7"},
    }
    reduce = PodReducer(LabelSelector.parse(Settings().node_managers.pod_selector))
    manager = reduce(msgspec.convert(running, Pod)).manager
    assert manager is not None
    assert manager.agent_port == settings().copilot.port
    assert manager.agent_port not in {None, 0, settings().health.port, *HADOOP_PORTS}


def test_over_plain_http_nobody_is_killed() -> None:
    found = settings().copilot
    assert (found.tls_certificate, found.tls_key, found.kill_token) == (None, None, None)


def test_the_patch_for_tls_names_what_is_there_and_what_it_mounts() -> None:
    kustomization = yaml.safe_load((TLS / "kustomization.yaml").read_text(encoding="utf-8"))
    assert kustomization["namespace"] == document("kustomization.yaml")["namespace"]
    assert [(TLS / one).resolve() for one in kustomization["resources"]] == [NODE]
    assert [one["path"] for one in kustomization["patches"]] == ["copilot.yaml"]
    base = document("daemon-set.yaml")
    assert (patch()["kind"], patch()["metadata"]["name"]) == (base["kind"], base["metadata"]["name"])
    spec = patch()["spec"]["template"]["spec"]
    (container,), (volume,) = spec["containers"], spec["volumes"]
    assert container["name"] in {one["name"] for one in pod()["spec"]["containers"]}
    assert volume["name"] not in {one["name"] for one in pod()["spec"]["volumes"]}
    (mount,) = container["volumeMounts"]
    assert mount["name"] == volume["name"]
    found = settings({one["name"]: one["value"] for one in container["env"]}).copilot
    files = [found.tls_certificate, found.tls_key, found.kill_token]
    assert [Path(str(one)).name for one in files] == ["tls.crt", "tls.key", "token"]
    assert {str(Path(str(one)).parent) for one in files} == {mount["mountPath"]}
    readme = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    for source in volume["projected"]["sources"]:
        assert source["secret"]["name"] in readme


def test_the_controllers_half_of_tls_in_the_readme_is_valid() -> None:
    readme = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    (block,) = [one for one in readme.split("```yaml\n")[1:] if one.startswith("node_agents:")]
    found = parse_settings(block.partition("```")[0].encode(), "README.md").node_agents
    assert found.tls
    assert found.token_file is not None


def test_the_hadoop_configuration_can_be_read(tmp_path: Path) -> None:
    for name, text in document("hadoop.yaml")["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(read_clusters(tmp_path)) == 1


def test_the_mount_hides_the_images_files_so_those_that_always_have_to_be_there_are() -> None:
    files = document("hadoop.yaml")["data"]
    assert {"yarn-site.xml", "core-site.xml", "log4j.properties"} <= set(files)
    readme = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
    for name in (*files, "hdfs-site.xml", "hadoop-env.sh", "ssl-server.xml", "capacity-scheduler.xml"):
        assert f"`{name}`" in readme
    assert "fs.defaultFS" in files["core-site.xml"]


def test_the_node_manager_logs_to_the_containers_log() -> None:
    lines = document("hadoop.yaml")["data"]["log4j.properties"].splitlines()
    properties = dict(line.split("=", 1) for line in lines if line)
    assert properties["log4j.rootLogger"] == "${hadoop.root.logger}"
    level, appender = properties["hadoop.root.logger"].split(",")
    assert (level, properties[f"log4j.appender.{appender}"]) == ("INFO", "org.apache.log4j.ConsoleAppender")


def test_images_copy_what_the_make_target_writes_and_use_no_network() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in (ROOT / "deploy" / "images").glob("*.Dockerfile"):
        text = path.read_text(encoding="utf-8")
        copied = [line.split()[1] for line in text.splitlines() if line.startswith("COPY ")]
        assert all(f"$(IMAGE)/{name}" in makefile for name in copied)
        assert "ARG BASE" in text
        assert not any(word in text for word in ("pip install", "apt-get", "curl", "wget"))

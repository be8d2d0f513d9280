# SPDX-License-Identifier: Apache-2.0
"""`yarn-copilot doctor` against embedded servers: what it sees, what it prints, and that it changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from lab.embedded.kubernetes import EmbeddedKubernetes
from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions
from lab.embedded.yarn.web_service import EmbeddedWebService
from tests.contract.programs import start_python
from yarn_copilot.cli.doctor.command import examine
from yarn_copilot.cli.doctor.findings import Check, Finding, Severity
from yarn_copilot.cli.doctor.observing import can_be_resolved
from yarn_copilot.config.settings import Settings
from yarn_copilot.hadoop import configuration_defaults as keys

RM = "yarn.resourcemanager"
ROOT = Path(__file__).resolve().parents[3]


class Site:
    """Be an installation: a cluster with its web service, and a Hadoop folder that leads there."""

    def __init__(self, yarn: EmbeddedYarn, service: EmbeddedWebService, folder: Path) -> None:
        self.yarn = yarn
        self.service = service
        self.folder = folder
        service.properties = {
            keys.ADMIN_ACL: "yarn", keys.ACL_ENABLED: "true",
            keys.MINIMUM_MEMORY_MIB: "128", keys.MINIMUM_VCORES: "1",
        }  # fmt: skip
        self.write()
        self.write(
            "capacity-scheduler.xml",
            {keys.RESOURCE_CALCULATOR: "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"},
        )

    def write(self, name: str = "yarn-site.xml", properties: dict[str, str] | None = None) -> None:
        """Write a file; yarn-site.xml with changes."""
        site = {
            f"{RM}.address": f"127.0.0.1:{self.yarn.client_port.port}",
            f"{RM}.admin.address": f"127.0.0.1:{self.yarn.admin_port.port}",
            f"{RM}.webapp.address": f"127.0.0.1:{self.service.port}",
        }
        chosen = {**site, **(properties or {})} if name == "yarn-site.xml" else properties or {}
        lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in chosen.items()]
        (self.folder / name).write_text("<configuration>" + "".join(lines) + "</configuration>")

    async def examine(self, known_hosts: frozenset[str] = frozenset({"nm-1"}), **hadoop: Any) -> list[Finding]:
        """Run all checks without Kubernetes."""

        async def resolve(host: str) -> bool:
            return host in known_hosts

        settings = Settings.model_validate({"hadoop": {"conf_dir": str(self.folder), **hadoop}})
        return await examine(settings, {}, with_kubernetes=False, progress=lambda text: None, resolve=resolve)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    options = EmbeddedYarnOptions(heartbeat_seconds=None, admins=frozenset({"yarn"}))
    async with EmbeddedYarn(options) as yarn, EmbeddedWebService(yarn) as service:
        yarn.add_node("nm-1", memory_mib=1024, vcores=1)
        folder = tmp_path / "hadoop"
        folder.mkdir()
        yield Site(yarn, service, folder)


def bad(findings: list[Finding]) -> dict[Check, Severity]:
    """Give what is worse than a note, by check."""
    return {one.check: one.severity for one in findings if one.severity in (Severity.WARNING, Severity.ERROR)}


async def test_a_healthy_installation_has_no_problem_and_is_not_changed(site: Site) -> None:
    findings = await site.examine()
    assert bad(findings) == {}
    assert site.yarn.updates == []
    assert site.service.bodies == []


async def test_a_user_who_may_not_write_is_found_before_anything_is_written(site: Site) -> None:
    assert bad(await site.examine(user="somebody")) == {Check.ADMIN_ACL: Severity.ERROR}
    assert site.yarn.updates == []


async def test_swapped_ports_are_found(site: Site) -> None:
    site.write(properties={f"{RM}.admin.address": f"127.0.0.1:{site.service.port}"})
    assert bad(await site.examine())[Check.PORT] is Severity.ERROR


async def test_a_dead_resource_manager_is_found(site: Site) -> None:
    await site.yarn.stop_rm()
    assert bad(await site.examine())[Check.REACHABLE] is Severity.ERROR


async def test_an_old_version_is_found(site: Site) -> None:
    site.service.version = "3.2.1"
    assert bad(await site.examine()) == {Check.VERSION: Severity.ERROR}


async def test_a_wrong_clock_is_found(site: Site) -> None:
    site.service.always = lambda request: (
        web.json_response(
            {"clusterInfo": {"resourceManagerVersion": "3.5.0"}}, headers={"Date": "Tue, 01 Dec 2020 00:00:00 GMT"}
        )
        if request.path.endswith("/info")
        else None
    )
    assert bad(await site.examine()) == {Check.CLOCK: Severity.WARNING}


async def test_a_minimum_above_the_floor_is_found_in_the_running_configuration(site: Site) -> None:
    site.service.properties[keys.MINIMUM_MEMORY_MIB] = "4096"
    assert bad(await site.examine())[Check.MINIMUM] is Severity.ERROR


async def test_the_default_calculator_is_found(site: Site) -> None:
    site.write("capacity-scheduler.xml", {"yarn.scheduler.capacity.root.queues": "default"})
    assert bad(await site.examine()) == {Check.CALCULATOR: Severity.ERROR}


async def test_an_overlapping_dynamic_resources_file_is_found(site: Site) -> None:
    site.write("dynamic-resources.xml", {keys.DYNAMIC_NODES: " nm-1:8041 , other:1"})
    assert bad(await site.examine()) == {Check.DYNAMIC_RESOURCES: Severity.ERROR}


async def test_a_host_name_that_means_nothing_here_is_found(site: Site) -> None:
    assert bad(await site.examine(known_hosts=frozenset())) == {Check.NAMES: Severity.WARNING}


async def test_what_a_node_manager_registers_with_is_asked_of_it(site: Site) -> None:
    async with EmbeddedWebService(site.yarn) as manager:
        manager.properties = {keys.NODE_MEMORY_MIB: "65536", keys.NODE_VCORES: "16"}
        site.yarn.add_node("127.0.0.1", memory_mib=65536, vcores=16, http_port=manager.port)
        found = [one for one in await site.examine() if one.check is Check.REGISTERED]
    assert [one.severity for one in found] == [Severity.WARNING, Severity.NOTE]
    assert "127.0.0.1:8041" in found[0].where


async def test_a_broken_cluster_does_not_keep_the_others_from_being_checked(site: Site) -> None:
    (site.folder / "b.yarn-site.xml").write_text("<configuration>")
    findings = await site.examine()
    assert bad(findings) == {Check.CONFIGURATION: Severity.ERROR}
    assert any(one.check is Check.REACHABLE and one.severity is Severity.OK for one in findings)


async def test_a_cluster_that_asks_for_what_cannot_be_is_told_by_its_key_beside_the_others(site: Site) -> None:
    principal = {
        "hadoop.security.authentication": "kerberos",
        f"{RM}.principal": "rm@R",
        f"{RM}.hostname": "rm.invalid",
    }
    site.write("b.yarn-site.xml", principal)
    findings = await site.examine()
    (error,) = [one for one in findings if one.severity is Severity.ERROR]
    assert (error.check, error.cluster) == (Check.CONFIGURATION, "b")
    assert f"{RM}.principal = 'rm@R' has no host part" in error.found
    assert any(one.check is Check.REACHABLE and one.severity is Severity.OK for one in findings)


async def test_rest_is_checked_over_the_web_port_alone(site: Site) -> None:
    calls = site.yarn.calls.total()
    assert bad(await site.examine(transport="rest")) == {Check.TRANSPORT: Severity.WARNING}
    assert site.yarn.calls.total() == calls


async def test_a_proxy_user_that_rest_cannot_be_is_told(site: Site) -> None:
    told = [one for one in await site.examine(transport="rest", proxy_user="alice") if one.check is Check.TRANSPORT]
    assert "not made in the name of alice" in told[1].found
    assert "under any name" in told[0].why


async def test_the_resolver_of_this_machine_knows_localhost_and_no_invalid_name() -> None:
    assert await can_be_resolved("localhost")
    assert not await can_be_resolved("nm-1.invalid")


async def test_a_closed_web_port_leaves_the_version_unknown(site: Site) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        site.write(properties={f"{RM}.webapp.address": f"127.0.0.1:{closed.getsockname()[1]}"})
        found = bad(await site.examine())
    assert found == {Check.VERSION: Severity.WARNING}


async def run(folder: Path, settings: dict[str, Any], *arguments: str) -> tuple[int, str]:
    """Run the command as a person does."""
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    process = await start_python("-m", "yarn_copilot.cli.main", "doctor", "--config", str(config), *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    out, error = await process.communicate()
    assert b"Traceback" not in error, error.decode()
    return process.returncode or 0, out.decode() + error.decode()


async def test_the_command_matches_pods_and_ends_with_the_right_code(site: Site, tmp_path: Path) -> None:
    async with EmbeddedKubernetes() as kubernetes:
        kubeconfig = kubernetes.kubeconfig(tmp_path / "kubeconfig")
        settings = {"hadoop": {"conf_dir": str(site.folder)}, "kubernetes": {"kubeconfig": str(kubeconfig)}}
        kubernetes.objects.create_node("worker-1", annotations={}, allocatable={})

        code, text = await run(tmp_path, settings, "-o", "json")
        document = json.loads(text)
        matching = [one for one in document["findings"] if one["check"] == "nodemanager-matching"]
        assert (code, document["exit_code"]) == (3, 3)
        assert [(one["severity"], one["where"]) for one in matching] == [("warning", "nm-1:8041")]

        kubernetes.objects.create_pod(
            "nm-1", node_name="worker-1", labels={"app.kubernetes.io/component": "node-manager"}
        )
        code, text = await run(tmp_path, settings)
        assert "1 NodeManagers match their pods or Nodes" in text
        assert "fix: " in text  # the name nm-1 cannot be resolved
        assert code == 3
    assert site.yarn.updates == []


async def test_kubernetes_out_of_reach_is_a_warning_and_can_be_left_out(site: Site, tmp_path: Path) -> None:
    settings = {"hadoop": {"conf_dir": str(site.folder)}, "kubernetes": {"kubeconfig": str(tmp_path / "nowhere")}}
    code, text = await run(tmp_path, settings)
    assert (code, "nodes and pods cannot be listed" in text) == (3, True)
    _, text = await run(tmp_path, settings, "--no-kubernetes")
    assert "nodes and pods" not in text


async def test_an_error_ends_with_one_and_a_wrong_folder_with_two(site: Site, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"hadoop": {"conf_dir": str(site.folder), "user": "nobody"}}
    assert (await run(tmp_path, settings, "--no-kubernetes"))[0] == 1
    settings["hadoop"]["conf_dir"] = "/nowhere"
    code, text = await run(tmp_path, settings, "--no-kubernetes")
    assert (code, "/nowhere: No such file" in text) == (2, True)

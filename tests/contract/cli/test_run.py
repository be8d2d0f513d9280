# SPDX-License-Identifier: Apache-2.0
"""`yarn-copilot run` as a process: it becomes ready, leads, reloads, hands over and ends well."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from lab.embedded.yarn import EmbeddedYarn
from tests.contract.cli.running import Program

ORIGIN = "node.koordinator.sh/originExtendedAllocatable"
THIRD = "node.koordinator.sh/thirdPartyAllocations"
GIB = 1 << 30


@pytest.fixture
async def kubernetes() -> AsyncIterator[EmbeddedKubernetes]:
    async with EmbeddedKubernetes() as kubernetes:
        origin = {"resources": {"kubernetes.io/batch-cpu": 10000, "kubernetes.io/batch-memory": 20 * GIB}}
        kubernetes.objects.create_node(
            "worker-1",
            annotations={ORIGIN: json.dumps(origin)},
            allocatable={"kubernetes.io/batch-cpu": "10k", "kubernetes.io/batch-memory": str(20 * GIB)},
        )
        kubernetes.objects.create_pod(
            "nm-1", node_name="worker-1", labels={"app.kubernetes.io/component": "node-manager"}
        )
        override = {"yarn.hadoop.apache.org/node-id": "worker-1:8041"}
        kubernetes.objects.merge("pods", "default/nm-1", {"metadata": {"annotations": override}})
        yield kubernetes


@pytest.fixture
async def yarn() -> AsyncIterator[EmbeddedYarn]:
    async with EmbeddedYarn() as yarn:
        yarn.add_node("worker-1", memory_mib=1024, vcores=1)
        yield yarn


@pytest.fixture
def settings(kubernetes: EmbeddedKubernetes, yarn: EmbeddedYarn, tmp_path: Path) -> dict[str, Any]:
    return {
        "kubernetes": {"kubeconfig": str(kubernetes.kubeconfig(tmp_path / "kubeconfig"))},
        "hadoop": {"conf_dir": str(yarn.conf_dir(tmp_path / "conf"))},
        "capacity": {"mode": "shared", "growth_window_seconds": 0, "require_node_metric": False},
        "leader_election": {"retry_period_seconds": 0.2},
        "server": {"bind_address": "127.0.0.1"},
    }


async def test_runs_from_start_to_a_clean_end(
    settings: dict[str, Any], kubernetes: EmbeddedKubernetes, yarn: EmbeddedYarn, tmp_path: Path
) -> None:
    async with Program(tmp_path, settings) as program:
        await program.ready()
        await program.until(lambda: bool(yarn.updates), "capacity is sent to the ResourceManager")
        await program.until(
            lambda: THIRD in kubernetes.objects.get("nodes", "worker-1")["metadata"]["annotations"],
            "the claim is written",
        )

        async def is_applied() -> bool:
            return "10.0/20.0Gi" in (await program.command("nodes")).splitlines()[1]

        await program.until_async(is_applied, "the commands show the capacity as applied")
        assert "leader, term 1" in await program.command("status")

        async def shows_queues() -> bool:
            return "root" in await program.command("queues")

        await program.until_async(shows_queues, "the queues have been read")
        assert "Origin" in await program.command("explain", "worker-1")
        text = await program.metrics()
        assert 'yarn_copilot_node_origin_cpu_cores{node="worker-1"} 10\n' in text
        assert "yarn_copilot_leader 1.0" in text
        assert await program.stop() == 0
        lease = kubernetes.objects.get("leases", "koordinator-system/yarn-copilot")
        assert lease["spec"]["holderIdentity"] == ""
        assert "Traceback" not in program.log_text()


async def test_a_standby_serves_and_takes_over_at_once_after_a_clean_end(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    async with Program(tmp_path, settings, "one") as first:
        await first.ready()
        await first.until(lambda: "Became leader" in first.log_text(), "the first leads")
        async with Program(tmp_path, settings, "two") as second:
            await second.ready()
            _, content = await second.get("/api/v1/nodes")
            assert content["leader"] is False
            assert content["age_seconds"] is not None
            assert await first.stop(signal.SIGINT) == 0

            async def leads() -> bool:
                return bool((await second.get("/api/v1/status"))[1]["leader"])

            await second.until_async(leads, "the second leads")
            assert await second.stop() == 0


async def test_reloads_its_file_and_keeps_the_last_good_one(settings: dict[str, Any], tmp_path: Path) -> None:
    async with Program(tmp_path, settings) as program:
        await program.ready()
        program.write({**settings, "log": {"level": "DEBUG"}})
        await program.until(lambda: "log.level: INFO -> DEBUG" in program.log_text(), "the new level is told")
        program.write({**settings, "log": {"level": "loud"}})
        await program.until(lambda: "configuration refused" in program.log_text(), "the bad file is refused")
        _, content = await program.get("/api/v1/status")
        assert content["controller"]["config"]["ok"] is False
        assert "log.level: is 'loud'" in content["controller"]["config"]["error"]
        assert "yarn_copilot_config_last_reload_successful 0.0" in await program.metrics()
        assert await program.stop() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hadoop": {"conf_dir": "/nowhere"}}, "/nowhere: No such file"),
        ({"kubernetes": {"kubeconfig": "/nowhere/config"}}, "/nowhere/config"),
    ],
)
async def test_does_not_start_with_what_cannot_work(
    settings: dict[str, Any], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    program = Program(tmp_path, {**settings, **change})
    with pytest.raises(AssertionError):
        async with program:
            pass
    assert message in program.log_text()
    assert "Traceback" not in program.log_text()


async def test_follows_the_hadoop_folder_without_a_restart(
    settings: dict[str, Any], kubernetes: EmbeddedKubernetes, yarn: EmbeddedYarn, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    settings["node_managers"] = {"default_cluster": "default"}
    async with Program(tmp_path, settings) as program, EmbeddedYarn() as other:
        await program.ready()
        await program.until(lambda: bool(yarn.updates), "capacity is sent to the first cluster")

        (conf / "late.yarn-site.xml").write_text("<configuration/>")
        await program.until(lambda: "cluster late is left as it was" in program.log_text(), "the mistake is told")
        other.add_node("worker-2", memory_mib=1024, vcores=1)
        annotations = {
            "yarn.hadoop.apache.org/node-id": "worker-2:8041",
            "yarn.hadoop.apache.org/cluster-id": "late",
        }
        origin = {"resources": {"kubernetes.io/batch-cpu": 4000, "kubernetes.io/batch-memory": 8 * GIB}}
        kubernetes.objects.create_node("worker-2", annotations={ORIGIN: json.dumps(origin)}, allocatable={})
        kubernetes.objects.create_pod(
            "nm-2", node_name="worker-2", labels={"app.kubernetes.io/component": "node-manager"}
        )
        kubernetes.objects.merge("pods", "default/nm-2", {"metadata": {"annotations": annotations}})
        other.conf_dir(conf, cluster_id="late")
        await program.until(lambda: "cluster late added" in program.log_text(), "the cluster is added")
        await program.until(lambda: bool(other.updates), "capacity is sent to the new cluster")

        (conf / "late.yarn-site.xml").unlink()
        await program.until(lambda: "cluster late removed" in program.log_text(), "the cluster is removed")
        _, content = await program.get("/api/v1/clusters")
        assert [cluster["id"] for cluster in content["clusters"]] == ["default"]
        assert await program.stop() == 0
        assert "Traceback" not in program.log_text()


async def test_starts_with_the_clusters_that_are_right(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "conf" / "broken.yarn-site.xml").write_text("<configuration>")
    async with Program(tmp_path, settings) as program:
        await program.ready()
        assert "cluster broken is left as it was" in program.log_text()
        assert await program.stop() == 0


async def test_a_cluster_that_the_settings_refuse_runs_once_they_are_mended(
    settings: dict[str, Any], yarn: EmbeddedYarn, tmp_path: Path
) -> None:
    yarn.conf_dir(tmp_path / "conf", cluster_id="late")
    mended = {**settings, "hadoop": {**settings["hadoop"], "cluster_transports": {}}}
    settings["hadoop"]["cluster_transports"] = {"late": "rest"}
    async with Program(tmp_path, settings) as program:
        await program.ready()
        assert "cluster late: transport rest needs" in program.log_text()
        program.write(mended)
        await program.until(lambda: "cluster late is no longer refused" in program.log_text(), "it is tried again")

        async def both_are_reached() -> bool:
            _, content = await program.get("/api/v1/clusters")
            found = {cluster["id"]: cluster["reachable"] for cluster in content["clusters"]}
            return found == {"default": True, "late": True}

        await program.until_async(both_are_reached, "both clusters are read")
        assert await program.stop() == 0
        assert "Traceback" not in program.log_text()

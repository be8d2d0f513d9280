# SPDX-License-Identifier: Apache-2.0
"""The commands that give orders, as processes with a kubeconfig of their own, beside a running controller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from lab.embedded.yarn import EmbeddedYarn
from tests.contract.cli.commanding import Commands
from tests.contract.cli.running import Program
from yarn_copilot.hadoop.model import NodeId

ORIGIN = "node.koordinator.sh/originExtendedAllocatable"
THIRD = "node.koordinator.sh/thirdPartyAllocations"
DRAIN = "yarn-copilot/drain"
GIB = 1 << 30
FLOOR = (1024, 1)


@pytest.fixture
async def kubernetes() -> AsyncIterator[EmbeddedKubernetes]:
    async with EmbeddedKubernetes() as kubernetes:
        origin = {"resources": {"kubernetes.io/batch-cpu": 10000, "kubernetes.io/batch-memory": 20 * GIB}}
        for number in (1, 2):
            name = f"worker-{number}"
            kubernetes.objects.create_node(
                name,
                annotations={ORIGIN: json.dumps(origin)},
                labels={"rack": f"r{number}"},
                allocatable={"kubernetes.io/batch-cpu": "10k", "kubernetes.io/batch-memory": str(20 * GIB)},
            )
            kubernetes.objects.create_pod(
                f"nm-{number}", node_name=name, labels={"app.kubernetes.io/component": "node-manager"}
            )
            override = {"yarn.hadoop.apache.org/node-id": f"{name}:8041"}
            kubernetes.objects.merge("pods", f"default/nm-{number}", {"metadata": {"annotations": override}})
        yield kubernetes


@pytest.fixture
async def yarn() -> AsyncIterator[EmbeddedYarn]:
    async with EmbeddedYarn() as yarn:
        for number in (1, 2):
            yarn.add_node(f"worker-{number}", memory_mib=1024, vcores=1)
        yield yarn


@pytest.fixture
async def program(kubernetes: EmbeddedKubernetes, yarn: EmbeddedYarn, tmp_path: Path) -> AsyncIterator[Program]:
    settings = {
        "kubernetes": {"kubeconfig": str(kubernetes.kubeconfig(tmp_path / "controller"))},
        "hadoop": {"conf_dir": str(yarn.conf_dir(tmp_path / "conf"))},
        "capacity": {"mode": "shared", "growth_window_seconds": 0, "require_node_metric": False},
        "yarn": {"poll_interval_seconds": 0.1, "confirm_interval_seconds": 0.1},
        "leader_election": {"retry_period_seconds": 0.2},
        "server": {"bind_address": "127.0.0.1"},
    }
    async with Program(tmp_path, settings) as program:
        await program.ready()
        await program.until(
            lambda: all(_claims(kubernetes, f"worker-{number}") for number in (1, 2)), "both are claimed"
        )
        yield program


@pytest.fixture
def commands(kubernetes: EmbeddedKubernetes, program: Program, tmp_path: Path) -> Commands:
    token = kubernetes.add_user("operator")
    return Commands(kubernetes.kubeconfig(tmp_path / "operator", token=token), program.url)


def _annotations(kubernetes: EmbeddedKubernetes, name: str) -> dict[str, str]:
    found: dict[str, str] = kubernetes.objects.get("nodes", name)["metadata"].get("annotations", {})
    return found


def _claims(kubernetes: EmbeddedKubernetes, name: str) -> bool:
    return "hadoop-yarn" in _annotations(kubernetes, name).get(THIRD, "")


def _capacity(yarn: EmbeddedYarn, name: str) -> tuple[int, int]:
    total = yarn.node(NodeId(name, 8041)).capability
    return total.memory_mib, total.vcores


async def test_drain_waits_for_containers_and_undo_gives_the_capacity_back(
    commands: Commands, kubernetes: EmbeddedKubernetes, yarn: EmbeddedYarn, program: Program
) -> None:
    await program.until(lambda: _capacity(yarn, "worker-1")[1] == 10, "capacity follows")
    container = yarn.launch_container(NodeId("worker-1", 8041), memory_mib=2048, vcores=2)
    waiting = await commands.start("drain", "worker-1", "--wait", "--reason", "new disk")
    await program.until(lambda: _capacity(yarn, "worker-1") == FLOOR, "capacity goes to the floor")
    assert _annotations(kubernetes, "worker-1")[DRAIN] == "reason=new disk"
    yarn.finish_container(container)
    ended = await commands.ended(waiting)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "worker-1: drain ordered"
    assert lines[-1] == "worker-1: drained"
    assert any("containers left" in line for line in lines[1:-1])
    assert not yarn.killed()
    assert (await commands("drain", "worker-1", "--undo")).out == "worker-1: drain taken back\n"
    await program.until(lambda: _capacity(yarn, "worker-1")[1] == 10, "capacity comes back")
    writers = {call.user for call in kubernetes.calls.last if call.verb == "patch" and call.resource == "nodes"}
    assert "operator" in writers


async def test_a_deadline_that_passes_ends_the_wait_with_its_own_exit_code(
    commands: Commands, yarn: EmbeddedYarn, program: Program
) -> None:
    await program.until(lambda: _capacity(yarn, "worker-1")[1] == 10, "capacity follows")
    yarn.launch_container(NodeId("worker-1", 8041), memory_mib=2048, vcores=2)
    ended = await commands("drain", "worker-1", "--wait", "--deadline", "2s")
    assert ended.code == 4
    assert "the deadline is over and containers are left on worker-1" in ended.err
    assert "deadline over, 1 containers left" in ended.out
    assert not yarn.killed()


async def test_pause_cap_and_fix_are_written_by_selector_and_taken_back(
    commands: Commands, kubernetes: EmbeddedKubernetes, yarn: EmbeddedYarn, program: Program
) -> None:
    assert (await commands("cap", "-l", "rack=r1", "cpu=3,memory=4Gi")).out == "worker-1: capped\n"
    await program.until(lambda: _capacity(yarn, "worker-1") == (4096, 3), "the cap is applied")
    assert (await commands("cap", "worker-1", "--clear")).code == 0
    assert (await commands("fix", "worker-1", "worker-2", "cpu=2")).out == "worker-1: fixed\nworker-2: fixed\n"
    await program.until(lambda: _capacity(yarn, "worker-2")[1] == 2, "the fix is applied")
    assert (await commands("pause", "worker-2", "--for", "1h")).code == 0
    assert _annotations(kubernetes, "worker-2")["yarn-copilot/pause"].startswith("until=2")
    assert (await commands("fix", "worker-1", "worker-2", "--clear")).code == 0
    await program.until(lambda: _capacity(yarn, "worker-1")[1] == 10, "the fix is gone")
    assert _capacity(yarn, "worker-2")[1] == 2
    planned = (await commands("nodes", "--planned")).out
    row = next(line for line in planned.splitlines() if line.startswith("worker-2"))
    assert "paused" in row
    assert "capacity of worker-2:8041" in row
    assert (await commands("resume", "worker-2")).code == 0
    await program.until(lambda: _capacity(yarn, "worker-2")[1] == 10, "it goes on")


async def test_release_all_leaves_the_nodes_as_they_were_before(
    commands: Commands, kubernetes: EmbeddedKubernetes, yarn: EmbeddedYarn, program: Program
) -> None:
    await program.until(lambda: _capacity(yarn, "worker-2")[1] == 10, "capacity follows")
    assert (await commands("cap", "worker-1", "cpu=3")).code == 0
    first = await commands("release", "--all", "--yes", "--lease", "koordinator-system/yarn-copilot")
    assert first.code == 0, first.err
    assert "worker-1: given back; the order yarn-copilot/drain stays" in first.out
    assert "worker-2: given back" in first.out
    for name in ("worker-1", "worker-2"):
        assert _annotations(kubernetes, name).keys() - {ORIGIN} == {DRAIN}
        assert _capacity(yarn, name) == FLOOR
    assert await program.stop() == 0
    second = await commands("release", "--all", "--yes")
    assert second.code == 0, second.err
    assert second.out.splitlines()[-2:] == ["worker-1: nothing of ours is left", "worker-2: nothing of ours is left"]
    for name in ("worker-1", "worker-2"):
        assert _annotations(kubernetes, name).keys() == {ORIGIN}
    assert (await commands("release", "--all", "--yes")).out == "No node carries anything of ours.\n"


async def test_nodes_that_are_not_there_are_named(kubernetes: EmbeddedKubernetes, tmp_path: Path) -> None:
    commands = Commands(kubernetes.kubeconfig(tmp_path / "operator"))
    unknown, unmatched = await asyncio.gather(commands("drain", "nobody"), commands("drain", "-l", "rack=r9"))
    assert unknown.code == unmatched.code == 1
    assert "there is no node 'nobody'" in unknown.err
    assert "no node has the labels 'rack=r9'" in unmatched.err


async def test_who_may_not_patch_nodes_is_told_which_role_is_missing(
    kubernetes: EmbeddedKubernetes, tmp_path: Path
) -> None:
    kubernetes.forbid("nodes", "patch")
    ended = await Commands(kubernetes.kubeconfig(tmp_path / "operator"))("pause", "worker-1", "worker-2")
    assert ended.code == 1
    assert "yarn-copilot-operator" in ended.err
    assert "2 of 2 nodes were not changed: worker-1, worker-2" in ended.err


async def test_without_a_controller_a_release_says_so_and_removes_nothing(
    kubernetes: EmbeddedKubernetes, tmp_path: Path
) -> None:
    text = json.dumps({"allocations": [{"name": "hadoop-yarn", "priority": "koord-batch", "resources": {}}]})
    kubernetes.objects.merge("nodes", "worker-1", {"metadata": {"annotations": {THIRD: text}}})
    lease: dict[str, Any] = {"metadata": {"name": "yarn-copilot", "namespace": "koordinator-system"}, "spec": {}}
    kubernetes.objects.create("leases", lease)
    ended = await Commands(kubernetes.kubeconfig(tmp_path / "operator"))("release", "worker-1", "--yes")
    assert ended.code == 4
    assert "no controller runs" in ended.err
    assert _annotations(kubernetes, "worker-1")[THIRD] == text

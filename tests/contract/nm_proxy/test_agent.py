# SPDX-License-Identifier: Apache-2.0
"""Test the whole agent beside a NodeManager and a tree that misbehave."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from batch_resources.resources import BatchResources
from lab.embedded.node_manager.server import EmbeddedNodeManager, Mood
from nm_proxy.agent_settings import AgentSettings
from nm_proxy.cgroup.errors import DirectoryTakenError, TreeNotFoundError
from nm_proxy.draining import DrainState
from nm_proxy.lingering.tracking import Delays
from tests.contract.nm_proxy.running import RunningNode, running, until
from tests.unit.nm_proxy.world import container_id

MIB = 1 << 20


@pytest.mark.parametrize("kind", ["v1", "v1-joined", "mixed", "v2"])
async def test_brings_launches_in_and_limits_them(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path, kind=kind) as one:
        processes = {number: one.launch(number, memory_mib=512) for number in range(2, 12)}
        await one.settled(*processes)
        assert all(one.node.is_inside(process.pid, number) for number, process in processes.items())
        assert one.node.tree.values(one.node.path(5)).memory_bytes == 512 * MIB
        assert one.node.cpu(one.node.place.yarn) is not None


async def test_a_node_manager_that_hangs_leaves_containers_inside_and_limits_follow(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        one.pages.mood = Mood.HANGS
        process = one.launch(2)
        await until(lambda: one.node.is_inside(process.pid), "the container is inside")
        assert one.node.tree.values(one.node.path()).memory_bytes is None
        one.pages.mood = Mood.FINE
        await one.settled(2)
        assert one.node.tree.values(one.node.path()).memory_bytes == 1024 * MIB


async def test_repairs_go_on_while_the_node_manager_babbles(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        one.launch(2)
        await one.settled(2)
        for mood in (Mood.BABBLES, Mood.HANGS, Mood.FAILS, Mood.CUTS):
            one.pages.mood = mood
            one.node.set_limit(one.node.path(), str(1 << 40))
            await until(
                lambda: one.node.tree.values(one.node.path()).memory_bytes == 1024 * MIB, f"repaired with {mood}"
            )
        # The value is right a little before the agent has counted that it was put right.
        await until(lambda: b'repairs_total{what="memory"} 4.0' in one.agent.metrics.render(), "all are counted")


async def test_a_dead_node_manager_ends_nobody_before_its_time(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        process = one.launch(2)
        await one.settled(2)
        await one.pages.stop()
        await until(lambda: one.agent.reader.view.answering.value == "refuses", "it is gone")
        await one.agent.lingering.look()
        assert one.is_alive(process)
        assert one.agent.lingering.lingering == {}
        await one.pages.start()


async def test_ends_what_lingers_after_the_delay(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        process, other = one.launch(2), one.launch(3)
        await one.settled(2, 3)
        one.agent.lingering.delays = Delays(finished_seconds=0.5, dead_node_manager_seconds=900)
        one.pages.containers[container_id(2)]["state"] = "DONE"
        # The process is gone a little before the agent has seen that it is.
        counted = b'kills_total{asked_by="lingering",result="ended"} 1.0'
        await until(lambda: counted in one.agent.metrics.render(), "the end is counted")
        assert not one.is_alive(process)
        assert one.is_alive(other)


async def test_only_reports_what_lingers_when_told_so(tmp_path: Path) -> None:
    async with running(tmp_path, lingering={"enabled": False}) as one:
        process = one.launch(2)
        await one.settled(2)
        one.agent.lingering.delays = Delays(finished_seconds=0.0, dead_node_manager_seconds=900)
        del one.pages.containers[container_id(2)]
        await until(lambda: container_id(2) in one.agent.lingering.lingering, "it lingers")
        await one.agent.lingering.look()
        assert one.is_alive(process)
        text = one.agent.metrics.render().decode()
        assert "yarn_copilot_node_lingering_containers 1.0" in text
        assert "yarn_copilot_node_lingering_memory_bytes 1.073741824e+09" in text


async def test_a_tree_that_becomes_read_only_is_said_once_and_work_goes_on_afterwards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="nm_proxy")
    async with running(tmp_path) as one:
        one.launch(2)
        await one.settled(2)
        one.node.kernel.fail("write", "", errno.EROFS)
        late = one.launch(3)
        await until(lambda: _says(caplog, "readOnly: false"), "the fix is said")
        one.node.kernel.heal()
        await one.settled(3)
        assert one.node.is_inside(late.pid, 3)
        lines = [line for line in caplog.messages if line == "Cannot parent"]
        assert 1 <= len(lines) <= 4
        await until(lambda: "Parenting works again" in caplog.text, "the end is said")


async def test_a_full_disk_of_the_tree_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path) as one:
        one.node.kernel.fail("make", container_id(2), errno.ENOSPC)
        one.launch(2)
        await until(lambda: "Cannot parent" in caplog.text, "it is said")
        one.node.kernel.heal()
        await one.settled(2)


async def test_a_pass_that_breaks_in_an_unforeseen_way_does_not_end_the_program(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as one:
        scan = one.agent.adopter.full_pass
        one.agent.adopter.full_pass = _raising  # type: ignore[method-assign,assignment] # the unforeseen
        await until(lambda: "A pass over the containers failed" in caplog.text, "it is logged")
        one.agent.adopter.full_pass = scan  # type: ignore[method-assign] # and over
        one.launch(2)
        await one.settled(2)
        assert b'errors_total{loop="parenting"}' in one.agent.metrics.render()


def _says(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return any(text in str(vars(record).get("error", "")) for record in caplog.records)


def _raising(*_: object) -> None:
    raise ZeroDivisionError


async def test_a_second_run_finds_everything_and_thaws_what_the_first_left_frozen(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        process = one.launch(2)
        await one.settled(2)
        await one.end()
        one.node.kernel.force("freezer", one.node.path(), "freezer.state", "FROZEN")
        second = RunningNode(tmp_path, one.node, one.pages, copilot={"socket": str(tmp_path / "second.sock")})
        second.boot = one.boot
        task = asyncio.create_task(second.agent.run())
        try:
            await second.settled(2)
            assert one.node.kernel.show("freezer", one.node.path(), "freezer.state") == "THAWED"
            assert one.node.is_inside(process.pid)
            assert b"repairs_total{" not in second.agent.metrics.render()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_second_agent_in_the_same_directory_is_refused_and_ends_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        process = one.launch(2)
        await one.settled(2)
        async with EmbeddedNodeManager() as others:
            second = RunningNode(tmp_path, one.node, others, copilot={"socket": str(tmp_path / "second.sock")})
            with pytest.raises(DirectoryTakenError, match=r"another nm-proxy works in it.*cgroup\.hierarchy"):
                await second.agent.run()
            assert one.is_alive(process)
            await one.end()
            task = asyncio.create_task(second.agent.run())
            await until(second.agent.is_serving.is_set, "the directory is free")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_metrics_show_each_container_and_the_whole(tmp_path: Path) -> None:
    async with running(tmp_path, kind="v2") as one:
        one.launch(2, vcores=2, memory_mib=512)
        await one.settled(2)
        one.node.set_used(one.node.path(), 100 * MIB)
        text = (await asyncio.to_thread(one.agent.metrics.render)).decode()
        label = f'{{container="{container_id(2)}"}}'
        assert f"yarn_copilot_node_container_memory_bytes{label} 1.048576e+08" in text
        assert f"yarn_copilot_node_container_memory_limit_bytes{label} 5.36870912e+08" in text
        assert f"yarn_copilot_node_container_cpu_value{label} 200.0" in text
        assert f"yarn_copilot_node_container_throttled_seconds_total{label} 0.0" in text
        assert 'yarn_copilot_node_yarn_pressure_seconds_total{kind="some",resource="cpu"} 2.5' in text
        assert 'yarn_copilot_node_manager_answering{how="answers"} 1.0' in text
        assert 'yarn_copilot_node_drain_state{state="active"} 1.0' in text
        assert "yarn_copilot_node_parenting_latency_seconds_count 1.0" in text
        assert "yarn_copilot_node_containers 1.0" in text
        assert "yarn_copilot_node_unsettled_containers 0.0" in text


async def test_takes_over_reloadable_settings(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        one.launch(2)
        await one.settled(2)
        document = one.settings.model_dump(mode="json")
        document["parenting"]["memory_wall_bytes"] = 1024 * MIB
        document["lingering"]["finished_delay_seconds"] = 77.0
        one.agent.reload(AgentSettings.model_validate(document))
        await until(lambda: one.node.tree.values(one.node.place.yarn).memory_bytes == 1024 * MIB, "the wall is set")
        assert one.agent.lingering.delays.finished_seconds == 77.0


async def test_knows_its_state_and_its_size(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await until(lambda: one.agent.reader.view.info is not None, "the NodeManager was asked")
        assert BatchResources(cpu_milli=8000, memory_bytes=8192 * MIB).fits_in(one.agent.largest_ask())
        assert (await one.agent.state()).drain == DrainState.ACTIVE.value


async def test_without_kubelets_directories_it_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(TreeNotFoundError, match="besteffort"):
        async with running(tmp_path, cgroup={"hierarchy": "kubelet/besteffort/hadoop-yarn"}):
            pass

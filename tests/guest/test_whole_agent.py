# SPDX-License-Identifier: Apache-2.0
"""Test the whole agent on real cgroup version 2, with kubelet's directories of either driver."""

from __future__ import annotations

import asyncio
import functools
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batch_resources.resources import BatchResources
from lab.embedded.node_manager.server import EmbeddedNodeManager
from lab.node.machine import Machine, container_id, make_best_effort, sweep
from lab.node.programs import SLEEP
from lab.node.running_agent import RunningAgent
from nm_proxy.agent import Agent
from nm_proxy.agent_settings import AgentSettings
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import find_hierarchies
from nm_proxy.cgroup.layout import Driver

MIB = 1 << 20


@pytest.fixture(params=list(Driver), ids=str)
def kubelet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Machine, Driver]]:
    """Make the directories that kubelet makes with one driver."""
    driver: Driver = request.param
    hierarchies = find_hierarchies(read_mounts(), "/sys/fs/cgroup", KernelFiles())
    top = driver.best_effort.split("/")[0]
    make_best_effort(hierarchies.every[0], top)
    try:
        yield Machine(tmp_path, hierarchies, driver.best_effort), driver
    finally:
        sweep(hierarchies, top)


def test_finds_the_place_limits_containers_repairs_and_kills(kubelet: tuple[Machine, Driver], tmp_path: Path) -> None:
    machine, driver = kubelet
    asyncio.run(live(machine, driver, tmp_path))


async def live(machine: Machine, driver: Driver, folder: Path) -> None:
    async with EmbeddedNodeManager() as pages:
        agent = Agent(
            AgentSettings.model_validate(
                {
                    "node_manager": {"url": pages.url, "local_directories": [str(machine.local)]},
                    "parenting": {"memory_wall_bytes": 512 * MIB},
                    "copilot": {"socket": str(folder / "s" / "copilot.sock")},
                }
            )
        )
        assert agent.detection.place.driver is driver
        assert agent.detection.place.yarn == f"{driver.best_effort}/hadoop-yarn"
        with RunningAgent(agent) as running:
            pages.add(container_id(2), vcores=2, memory_mib=128)
            pages.add(container_id(3), vcores=1, memory_mib=64)
            processes = [machine.launch(number, SLEEP) for number in (2, 3)]
            await until(lambda: sum(state.is_done for state in agent.adopter.states.values()) == 2)
            yarn = Path("/sys/fs/cgroup") / agent.detection.place.yarn
            group = yarn / container_id(2)
            assert (group / "cpu.weight").read_text() == "200\n"
            assert (group / "memory.max").read_text() == f"{128 * MIB}\n"
            await until(lambda: (yarn / "cpu.weight").read_text() == "118\n")
            await until(lambda: (yarn / "memory.max").read_text() == f"{512 * MIB}\n")
            (group / "memory.max").write_text("max")
            (yarn / "memory.max").write_text("max")
            await until(lambda: (group / "memory.max").read_text() == f"{128 * MIB}\n")
            await until(lambda: (yarn / "memory.max").read_text() == f"{512 * MIB}\n")
            # Repairs are counted after the pass that made them.
            await until(lambda: b'yarn_copilot_node_repairs_total{what="memory"} 1.0' in agent.metrics.render())
            text = (await asyncio.to_thread(agent.metrics.render)).decode()
            assert 'yarn_copilot_node_yarn_pressure_seconds_total{kind="some",resource="cpu"}' in text
            room = await asyncio.to_thread(running.make_room, BatchResources(cpu_milli=500, memory_bytes=0))
            assert [one.container.container_id for one in room.ended] == [container_id(3)]
            assert await wait(processes[1]) == -9
            assert processes[0].poll() is None
            processes[0].kill()
            await wait(processes[0])


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something, off the event loop."""
    await asyncio.to_thread(Machine.wait_for, holds, 60.0)


async def wait(process: subprocess.Popen[bytes]) -> int:
    code = await asyncio.to_thread(functools.partial(process.wait, timeout=60))
    if process.stdout is not None:
        process.stdout.close()
    return code

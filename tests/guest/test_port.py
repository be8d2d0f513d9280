# SPDX-License-Identifier: Apache-2.0
"""Test kills over the port on real cgroup version 2: TLS and token lead to the whole group's end, nothing else does."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.embedded.node_manager.server import EmbeddedNodeManager
from lab.node.machine import Machine, container_id, make_best_effort, sweep
from lab.node.programs import SLEEP, STORM
from lab.node.running_agent import RunningAgent
from nm_proxy.agent import Agent, Surroundings
from nm_proxy.agent_settings import AgentSettings
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.files import KernelFiles
from nm_proxy.cgroup.hierarchy import find_hierarchies
from nm_proxy.cgroup.layout import Driver
from nm_proxy.clock import SystemClock
from nm_proxy.nodemanager.processes import ProcessReader
from tests.guest.carried import CERTIFICATE, KEY
from yarn_copilot.node_agent.client import NodeAgentClient
from yarn_copilot.node_agent.errors import NodeAgentRefusedError

MIB = 1 << 20
TASK = BatchResources(cpu_milli=2000, memory_bytes=512 * MIB)
SECONDS = 20.0
ASKED = {"resources": {"cpuMilli": 2000, "memoryBytes": 0}, "timeoutSeconds": SECONDS}


class NotingFiles(KernelFiles):
    """Note the groups whose `cgroup.kill` is written."""

    def __init__(self) -> None:
        self.killed: list[str] = []

    def write(self, path: str, text: str) -> None:
        """Write a value in one call."""
        if path.endswith("/cgroup.kill"):
            self.killed.append(Path(path).parent.name)
        super().write(path, text)


class Scene:
    """Hold an agent whose port is open, a task that forks, and one that sleeps and is older."""

    def __init__(self, folder: Path, machine: Machine, pages: EmbeddedNodeManager, copilot: dict[str, Any]) -> None:
        self.machine = machine
        self.pages = pages
        self.files = NotingFiles()
        self.agent = Agent(
            AgentSettings.model_validate(
                {
                    "node_manager": {"url": pages.url, "local_directories": [str(machine.local)]},
                    "copilot": {
                        "socket": str(folder / "s/copilot.sock"),
                        "port": 0,
                        "bind_address": "127.0.0.1",
                        "kill_timeout_seconds": SECONDS,
                        **copilot,
                    },
                }
            ),
            Surroundings(files=self.files, mounts=None, processes=ProcessReader(), signaller=None, clock=SystemClock()),
        )
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        """Give the port's address."""
        return f"127.0.0.1:{self.agent.copilot_port}"

    async def launch(self) -> None:
        """Launch both tasks and wait until they are inside, the second one with many processes."""
        for number, code, arguments in ((2, SLEEP, ()), (3, STORM, ("7", "1.0"))):
            self.pages.add(container_id(number), vcores=2, memory_mib=512)
            self.processes.append(self.machine.launch(number, code, *arguments))
        await asyncio.to_thread(self.machine.wait_for, self._is_settled, 60.0)

    def is_untouched(self) -> bool:
        """Tell whether nobody was killed."""
        return self.files.killed == [] and all(process.poll() is None for process in self.processes)

    def end(self) -> None:
        """End what is left."""
        for process in self.processes:
            process.kill()
            process.wait(timeout=60)
            if process.stdout is not None:
                process.stdout.close()

    def _is_settled(self) -> bool:
        states = self.agent.adopter.states.values()
        return sum(state.is_done for state in states) == 2 and len(self.machine.carriers(3)) > 5


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Machine]:
    """Make kubelet's directories."""
    hierarchies = find_hierarchies(read_mounts(), "/sys/fs/cgroup", KernelFiles())
    top = Driver.CGROUPFS.best_effort.split("/")[0]
    make_best_effort(hierarchies.every[0], top)
    try:
        yield Machine(tmp_path, hierarchies, Driver.CGROUPFS.best_effort)
    finally:
        sweep(hierarchies, top)


def test_a_kill_over_the_port_ends_a_whole_group_and_only_with_tls_and_token(kubelet: Machine, tmp_path: Path) -> None:
    asyncio.run(kills(kubelet, tmp_path))


async def kills(machine: Machine, folder: Path) -> None:
    right, wrong = folder / "token", folder / "wrong-token"
    right.write_text("a-token-of-some-length\n")
    wrong.write_text("another-token-of-some-length\n")
    secrets = {"tls_certificate": str(CERTIFICATE), "tls_key": str(KEY), "kill_token": str(right)}
    async with EmbeddedNodeManager() as pages:
        scene = Scene(folder, machine, pages, secrets)
        with RunningAgent(scene.agent):
            await scene.launch()

            for token, reason in ((wrong, "401"), (None, "no token file")):
                async with client(scene, token) as caller:
                    with pytest.raises(NodeAgentRefusedError, match=reason):
                        await caller.kill(TASK, deadline_seconds=SECONDS)
            with pytest.raises(aiohttp.ClientError):
                await post_in_the_clear(scene)
            assert scene.is_untouched()

            async with client(scene, right) as caller:
                result = await caller.kill_verbosely(
                    BatchResources(cpu_milli=1500, memory_bytes=0), deadline_seconds=SECONDS
                )
                assert result.killed == (container_id(3),)
                assert result.freed.to_batch() == TASK
                assert result.missing.to_batch() == ZERO_BATCH
                assert machine.carriers(3) == set()
                # A kernel may be told twice, when a look finds processes that are still about to end.
                assert set(scene.files.killed) == {container_id(3)}
                group = Path("/sys/fs/cgroup") / machine.path(3)
                assert not group.exists() or "populated 0" in (group / "cgroup.events").read_text()
                assert await asyncio.to_thread(scene.processes[1].wait, 60) == -9
                assert scene.processes[0].poll() is None
                running = (await caller.state()).running
                assert running is not None
                assert running.to_batch() == TASK
        scene.end()


def test_a_port_without_tls_serves_no_kill(kubelet: Machine, tmp_path: Path) -> None:
    asyncio.run(refuses(kubelet, tmp_path))


async def refuses(machine: Machine, folder: Path) -> None:
    async with EmbeddedNodeManager() as pages:
        scene = Scene(folder, machine, pages, {})
        with RunningAgent(scene.agent):
            await scene.launch()
            status, answer = await post_in_the_clear(scene)
            assert status == 403
            assert answer == {"error": "a kill needs TLS; set copilot.tls_certificate and tls_key"}
            assert scene.is_untouched()
        scene.end()


def client(scene: Scene, token: Path | None) -> NodeAgentClient:
    """Give the controller's client."""
    return NodeAgentClient(f"https://{scene.address}", timeout_seconds=SECONDS, token_file=token, ca_file=CERTIFICATE)


async def post_in_the_clear(scene: Scene) -> tuple[int, Any]:
    """Ask for a kill over plain HTTP, with the right token."""
    headers = {"Authorization": "Bearer a-token-of-some-length"}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session,
        session.post(f"http://{scene.address}/v1/kill", json=ASKED, headers=headers) as response,
    ):
        return response.status, await response.json()

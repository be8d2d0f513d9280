# SPDX-License-Identifier: Apache-2.0
"""Test the NodeManager's image: a real NodeManager in a container, its tasks in the host's cgroup tree.

The container gets what the manifests in deploy/node give a pod: the host's cgroup tree, directories for configuration,
work and recovery; but fewer rights, so that more than Docker's own and two capabilities is shown not to be needed on
cgroup version 1 (some machines that tests run on cannot give all rights). Hadoop and Java are mounted, where an
operator's base image has them inside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from testcontainers.core.container import DockerContainer

from lab.cluster import Lab
from lab.docker import images
from lab.hadoop.application import Application
from lab.hadoop.node_manager import NodeManager
from lab.hadoop.options import YarnOptions
from lab.node.machine import Machine
from lab.processes import probes
from tests.lab.docker.conftest import BUILD_SECONDS, StartContainer
from tests.lab.docker.test_controller_image import ended, text_of

pytestmark = pytest.mark.timeout(BUILD_SECONDS)
MIB = 1 << 20
WAIT_SECONDS = 120.0
TREE = "/host-cgroup"
YARN_SCRIPT = """#!/bin/sh
# What `yarn nodemanager` of a Hadoop distribution comes down to.
exec java -Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --add-opens=java.base/java.lang=ALL-UNNAMED \\
  -Djava.net.preferIPv4Stack=true -Djdk.net.hosts.file={hosts} \\
  -cp "$HADOOP_CONF_DIR:/opt/hadoop/share/hadoop/yarn/*" org.apache.hadoop.yarn.server.nodemanager.NodeManager
"""
# What is charged before a process moves stays with the group it leaves (version 1), so it waits until it is inside.
GREED = (
    "while [ ! -e {may_take} ]; do sleep 0.1; done; "
    "exec python3.11 -c 'import time; x = bytearray(400 << 20); time.sleep(600)'"
)


@pytest.fixture(params=["3.5.0", "3.3.6"])
def yarn_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Run a ResourceManager and prepare a NodeManager for the container.

    The next container's NodeManager takes over from the last one: as in production, the ResourceManager waits longer
    for it than a busy machine needs to start a container, or it gives the tasks up.
    """
    options = YarnOptions(minimum_memory_mib=64, nameless=(1,), unstarted=(1,), expiry_millis=600_000)
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield lab


class Node:
    """Hold the container and what can be seen of it from outside."""

    def __init__(
        self,
        lab: Lab,
        node_manager: NodeManager,
        machine: Machine,
        folder: Path,
        *,
        sections: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.lab = lab
        self.node_manager = node_manager
        self.machine = machine
        self.folder = folder
        self.sections = sections or {}
        self.health_port, self.copilot_port = lab.free_port(), lab.free_port()
        self.recovery_directory = str(node_manager.folder / "recovery")
        self.container: DockerContainer | None = None

    def start(self, containers: StartContainer, *further_rights: str, **options: object) -> None:
        """Start it and wait until the ResourceManager has it; again, if the one before has ended."""
        self.container = containers(
            images.NODE_MANAGER,
            ["run", "--config", "/etc/nm-proxy/nm-proxy.yaml", "--", "yarn", "nodemanager"],
            cap_add=["SYS_NICE", "SYS_PTRACE", *further_rights],
            volumes=self._volumes(),
            environment={"JAVA_HOME": "/opt/java", "HADOOP_HOME": "/opt/hadoop", "PATH": _PATH},
            **options,
        )
        probes.wait_until(self._is_ready, what="the node is ready", timeout_seconds=WAIT_SECONDS)
        probes.wait_until(self._is_running, what="the NodeManager is RUNNING", timeout_seconds=WAIT_SECONDS)

    def state(self) -> dict[str, Any]:
        """Ask as the controller does."""
        found: dict[str, Any] = requests.get(f"http://127.0.0.1:{self.copilot_port}/v1/state", timeout=30).json()
        return found

    def _is_ready(self) -> bool:
        """Ask the node itself: the ResourceManager goes on for a while to call one that has died RUNNING."""
        self._assert_goes_on()
        try:
            return requests.get(f"http://127.0.0.1:{self.health_port}/readyz", timeout=30).ok
        except requests.ConnectionError:
            return False

    def _assert_goes_on(self) -> None:
        assert self.container is not None
        self.container.get_wrapped_container().reload()
        if self.container.get_wrapped_container().status == "exited":
            raise AssertionError(text_of(self.container)[-4000:])

    def _is_running(self) -> bool:
        self._assert_goes_on()
        states = {node["id"]: node["state"] for node in self.lab.yarn.nodes()}
        return states.get(self.node_manager.node_id) == "RUNNING"

    def _volumes(self) -> dict[str, tuple[str, str]]:
        home, settings = self.folder / "hadoop", self.folder / "settings"
        script = home / "bin" / "yarn"
        script.parent.mkdir(parents=True, exist_ok=True)
        (home / "share" / "hadoop" / "yarn").mkdir(parents=True, exist_ok=True)
        script.write_text(YARN_SCRIPT.format(hosts=self.lab.yarn.java.hosts_file))
        script.chmod(0o755)
        settings.mkdir(exist_ok=True)
        (settings / "nm-proxy.yaml").write_text(yaml.safe_dump(self._settings()))
        java, state = images.java_home(), str(self.lab.state_dir)
        # Debian's Java keeps its configuration elsewhere and points there.
        pointed = {Path(*path.resolve().parts[:3]) for path in (java / "conf").iterdir() if path.is_symlink()}
        return {
            str(home): ("/opt/hadoop", "ro"),
            str(self.lab.yarn.java.jars): ("/opt/hadoop/share/hadoop/yarn", "ro"),
            str(java): ("/opt/java", "ro"),
            **{str(path): (str(path), "ro") for path in pointed},
            str(settings): ("/etc/nm-proxy", "ro"),
            "/sys/fs/cgroup": (TREE, "rw"),
            state: (state, "rw"),
        }

    def _settings(self) -> dict[str, Any]:
        return {
            "cgroup": {"root": TREE, "hierarchy": self.machine.place.yarn},
            "hadoop": {"conf_dir": str(self.node_manager.folder / "conf")},
            "recovery": {"directory": self.recovery_directory},
            "stop": {"grace_seconds": 60},
            "health": {"bind_address": "127.0.0.1", "port": self.health_port},
            "copilot": {"bind_address": "127.0.0.1", "port": self.copilot_port},
            **self.sections,
        }


_PATH = "/opt/hadoop/bin:/opt/java/bin:/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def node(yarn_lab: Lab, machine: Machine, containers: StartContainer, tmp_path: Path) -> Node:
    one = Node(yarn_lab, yarn_lab.yarn.node_managers[0], machine, tmp_path)
    one.start(containers)
    yarn_lab.yarn.set_capacity(one.node_manager.node_id, 4096, 8)
    return one


def wait_inside(node: Node, application: Application, count: int) -> None:
    """Wait until the tasks are where they belong by the host's own files."""
    machine = node.machine

    def are_inside() -> bool:
        paths = [machine.place.container(one.id) for one in application.running()]
        if len(paths) != count or not all(all(machine.tree.members(path).values()) for path in paths):
            return False
        return all(machine.tree.values(path).memory_bytes == 256 * MIB for path in paths)

    probes.wait_until(are_inside, what=f"{count} tasks are inside", timeout_seconds=WAIT_SECONDS)


def test_tasks_of_a_node_manager_in_a_container_are_placed_limited_and_drained(node: Node) -> None:
    machine, lab = node.machine, node.lab
    application = lab.submit()
    application.ask(count=2, memory_mib=256, vcores=2)
    application.wait_running(2, timeout_seconds=WAIT_SECONDS)
    wait_inside(node, application, 2)
    for path in [machine.place.container(one.id) for one in application.running()]:
        # The limit comes first, the weight right after it.
        probes.wait_until(
            lambda path=path: machine.tree.values(path).cpu == 2048,  # type: ignore[misc]
            what="it weighs two vcores",
            timeout_seconds=WAIT_SECONDS,
        )
        assert machine.tree.values(path).memory_bytes == 256 * MIB
    probes.wait_until(
        lambda: machine.tree.values(machine.place.yarn).cpu == 4096,
        what="the parent weighs four vcores",
        timeout_seconds=WAIT_SECONDS,
    )

    # A task that takes more than it was given dies alone.
    may_take = lab.state_dir / "may-take"
    application.ask(memory_mib=256, vcores=1, shell_command=GREED.format(may_take=may_take))
    wait_inside(node, application, 3)
    may_take.touch()
    application.wait_for(
        lambda: len(application.completed()) == 1, what="the greedy task ends", timeout_seconds=WAIT_SECONDS
    )
    (greedy,) = application.completed()
    assert greedy.exit_status == 137
    assert len(application.running()) == 2

    # Stopping the container drains: it goes on until its tasks have ended, says so, and signs off.
    container = node.container
    assert container is not None
    stopping = threading.Thread(target=container.get_wrapped_container().stop, kwargs={"timeout": 90})
    stopping.start()
    probes.wait_until(lambda: node.state()["drain"] == "draining", what="it drains", timeout_seconds=WAIT_SECONDS)
    assert len(application.running()) == 2
    assert all(machine.tree.processes(machine.place.container(one.id)) for one in application.running())
    application.release(2)
    stopping.join(timeout=120)
    assert ended(container) == 0
    assert not any(machine.tree.processes(machine.place.container(one.id)) for one in application.containers())
    probes.wait_until(
        lambda: lab.yarn.node(node.node_manager.node_id)["state"] in {"SHUTDOWN", "DECOMMISSIONED"},
        what="the ResourceManager knows that it signed off",
        timeout_seconds=WAIT_SECONDS,
    )

# SPDX-License-Identifier: Apache-2.0
"""Test, with a real container runtime on cgroup version 1, that tasks outlive the container of their NodeManager.

The container shares the machine's PID namespace, so the kernel ends nobody with its PID 1; the runtime ends whom it
finds in the container's groups. The container has rules for devices and a limit of processes, which tasks may not lose.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.docker.daemon import DockerDaemon
from lab.hadoop.application import Application
from lab.node.machine import Machine, carriers_of
from lab.processes import probes
from nm_proxy.cgroup.detection import read_mounts
from nm_proxy.cgroup.hierarchy import find_others
from tests.lab.docker.conftest import BUILD_SECONDS, StartContainer
from tests.lab.docker.test_controller_image import ended
from tests.lab.docker.test_node_manager_image import WAIT_SECONDS, Node, wait_inside, yarn_lab  # noqa: F401 - a fixture
from tests.lab.node.conftest import ROOT

pytestmark = pytest.mark.timeout(BUILD_SECONDS)
PROCESSES = 1500
RIGHTS = "SYS_ADMIN"
"""Copies device rules; a privileged container has none to copy."""


@pytest.fixture
def node(yarn_lab: Lab, machine: Machine, containers: StartContainer, tmp_path: Path) -> Node:  # noqa: F811
    one = Node(yarn_lab, yarn_lab.yarn.node_managers[0], machine, tmp_path)
    one.sections = {"recovery": {"directory": one.recovery_directory, "keep_on_stop": True}}
    start(one, containers)
    yarn_lab.yarn.set_capacity(one.node_manager.node_id, 4096, 8)
    return one


def start(node: Node, containers: StartContainer) -> None:
    """Start the next container of this node, in the machine's PID namespace."""
    node.start(containers, RIGHTS, pid_mode="host", pids_limit=PROCESSES)


def die(node: Node) -> None:
    """Kill process 1 of the container."""
    assert node.container is not None
    container = node.container.get_wrapped_container()
    container.reload()
    os.kill(container.attrs["State"]["Pid"], signal.SIGKILL)
    assert ended(node.container) == 137


def stop(node: Node) -> None:
    """Stop the container as a runtime does, with SIGTERM and time."""
    assert node.container is not None
    node.container.get_wrapped_container().stop(timeout=90)
    assert ended(node.container) == 0


_MOMENT_SECONDS = 1.0


def processes_of(application: Application) -> set[int]:
    """Find everyone who works for the running tasks: their processes, and the scripts that wait for these."""
    return set().union(*(carriers_of(f"CONTAINER_ID={one.id}") for one in application.running()))


def lasting(pids: set[int]) -> set[int]:
    """Leave out who lives for a moment only: who sleeps between two looks for the file, and helpers of the scripts."""
    time.sleep(_MOMENT_SECONDS)
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() != "sleep":
                found.add(pid)
    return found


def groups_of(pids: set[int]) -> str:
    """Read in which groups they are, in every hierarchy."""
    texts = []
    for pid in pids:
        with contextlib.suppress(OSError):
            texts.append(Path(f"/proc/{pid}/cgroup").read_text())
    return "".join(texts)


def rules_and_limit(machine: Machine) -> tuple[str, str]:
    """Read what bounds tasks in the hierarchies that are not YARN's."""
    others = {name: one for one in find_others(read_mounts(), ROOT, machine.hierarchies) for name in one.controllers}
    yarn = machine.place.yarn
    return (
        Path(others["devices"].at(yarn), "devices.list").read_text(),
        Path(others["pids"].at(yarn), "pids.max").read_text().strip(),
    )


@pytest.mark.parametrize("end", [die, stop], ids=["death of PID 1", "stop"])
def test_tasks_outlive_pid_1_and_the_next_node_manager_gets_their_exit_codes(
    node: Node, daemon: DockerDaemon, containers: StartContainer, end: Callable[[Node], None], tmp_path: Path
) -> None:
    machine, application = node.machine, node.lab.submit()
    may_end = node.lab.state_dir / "may-end"
    for code in (0, 7):
        command = f"while [ ! -e {may_end} ]; do sleep 0.2; done; exit {code}"
        application.ask(memory_mib=256, vcores=1, shell_command=command)
    application.wait_running(2, timeout_seconds=WAIT_SECONDS)
    wait_inside(node, application, 2)
    probes.wait_until(
        lambda: daemon.cgroup_parent not in groups_of(processes_of(application)),
        what="tasks have left the container in every hierarchy",
        timeout_seconds=WAIT_SECONDS,
    )
    rules, limit = rules_and_limit(machine)
    assert limit == str(PROCESSES)
    assert "c 1:3 " in rules
    assert "a *:* rwm" not in rules
    before = lasting(processes_of(application))
    assert len(before) >= 4, "two tasks, and two scripts that wait for them"
    tasks = {one.id for one in application.running()}

    end(node)
    assert tasks == {one.id for one in application.running()}
    assert lasting(processes_of(application)) == before
    start(node, containers)
    wait_inside(node, application, 2)

    may_end.touch()
    application.wait_for(lambda: len(application.completed()) == 2, what="both tasks end", timeout_seconds=WAIT_SECONDS)
    assert sorted((one.id in tasks, one.exit_status) for one in application.completed()) == [(True, 0), (True, 7)]
    assert not any(machine.tree.processes(machine.place.container(name)) for name in tasks)

# SPDX-License-Identifier: Apache-2.0
"""Prove that a lab leaves nothing running, however its owner ends, and that two labs do not meet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lab.cluster import Lab
from lab.processes import probes

REPOSITORY = Path(__file__).resolve().parents[2]
OWNER = """
import json, sys, time
from lab.cluster import Lab
lab = Lab(node_managers=1)
lab.start()
lab.yarn.set_capacity(lab.yarn.node_managers[0].node_id, 4096, 8)
application = lab.submit(managed=True)
application.ask(count=2)
application.wait_running(2)
print(json.dumps(str(lab.state_dir)), flush=True)
time.sleep(600)
"""


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds a lab with an application whose containers run."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        start_new_session=True,
    ) as process:
        yield process
        process.kill()


def _processes_that_name(state_dir: str) -> list[str]:
    """List living processes whose command line or environment names a folder, zombies left out."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            command = " ".join(process.cmdline())
            if state_dir in command or any(state_dir in value for value in process.environ().values()):
                found.append(f"{process.pid} {command[:100]}")
        except psutil.Error:
            continue
    return found


def _state_dir_of(owner: subprocess.Popen[str]) -> str:
    assert owner.stdout is not None
    return str(json.loads(owner.stdout.readline()))


def _wait_for_container_processes(state_dir: str, count: int) -> None:
    """Wait until the sleeping processes of containers are there: a NodeManager starts them after it has agreed to."""
    probes.wait_until(
        lambda: sum("sleep infinity" in command for command in _processes_that_name(state_dir)) == count,
        what=f"{count} container processes run",
        timeout_seconds=60,
        poll_seconds=0.2,
    )


def _wait_until_gone(state_dir: str) -> None:
    probes.wait_until(
        lambda: not _processes_that_name(state_dir),
        what=f"no process names {state_dir}",
        timeout_seconds=60,
        poll_seconds=0.2,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["KILL", "TERM", "INT"])
def test_nothing_is_left_when_the_owner_ends_by_a_signal(owner: subprocess.Popen[str], number: signal.Signals) -> None:
    state_dir = _state_dir_of(owner)
    assert any("kube-apiserver" in command for command in _processes_that_name(state_dir))
    _wait_for_container_processes(state_dir, 2)
    owner.send_signal(number)
    _wait_until_gone(state_dir)
    probes.wait_until(lambda: not Path(state_dir).exists(), what="the folder is removed", timeout_seconds=30)


def test_containers_of_a_killed_node_manager_end_with_the_lab() -> None:
    with Lab(kubernetes=False, node_managers=1) as lab:
        state_dir = str(lab.state_dir)
        node_manager = lab.yarn.node_managers[0]
        lab.yarn.set_capacity(node_manager.node_id, 4096, 8)
        application = lab.submit()
        application.ask(count=2)
        application.wait_running(2)
        _wait_for_container_processes(state_dir, 2)
        node_manager.kill()
        _wait_for_container_processes(state_dir, 2)
    assert _processes_that_name(state_dir) == []


def test_two_labs_run_at_once_and_do_not_meet(lab: Lab) -> None:
    with Lab(node_managers=1) as other:
        assert other.kubernetes.url != lab.kubernetes.url
        assert {node["id"] for node in other.yarn.nodes()} == {other.yarn.node_managers[0].node_id}
        assert len(lab.yarn.nodes()) == 3
        other_state = str(other.state_dir)
    assert _processes_that_name(other_state) == []
    assert {node["state"] for node in lab.yarn.nodes()} == {"RUNNING"}

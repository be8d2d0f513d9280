# SPDX-License-Identifier: Apache-2.0
"""Check `python -m lab up|status|down` as a user runs them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import requests

from lab.processes import members, probes
from lab.processes.state import running_labs

REPOSITORY = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-m", "lab"]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAB, *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=240, check=False)


def test_detached_lab_is_listed_reached_and_stopped(tmp_path: Path) -> None:
    up = _run("up", "--detach", "--node-managers", "1", "--state-dir", str(tmp_path))
    assert up.returncode == 0, up.stderr
    exports = dict(re.findall(r"^export (\w+)=(.*)$", up.stdout, re.MULTILINE))
    answer = requests.get(f"{exports['LAB_RM_REST']}/ws/v1/cluster/nodes", timeout=10)
    assert len(answer.json()["nodes"]["node"]) == 1
    assert Path(exports["KUBECONFIG"]).is_file()
    record = next(each for each in running_labs() if each["state_dir"] == str(tmp_path))
    assert str(record["pid"]) in _run("status").stdout
    down = _run("down", str(record["pid"]))
    assert down.returncode == 0, down.stderr
    assert members.find_members(tmp_path) == []
    assert (tmp_path / "logs" / "kube-apiserver.log").is_file(), "a folder that was given stays"
    assert all(each["state_dir"] != str(tmp_path) for each in running_labs())


def test_interrupt_while_starting_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*LAB, "up", "--node-managers", "2", "--state-dir", str(tmp_path)],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),
        start_new_session=True,
    ) as process:
        probes.wait_until(
            lambda: len(members.find_members(tmp_path)) >= 3,
            what="some servers were started",
            timeout_seconds=60,
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert members.find_members(tmp_path) == []


def test_unknown_pid_is_an_error_that_says_what_to_do() -> None:
    down = _run("down", "1")
    assert down.returncode == 1
    assert "no lab has pid 1; see `python -m lab status`" in down.stderr

# SPDX-License-Identifier: Apache-2.0
"""Run the demo as a user would, short, on both kinds of servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
_DEADLINE_SECONDS = 240.0


@pytest.mark.parametrize("servers", ["embedded", "real"])
def test_the_demo_plays_a_day_without_killing_and_says_what_it_saw(servers: str, tmp_path: Path) -> None:
    summary, text = _demo(servers, tmp_path / "summary.json", "--duration", "15", "--seed", "5")

    assert summary["failures"] == []
    assert summary["backend"] == servers
    assert summary["mode"] == "strict"
    assert summary["oversold_samples"] == 0
    assert summary["containers_killed"] == 0
    assert summary["propagation_samples"] > 0
    assert summary["pods_bound"] > 0
    assert summary["containers_started"] > 0
    assert 0 < summary["propagation_p50_seconds"] <= summary["propagation_p99_seconds"]
    assert "mode strict with growth_window_seconds 0" in text
    assert "no unit was sold twice" in text
    assert "node=node-3" in text


def test_an_unknown_kind_of_servers_is_refused(tmp_path: Path) -> None:
    answer = _run("imaginary", "--json", str(tmp_path / "summary.json"))

    assert answer.returncode == 2
    assert "real or embedded" in answer.stderr
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_demo_and_its_controller(number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "lab", "demo"],
        cwd=REPOSITORY,
        env={**os.environ, "LAB": "embedded", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        # The first figures come when everything runs.
        assert any("node=node-1" in line for line in process.stdout)
        controllers = [child for child in psutil.Process(process.pid).children(recursive=True) if _is_controller(child)]
        process.send_signal(number)
        process.stdout.read()

    assert process.returncode == code
    assert len(controllers) == 1
    assert not controllers[0].is_running()


def _is_controller(process: psutil.Process) -> bool:
    return "yarn_copilot.cli.main" in process.cmdline()


def _demo(servers: str, path: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    answer = _run(servers, "--json", str(path), *arguments)
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    summary: dict[str, Any] = json.loads(path.read_text())
    return summary, answer.stdout


def _run(servers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab", "demo", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "LAB": servers},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
    )

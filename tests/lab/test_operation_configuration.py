# SPDX-License-Identifier: Apache-2.0
"""Show that the configuration is taken over as a ConfigMap delivers it, and that wrong ones are refused in words."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster import Lab
from lab.controller import ControllerProcess
from tests.lab.bridge import FAST, GIB, SETTLED_SECONDS, Bridge, Unique, merged

ROOT = Path(__file__).parents[2]


class ConfigMapVolume:
    """Lay a controller's file out as kubelet does: a link to a link to a dated folder, swapped in one rename."""

    def __init__(self, controller: ControllerProcess, folder: Path) -> None:
        self._folder = folder
        self._path = controller.config_path
        self._numbers = itertools.count(1)
        self.config: dict[str, Any] = controller.config
        self.write(self.config)
        self._path.unlink()
        self._path.symlink_to(folder / "..data" / "config.yaml")

    def write(self, content: Mapping[str, Any] | str) -> None:
        """Swap the folder for one with this content."""
        dated = self._folder / f"..2026_{next(self._numbers)}"
        dated.mkdir()
        text = content if isinstance(content, str) else yaml.safe_dump(dict(content))
        dated.joinpath("config.yaml").write_text(text)
        fresh = self._folder / "..data_tmp"
        fresh.symlink_to(dated.name)
        fresh.replace(self._folder / "..data")


def _reload_ok(controller: ControllerProcess) -> float:
    return controller.metric("yarn_copilot_config_last_reload_successful")


def test_swapped_file_takes_effect_and_a_bad_one_keeps_the_last_good_one(
    lab: Lab, unique: Unique, tmp_path: Path
) -> None:
    bridge = Bridge(lab, unique)
    node = bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB)
    controller = bridge.controller()
    volume = ConfigMapVolume(controller, tmp_path)
    controller.start().wait_ready()
    bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)

    reserve = {"capacity": {"reserve": {"cpu_milli": 2000, "memory_bytes": GIB}}}
    volume.write(merged(volume.config, reserve))
    bridge.wait_capacity(node, 7168, 6, seconds=SETTLED_SECONDS)
    bridge.wait(lambda: bridge.controller_events("ConfigurationReloaded"), "an Event says so")

    volume.write(merged(volume.config, {"capacity": {"growth_windw_seconds": 1}}))
    bridge.wait(lambda: _reload_ok(controller) == 0, "the bad file was seen")
    bridge.wait(lambda: bridge.controller_events("ConfigurationRejected"), "an Event says so")
    (event,) = bridge.controller_events("ConfigurationRejected")
    assert "growth_windw_seconds" in event["message"]
    assert "growth_windw_seconds" in controller.log_path.read_text()
    bridge.set_origin(node, 9000, 9 * GIB)
    bridge.wait_capacity(node, 8192, 7)  # the reserve of the last good file

    volume.write("capacity: [")
    bridge.wait(lambda: len(bridge.controller_events("ConfigurationRejected")) == 2, "the next bad file is told too")

    volume.write(merged(volume.config, {"server": {"port": 1}}))
    bridge.wait_capacity(node, 9216, 9, seconds=SETTLED_SECONDS)  # no reserve any more
    bridge.wait(lambda: bridge.controller_events("ConfigurationNeedsRestart"), "an Event names the fixed field")
    (event,) = bridge.controller_events("ConfigurationNeedsRestart")
    assert "server.port" in event["message"]
    assert _reload_ok(controller) == 1
    assert controller.metric("yarn_copilot_config_fields_needing_restart") == 1
    assert controller.get("/api/v1/status").json()["controller"]["config"]["needs_restart"] == ["server.port"]


def _run(config: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "yarn_copilot.cli.main", "run", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.returncode, done.stdout + done.stderr


def _content(lab: Lab, *changes: Mapping[str, Any]) -> dict[str, Any]:
    base = {
        "kubernetes": {"kubeconfig": str(lab.kubernetes.kubeconfig)},
        "hadoop": {"conf_dir": str(lab.yarn.conf_dir)},
        "server": {"bind_address": "127.0.0.1", "port": 0},
    }
    return merged(base, FAST, *changes)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"capacity": {"growth_window": 1}}, ["capacity.growth_window"], id="unknown key"),
        pytest.param(
            {"yarn": {"poll_interval_seconds": "1s"}}, ["yarn.poll_interval_seconds", "number"], id="wrong unit"
        ),
        pytest.param({"capacity": {"mode": "greedy"}}, ["capacity.mode", "shared"], id="not a choice"),
        pytest.param({"hadoop": {"call_timeout_seconds": 9}}, ["hadoop.call_timeout_seconds", "below"], id="rule"),
        pytest.param({"hadoop": {"conf_dir": "/nonexistent"}}, ["/nonexistent"], id="no Hadoop configuration"),
        pytest.param({"kubernetes": {"kubeconfig": "/nonexistent"}}, ["/nonexistent"], id="no kubeconfig"),
    ],
)
def test_wrong_configuration_ends_the_start_with_a_sentence(
    lab: Lab, tmp_path: Path, change: dict[str, Any], told: list[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(_content(lab, change)))
    code, output = _run(config)
    assert code == 2, output
    assert "Traceback" not in output
    for part in told:
        assert part in output


def test_missing_file_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    code, output = _run(tmp_path / "absent.yaml")
    assert code == 2, output
    assert "absent.yaml" in output
    assert "Traceback" not in output

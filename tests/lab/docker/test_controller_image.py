# SPDX-License-Identifier: Apache-2.0
"""Test the controller's image: as nobody, with a read-only root, against servers on this machine."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from testcontainers.core.container import DockerContainer

from lab.docker import images
from lab.embedded.kubernetes import EmbeddedKubernetes
from lab.embedded.yarn import EmbeddedYarn
from lab.processes import probes
from tests.contract.cli.test_run import THIRD, kubernetes, settings, yarn  # noqa: F401 - fixtures
from tests.lab.docker.conftest import BUILD_SECONDS, StartContainer

pytestmark = pytest.mark.timeout(BUILD_SECONDS)
WAIT_SECONDS = 90.0


def text_of(container: DockerContainer) -> str:
    """Read what it has printed."""
    out, err = container.get_logs()
    return f"{out.decode()}{err.decode()}"


def ended(container: DockerContainer) -> int:
    """Wait for its end and give its exit code."""
    result: dict[str, Any] = container.get_wrapped_container().wait(timeout=60)
    return int(result["StatusCode"])


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait, off the event loop."""
    await asyncio.to_thread(probes.wait_until, holds, what=what, timeout_seconds=WAIT_SECONDS)


def test_shows_help_and_version_without_any_right(containers: StartContainer) -> None:
    rights = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"]}
    shown = containers(images.CONTROLLER, ["--help"], **rights)
    assert ended(shown) == 0
    assert "Examples:" in text_of(shown)
    version = containers(images.CONTROLLER, ["version"], **rights)
    assert ended(version) == 0
    assert re.search(r"yarn-copilot \d+\.\d+\.\d+", text_of(version))


async def test_moves_capacity_and_claim_and_stops_cleanly(
    containers: StartContainer,
    settings: dict[str, Any],  # noqa: F811 - the fixture
    kubernetes: EmbeddedKubernetes,  # noqa: F811
    yarn: EmbeddedYarn,  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({**settings, "server": {"bind_address": "127.0.0.1"}}))
    for path in (tmp_path, *tmp_path.rglob("*")):  # noqa: ASYNC240 - a few small files
        path.chmod(0o755)
    command = ["run", "--config", str(tmp_path / "config.yaml"), "--port", "0"]
    options = {
        "read_only": True,
        "cap_drop": ["ALL"],
        "volumes": {str(tmp_path): (str(tmp_path), "ro")},
    }
    container = await asyncio.to_thread(containers, images.CONTROLLER, command, **options)
    await until(lambda: bool(yarn.updates), "capacity is sent to the ResourceManager")
    await until(
        lambda: THIRD in kubernetes.objects.get("nodes", "worker-1")["metadata"]["annotations"], "the claim is written"
    )
    assert json.loads(kubernetes.objects.get("nodes", "worker-1")["metadata"]["annotations"][THIRD])
    await asyncio.to_thread(container.get_wrapped_container().stop, timeout=30)
    assert await asyncio.to_thread(ended, container) == 0
    assert "Traceback" not in text_of(container)

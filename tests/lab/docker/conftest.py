# SPDX-License-Identifier: Apache-2.0
"""Run one Docker daemon for these tests, with the project's images in it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from lab.docker import images
from lab.docker.daemon import DockerDaemon
from lab.processes.progress import Progress
from tests.lab.node.conftest import machine  # noqa: F401 - a fixture

BUILD_SECONDS = 900
"""Once on a machine, packages are fetched and images are built."""

CALL_SECONDS = 300
_FOLDER = Path(__file__).parent
_UNCLOSED = "ignore:Exception ignored in. <socket.socket fd=.*, family=1, :pytest.PytestUnraisableExceptionWarning"
"""The client of Docker's API leaves its unix sockets to the garbage collector."""

StartContainer = Callable[..., DockerContainer]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests of this folder pass over what only the client of Docker's API does."""
    for item in items:
        if _FOLDER in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(_UNCLOSED))


def collect_sockets() -> None:
    """Collect the client's sockets while their warnings are passed over, so that no later test is charged with them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def daemon() -> Iterator[DockerDaemon]:
    """Start the daemon, bring the base image in, build the images."""
    with _daemon() as running:
        yield running
    collect_sockets()


@contextmanager
def _daemon() -> Iterator[DockerDaemon]:
    progress = Progress()
    with DockerDaemon() as running:
        images.import_base(running.client, progress)
        context = running.folder / "context"
        context.mkdir()
        images.write_context(context, progress)
        images.build(running.client, context, "controller.Dockerfile", images.CONTROLLER, progress)
        images.build(running.client, context, "node-manager.Dockerfile", images.NODE_MANAGER, progress)
        yield running


@pytest.fixture
def containers(daemon: DockerDaemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartContainer]:
    """Start containers on the host's network; all are removed at the end."""
    # Its helper container, which removes what a dead test run has left, cannot be pulled; the daemon ends with the run.
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
    monkeypatch.setenv("DOCKER_HOST", daemon.url)
    started: list[DockerContainer] = []

    def start(
        image: str,
        command: list[str],
        *,
        volumes: Mapping[str, tuple[str, str]] | None = None,
        environment: Mapping[str, str] | None = None,
        **options: object,
    ) -> DockerContainer:
        container = DockerContainer(image, docker_client_kw={"timeout": CALL_SECONDS})
        container.with_command(command).with_envs(**(environment or {}))
        for host, (inside, mode) in (volumes or {}).items():
            container.with_volume_mapping(host, inside, mode)
        container.with_kwargs(network_mode="host", **options)
        started.append(container)
        return container.start()

    yield start
    for container in started:
        container.stop()
        container.get_docker_client().client.close()
    started.clear()
    collect_sockets()

# SPDX-License-Identifier: Apache-2.0
"""Start embedded API servers for the tests of the Kubernetes adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.backend import KubeBackend
from tests.contract.kube.mirroring import QUICK, Sink, annotation
from yarn_copilot.config.settings import KubernetesSettings
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import StaticCredentials
from yarn_copilot.kube.model import Node
from yarn_copilot.kube.reflector import NODES, Reflector


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedKubernetes]:
    """Run an embedded API server."""
    async with EmbeddedKubernetes(bookmark_seconds=0.05) as embedded:
        yield embedded


@pytest.fixture
async def client(server: EmbeddedKubernetes) -> AsyncIterator[KubeClient]:
    """Give a client of the embedded API server."""
    settings = KubernetesSettings(list_page_size=50, backoff_max_seconds=0.2)
    async with KubeClient(StaticCredentials(server.url, server.token), settings) as opened:
        yield opened


@pytest.fixture
async def kube_backend(server: EmbeddedKubernetes) -> AsyncIterator[KubeBackend]:
    """Give the embedded API server to the suites that also run against a real one."""
    async with KubeBackend(server.url, server.token, None) as backend:
        yield backend


@pytest.fixture
def sink() -> Sink:
    """Give where a mirror is recorded."""
    return Sink()


@pytest.fixture
def reflector(server: EmbeddedKubernetes, client: KubeClient, sink: Sink) -> Reflector[Node, str | None]:
    """Give a reflector of the Nodes, of which there is one."""
    server.objects.create_node("a", annotations={"k": "0"})
    return Reflector(client, NODES, reduce=annotation, sink=sink, options=QUICK)

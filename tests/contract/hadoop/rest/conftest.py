# SPDX-License-Identifier: Apache-2.0
"""Start an embedded cluster with its web service, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, Rules
from lab.embedded.yarn.web_service import EmbeddedWebService
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.rest.authentication import WebIdentity
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.transport import WebOptions, WebTransport

Connect = Callable[..., RestResourceManagerClient]


@pytest.fixture
async def yarn() -> AsyncIterator[EmbeddedYarn]:
    async with EmbeddedYarn(
        EmbeddedYarnOptions(heartbeat_seconds=None, rules=Rules(custom_types=("yarn.io/gpu",)))
    ) as yarn:
        yarn.add_node("nm-1", memory_mib=4096, vcores=4)
        yarn.add_node("nm-2", memory_mib=8192, vcores=8)
        yield yarn


@pytest.fixture
async def service(yarn: EmbeddedYarn) -> AsyncIterator[EmbeddedWebService]:
    async with EmbeddedWebService(yarn) as service:
        yield service


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Make clients of the given ports; all are closed at the end."""
    clients: list[RestResourceManagerClient] = []

    def make(*ports: int, identity: WebIdentity | None = None, **options: Any) -> RestResourceManagerClient:
        addresses = [Address("127.0.0.1", port) for port in ports]
        options.setdefault("call_timeout_seconds", 10)
        transport = WebTransport(addresses, WebOptions(identity=identity or WebIdentity(user="yarn"), **options))
        clients.append(RestResourceManagerClient(transport))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def client(connect: Connect, service: EmbeddedWebService) -> RestResourceManagerClient:
    return connect(service.port)

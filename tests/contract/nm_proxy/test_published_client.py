# SPDX-License-Identifier: Apache-2.0
"""Test the socket with what the published client makes of each answer.

It looks at the status of `/health` alone, decodes a body only where the status is good, passes over fields that it does
not know, and takes every other status for "nothing". Source: pkg/yarn/copilot/runtime of the Go bridge.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TypeVar

import aiohttp
import msgspec

from tests.contract.nm_proxy.running import RunningNode, running
from tests.unit.nm_proxy.world import container_id

T = TypeVar("T")


class PluginInfo(msgspec.Struct):
    """Hold whom it registers."""

    name: str
    version: str


class Requirements(msgspec.Struct):
    """Hold quantities by name."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class ContainerInfo(msgspec.Struct, rename="camel"):
    """Hold one container, with the fields and types of the client."""

    name: str
    namespace: str
    uid: str
    labels: dict[str, str]
    annotations: dict[str, str]
    cgroup_dir: str
    host_network: bool
    resources: Requirements
    create_timestamp: datetime.datetime | None = None


class KillInfo(msgspec.Struct):
    """Hold who was ended."""

    items: list[ContainerInfo] = []


async def call(one: RunningNode, method: str, path: str, kind: type[T], body: object = None) -> T | None:
    """Call as the client does; None is its "nothing"."""
    connector = aiohttp.UnixConnector(path=str(one.socket))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.request(method, f"http://unixSocket{path}", json=body) as response,
    ):
        is_good = 200 <= response.status < 300 and response.content_type == "application/json"
        return msgspec.json.decode(await response.read(), type=kind) if is_good else None


async def test_finds_a_plugin_that_is_alive_and_learns_its_name(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        assert (await one.call("GET", "/health"))[0] == 200
        assert await call(one, "GET", "/information", PluginInfo) == PluginInfo("yarn", "v1")


async def test_reads_containers(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        assert await call(one, "GET", "/v1/containers", list[ContainerInfo]) == []
        one.launch(2, vcores=4, memory_mib=2048)
        await one.settled(2)
        containers = await call(one, "GET", "/v1/containers", list[ContainerInfo])
        assert containers is not None
        assert [(each.name, each.namespace, each.host_network) for each in containers] == [
            (container_id(2), "yarn", True)
        ]
        assert containers[0].resources.limits["cpu"] == "4000m"
        assert await call(one, "GET", f"/v1/container?containerID={container_id(2)}", ContainerInfo) == containers[0]
        assert await call(one, "GET", f"/v1/container?containerID={container_id(9)}", ContainerInfo) is None


async def test_kills_by_name_and_by_resource(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        named, other = one.launch(2), one.launch(3)
        await one.settled(2, 3)
        unknown = {"containerID": container_id(9)}
        assert await call(one, "POST", "/v1/killContainer", KillInfo, unknown) is None
        for path, body, number in (
            ("/v1/killContainer", {"containerID": container_id(2)}, 2),
            ("/v1/killContainersByResource", {"resources": {"kubernetes.io/batch-cpu": "1k"}}, 3),
        ):
            found = await call(one, "POST", path, KillInfo, body)
            assert found is not None
            assert [each.name for each in found.items] == [container_id(number)]
        assert [one.is_alive(process) for process in (named, other)] == [False, False]

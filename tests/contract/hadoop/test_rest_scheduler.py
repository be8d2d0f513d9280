# SPDX-License-Identifier: Apache-2.0
"""Read the scheduler's figures from web services on loopback, as a ResourceManager answers them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.errors import HadoopRPCError, ProtocolViolationError
from yarn_copilot.hadoop.model import NodeId, Resource
from yarn_copilot.hadoop.rest.authentication import WebIdentity
from yarn_copilot.hadoop.rest.scheduler import RestSchedulerReader, parse_node
from yarn_copilot.hadoop.rest.transport import WebOptions, WebTransport

NODE = {
    "id": "nm-1:8041",
    "usedMemoryMB": 2304,
    "availMemoryMB": -1280,
    "usedVirtualCores": 5,
    "availableVirtualCores": 3,
    "lastHealthUpdate": 1700000000000,
    "resourceUtilization": {"nodePhysicalMemoryMB": 100},
}


class _Server:
    """Be the web services of one ResourceManager."""

    def __init__(self) -> None:
        self.info: dict[str, Any] = {"haState": "ACTIVE", "startedOn": 17}
        self.nodes: dict[str, dict[str, Any]] = {"nm-1:8041": dict(NODE)}
        self.text: str | None = None
        self.port = 0

    async def answer_info(self, request: web.Request) -> web.Response:
        return web.json_response({"clusterInfo": self.info})

    async def answer_node(self, request: web.Request) -> web.Response:
        assert request.query["user.name"] == "yarn"
        if self.text is not None:
            return web.Response(text=self.text)
        node = self.nodes.get(request.match_info["id"])
        if node is None:
            problem = {
                "exception": "NotFoundException",
                "javaClassName": "org.apache.hadoop.yarn.webapp.NotFoundException",
            }
            return web.json_response({"RemoteException": {**problem, "message": "not found"}}, status=404)
        return web.json_response({"node": node})


@pytest.fixture
async def server() -> AsyncIterator[_Server]:
    state = _Server()
    app = web.Application()
    app.router.add_get("/ws/v1/cluster/info", state.answer_info)
    app.router.add_get("/ws/v1/cluster/metrics", state.answer_info)
    app.router.add_get("/ws/v1/cluster/nodes/{id}", state.answer_node)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    state.port = runner.addresses[0][1]
    yield state
    await runner.cleanup()


@pytest.fixture
async def rest(server: _Server) -> AsyncIterator[RestSchedulerReader]:
    options = WebOptions(
        identity=WebIdentity(user="yarn"), call_timeout_seconds=5, connect_timeout_seconds=2, max_response_bytes=1 << 20
    )
    reader = RestSchedulerReader(WebTransport([Address("127.0.0.1", server.port)], options))
    yield reader
    await reader.aclose()


async def test_reads_used_plus_available_of_the_active_resource_manager(rest: RestSchedulerReader) -> None:
    known, unknown = NodeId("nm-1", 8041), NodeId("nm-2", 8041)
    found = await rest.read_scheduler([known, unknown])
    assert list(found) == [known]
    assert found[known].total == Resource(1024, 8)
    assert found[known].used == Resource(2304, 5)


async def test_a_heartbeat_and_another_process_change_their_texts(rest: RestSchedulerReader, server: _Server) -> None:
    node_id = NodeId("nm-1", 8041)
    first = (await rest.read_scheduler([node_id]))[node_id]
    assert (await rest.read_scheduler([node_id]))[node_id] == first
    server.nodes["nm-1:8041"]["resourceUtilization"] = {"nodePhysicalMemoryMB": 101}
    server.info["startedOn"] = 18
    second = (await rest.read_scheduler([node_id]))[node_id]
    assert second.heartbeat != first.heartbeat
    assert second.incarnation != first.incarnation


async def test_a_standby_is_not_believed(rest: RestSchedulerReader, server: _Server) -> None:
    server.info["haState"] = "STANDBY"
    assert await rest.read_scheduler([NodeId("nm-1", 8041)]) == {}


async def test_an_answer_that_is_no_json_is_an_error_of_ours(rest: RestSchedulerReader, server: _Server) -> None:
    server.text = "There is no active RM right now."
    with pytest.raises(HadoopRPCError):
        await rest.read_scheduler([NodeId("nm-1", 8041)])


@pytest.mark.parametrize("value", [None, True, 1.5, "many"])
def test_a_figure_that_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ProtocolViolationError):
        parse_node({"node": {**NODE, "availMemoryMB": value}}, "rm")

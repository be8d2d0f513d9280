# SPDX-License-Identifier: Apache-2.0
"""The REST client reads and writes an embedded ResourceManager, and refuses where REST would do harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from lab.embedded.yarn import EmbeddedYarn
from lab.embedded.yarn.web_service import EmbeddedWebService
from tests.contract.hadoop.rest.conftest import Connect
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.model import (
    FAR_OVERCOMMIT_TIMEOUT_MILLIS,
    NodeId,
    NodeResourceUpdate,
    NodeState,
    Resource,
    ResourceInformation,
)
from yarn_copilot.hadoop.rest.authentication import WebIdentity, token_file
from yarn_copilot.hadoop.rest.client import CustomTypesError, PartialUpdateError, RestResourceManagerClient
from yarn_copilot.hadoop.rest.demand import PartitionDemandReader

NM1, NM2 = NodeId("nm-1", 8041), NodeId("nm-2", 8041)


def update(node_id: NodeId, memory_mib: int = 2048, vcores: int = 2) -> NodeResourceUpdate:
    return NodeResourceUpdate(node_id, Resource(memory_mib, vcores))


async def test_nodes_in_all_states_are_listed(client: RestResourceManagerClient, yarn: EmbeddedYarn) -> None:
    yarn.launch_container(NM1, memory_mib=1024, vcores=1)
    yarn.stop_node(NM2)

    reports = {report.node_id: report for report in await client.get_cluster_nodes()}

    assert reports[NM1].capability == Resource(4096, 4, (ResourceInformation("yarn.io/gpu", 0),))
    assert reports[NM1].used == Resource(1024, 1)
    assert reports[NM1].containers == 1
    assert reports[NM2].state is NodeState.SHUTDOWN


async def test_a_cluster_without_nodes_has_none(client: RestResourceManagerClient, service: EmbeddedWebService) -> None:
    service.always = lambda request: web.json_response({"nodes": {}})
    assert await client.get_cluster_nodes() == []


async def test_metrics_version_queues_and_applications_are_read(client: RestResourceManagerClient) -> None:
    assert (await client.get_cluster_metrics()).active == 2
    assert await client.get_version() == "3.5.0"
    assert (await client.get_queue_info("default")).path == "root.default"
    assert await client.get_applications() == []
    with pytest.raises(errors.RemoteCallError, match="no queue 'nope'"):
        await client.get_queue_info("nope")


async def test_demand_by_partition_is_unknown_where_it_cannot_be_read_never_zero(
    client: RestResourceManagerClient, service: EmbeddedWebService, caplog: pytest.LogCaptureFixture
) -> None:
    reader = PartitionDemandReader(client)
    assert await reader.read() == {}
    service.always = lambda request: web.Response(status=403, text="no")
    assert [await reader.read() for _ in range(3)] == [None, None, None]
    assert caplog.text.count("demand of labelled partitions is not known") == 1
    assert await PartitionDemandReader(None).read() is None


async def test_an_update_has_exactly_the_shape_that_does_no_harm(
    client: RestResourceManagerClient, service: EmbeddedWebService, yarn: EmbeddedYarn
) -> None:
    await client.update_node_resource([update(NM1), update(NM2, 1024, 1)])

    assert service.bodies == [
        {"resource": {"memory": 2048, "vCores": 2}, "overCommitTimeout": FAR_OVERCOMMIT_TIMEOUT_MILLIS},
        {"resource": {"memory": 1024, "vCores": 1}, "overCommitTimeout": FAR_OVERCOMMIT_TIMEOUT_MILLIS},
    ]
    assert [recorded.user for recorded in yarn.updates] == ["yarn", "yarn"]


async def test_one_unknown_node_stops_the_batch_before_anything_is_sent(
    client: RestResourceManagerClient, service: EmbeddedWebService, yarn: EmbeddedYarn
) -> None:
    yarn.stop_node(NM2)
    for node_id in (NodeId("nope", 1), NM2):
        with pytest.raises(errors.UnrecognizedNodeError) as caught:
            await client.update_node_resource([update(NM1), update(node_id)])
        assert caught.value.node_id == node_id
    assert service.bodies == []


async def test_a_node_with_custom_types_is_not_written(
    client: RestResourceManagerClient,
    service: EmbeddedWebService,
    yarn: EmbeddedYarn,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gpu = NodeId("gpu", 8041)
    yarn.add_node_with(gpu, Resource(4096, 4, (ResourceInformation("yarn.io/gpu", 2),)))

    for _ in range(2):
        with pytest.raises(CustomTypesError, match=r"yarn\.io/gpu=2, and REST would set that to zero") as caught:
            await client.update_node_resource([update(NM1), update(gpu)])
        assert caught.value.node_id == gpu

    assert service.bodies == []
    assert caplog.text.count("A node is not written: gpu:8041") == 1


async def test_a_type_of_which_a_node_has_none_does_not_count(
    client: RestResourceManagerClient, service: EmbeddedWebService, yarn: EmbeddedYarn
) -> None:
    plain = NodeId("plain", 8041)
    yarn.add_node_with(plain, Resource(4096, 4, (ResourceInformation("yarn.io/gpu", 0),)))
    await client.update_node_resource([update(plain)])
    assert len(service.bodies) == 1


async def test_a_node_that_goes_in_the_middle_of_a_batch_leaves_the_rest_unknown(
    client: RestResourceManagerClient, service: EmbeddedWebService
) -> None:
    service.always = _gone_when_posted("nm-2:8041")
    with pytest.raises(PartialUpdateError, match="1 of 2 updates") as caught:
        await client.update_node_resource([update(NM1), update(NM2)])
    assert caught.value.may_have_been_applied
    assert caught.value.retryable


async def test_a_whole_batch_ends_within_the_deadline_of_one_call(
    connect: Connect, service: EmbeddedWebService, yarn: EmbeddedYarn
) -> None:
    nodes = [yarn.add_node(f"slow-{number}").node_id for number in range(40)]
    service.delay_seconds = 0.4  # with 16 at a time the batch would take two seconds
    client = connect(service.port, call_timeout_seconds=1.0)
    with pytest.raises(errors.CallTimeoutError, match="40 updates did not end within 1 s") as caught:
        await client.update_node_resource([update(node_id) for node_id in nodes])
    assert caught.value.may_have_been_applied
    assert len(service.bodies) < 40


async def test_a_refusal_of_the_first_update_leaves_nothing_half_done(
    client: RestResourceManagerClient, service: EmbeddedWebService
) -> None:
    service.always = _gone_when_posted("nm-1:8041")
    with pytest.raises(errors.UnrecognizedNodeError) as caught:
        await client.update_node_resource([update(NM1), update(NM2)])
    assert caught.value.node_id == NM1
    assert service.bodies == []


def _gone_when_posted(node: str):  # type: ignore[no-untyped-def]  # an oddity
    def answer(request: web.Request) -> web.Response | None:
        if request.method != "POST" or node not in request.path:
            return None
        body = {"exception": "NotFoundException", "javaClassName": "org.apache.hadoop.yarn.webapp.NotFoundException"}
        return web.json_response({"RemoteException": {**body, "message": f"nodeId, {node}, is not found"}}, status=404)

    return answer


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param([update(NM1), update(NM1, 1)], id="twice"),
        pytest.param([update(NM1, -1)], id="negative"),
        pytest.param([update(NM1, 2**31)], id="too much"),
        pytest.param([NodeResourceUpdate(NM1, Resource(1, 1), -2)], id="timeout"),
    ],
)
async def test_a_value_that_cannot_be_meant_is_not_sent(
    client: RestResourceManagerClient, service: EmbeddedWebService, wrong: list[NodeResourceUpdate]
) -> None:
    with pytest.raises(ValueError, match=r"nm-1|twice"):
        await client.update_node_resource(wrong)
    assert not service.calls


async def test_nothing_to_update_makes_no_call(client: RestResourceManagerClient, service: EmbeddedWebService) -> None:
    await client.update_node_resource([])
    assert not service.calls


async def test_every_call_carries_user_and_csrf_header(
    client: RestResourceManagerClient, service: EmbeddedWebService
) -> None:
    await client.get_version()
    headers, query = service.requests[-1]
    assert query == {"user.name": "yarn"}
    assert headers["X-XSRF-Header"]


async def test_a_delegation_token_is_read_anew_for_each_call_and_replaces_the_user(
    connect: Connect, service: EmbeddedWebService, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    client = connect(service.port, identity=WebIdentity(user="yarn", token=token_file(path)))
    for text in ("first", "second\n"):
        path.write_text(text)
        await client.get_version()
        headers, query = service.requests[-1]
        assert headers["X-Hadoop-Delegation-Token"] == text.strip()
        assert query == {}
    path.write_text("two\nlines")
    with pytest.raises(ConfigError, match="one delegation token on one line") as caught:
        await client.get_version()
    assert "two" not in str(caught.value)


class FakeExchange:
    """Send a fixed proof and expect a fixed one."""

    authorization = "Negotiate c2VjcmV0"

    def confirm(self, answer: str) -> None:
        if answer != "Negotiate cHJvb2Y=":
            raise errors.ServerIdentityError("no proof")


class FakeNegotiator:
    """Answer challenges and remember whose."""

    def __init__(self) -> None:
        self.hosts: list[str] = []

    async def begin(self, address: Address) -> FakeExchange:
        self.hosts.append(address.host)
        return FakeExchange()


def guarded(proof: str) -> Callable[[web.Request], web.Response | None]:
    """Want one exchange, answer it with a proof, and give a cookie for the calls after it."""

    def answer(request: web.Request) -> web.Response | None:
        if request.cookies.get("hadoop.auth") == "signed":
            return None
        if request.headers.get("Authorization") == FakeExchange.authorization:
            good = web.json_response({"clusterInfo": {"resourceManagerVersion": "3.5.0"}})
            good.headers["WWW-Authenticate"] = proof
            good.set_cookie("hadoop.auth", "signed")
            return good
        page = "<html><title>Error 401</title><tr><th>MESSAGE:</th><td>Authentication required</td></tr></html>"
        return web.Response(status=401, headers={"WWW-Authenticate": "Negotiate"}, text=page, content_type="text/html")

    return answer


async def test_a_negotiate_challenge_is_answered_once_and_the_cookie_kept(
    connect: Connect, service: EmbeddedWebService
) -> None:
    service.always = guarded("Negotiate cHJvb2Y=")
    negotiator = FakeNegotiator()
    client = connect(service.port, identity=WebIdentity(user="yarn", negotiator=negotiator))

    assert await client.get_version() == "3.5.0"
    assert await client.get_version() == "3.5.0"

    assert negotiator.hosts == ["127.0.0.1"]
    with pytest.raises(
        errors.AuthenticationRefusedError, match=r"HTTP 401: Authentication required \(.*wants Kerberos"
    ):
        await connect(service.port).get_version()


@pytest.mark.parametrize("proof", ["", "Negotiate", "Negotiate d3Jvbmc="])
async def test_a_service_that_does_not_prove_who_it_is_is_not_believed(
    connect: Connect, service: EmbeddedWebService, proof: str
) -> None:
    service.always = guarded(proof)
    client = connect(service.port, identity=WebIdentity(user="yarn", negotiator=FakeNegotiator()))
    with pytest.raises(errors.ServerIdentityError, match="no proof"):
        await client.get_version()


async def test_a_closed_client_says_so(client: RestResourceManagerClient) -> None:
    await client.aclose()
    with pytest.raises(errors.ClientClosedError):
        await client.get_version()

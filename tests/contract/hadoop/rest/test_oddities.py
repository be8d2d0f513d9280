# SPDX-License-Identifier: Apache-2.0
"""Standby pairs, redirects, wrong ports, broken bodies: each ends as the right error, or on the active one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import web

from lab.embedded.yarn import EmbeddedYarn
from lab.embedded.yarn.web_service import EmbeddedWebService
from lab.processes.certificates import make_certificate
from lab.processes.ports import PortClaims
from tests.contract.hadoop.rest.conftest import Connect
from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.rest.answers import NodeListError, WebStandbyError
from yarn_copilot.hadoop.rest.demand import PartitionDemandReader

UPDATE = NodeResourceUpdate(NodeId("nm-1", 8041), Resource(2048, 2))


def redirect(port: int) -> Callable[[web.Request], web.Response]:
    """Be a standby that knows the active one."""

    def answer(request: web.Request) -> web.Response:
        location = f"http://127.0.0.1:{port}{request.path_qs}"
        return web.Response(status=307, headers={"Location": location}, text="This is standby RM. The redirect url is")

    return answer


def no_active(_: web.Request) -> web.Response:
    """Be one of two standbys, asked as a browser asks that has tried for a while."""
    return web.Response(text="There is no active RM right now.\nHA Zookeeper Connection State: CONNECTED\n")


def no_active_yet(request: web.Request) -> web.Response:
    """Be one of two standbys."""
    headers = {"Refresh": f"4;url=http://{request.host}{request.path}?next.refresh.interval=1"}
    return web.Response(status=307, headers=headers, text="Can not find any active RM. Will retry in next 4 seconds.\n")


async def test_a_standby_is_left_for_the_active_one_and_not_asked_again(connect: Connect, yarn: EmbeddedYarn) -> None:
    async with EmbeddedWebService(yarn) as standby, EmbeddedWebService(yarn) as active:
        standby.always = redirect(active.port)
        client = connect(standby.port, active.port)

        await client.update_node_resource([UPDATE])
        await client.get_version()

        assert sum(standby.calls.values()) == 1
        assert len(yarn.updates) == 1


async def test_a_redirect_names_the_active_one_among_three(connect: Connect, yarn: EmbeddedYarn) -> None:
    async with EmbeddedWebService(yarn) as one, EmbeddedWebService(yarn) as two, EmbeddedWebService(yarn) as three:
        one.always = redirect(three.port)
        client = connect(one.port, two.port, three.port)
        await client.get_version()
        assert (sum(two.calls.values()), sum(three.calls.values())) == (0, 1)


async def test_credentials_follow_no_redirect_out_of_the_configuration(connect: Connect, yarn: EmbeddedYarn) -> None:
    async with EmbeddedWebService(yarn) as service, EmbeddedWebService(yarn) as stranger:
        service.always = lambda request: web.Response(
            status=302, headers={"Location": f"http://127.0.0.1:{stranger.port}/login"}
        )
        with pytest.raises(errors.AccessDeniedError, match="which is not in the configuration; not followed"):
            await connect(service.port).get_version()
        assert not stranger.calls


@pytest.mark.parametrize("answer", [no_active, no_active_yet])
async def test_a_pair_of_standbys_is_a_standby_not_a_cluster_without_nodes(
    connect: Connect, yarn: EmbeddedYarn, answer: Callable[[web.Request], web.Response]
) -> None:
    async with EmbeddedWebService(yarn) as one, EmbeddedWebService(yarn) as two:
        one.always = two.always = answer
        with pytest.raises(WebStandbyError, match=r"(no|any) active RM") as caught:
            await connect(one.port, two.port).get_cluster_nodes()
        assert caught.value.retryable
        assert not caught.value.may_have_been_applied


async def test_a_dead_address_is_left(connect: Connect, service: EmbeddedWebService) -> None:
    with closing(PortClaims()) as ports:
        client = connect(ports.take(), service.port)
        assert await client.get_version() == "3.5.0"


async def test_nobody_listens(connect: Connect) -> None:
    with closing(PortClaims()) as ports, pytest.raises(errors.ConnectError, match="cannot connect"):
        await connect(ports.take()).get_version()


async def test_an_update_whose_connection_ends_is_not_sent_twice(connect: Connect, yarn: EmbeddedYarn) -> None:
    def cut(request: web.Request) -> None:
        if request.method == "POST" and request.transport is not None:
            request.transport.abort()

    async with EmbeddedWebService(yarn) as one, EmbeddedWebService(yarn) as two:
        one.always = two.always = cut
        with pytest.raises(errors.ConnectionLostError) as caught:
            await connect(one.port, two.port).update_node_resource([UPDATE])
        assert caught.value.may_have_been_applied
        assert sum(count for call, count in (one.calls + two.calls).items() if call.startswith("POST")) == 1


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Accept connections and never answer."""
    release = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        release.set()
        server.close()
        await server.wait_closed()


async def test_a_silent_server_ends_with_the_deadline(connect: Connect) -> None:
    async with silent_server() as port:
        with pytest.raises(errors.CallTimeoutError, match=r"no answer within 0\.2 s"):
            await connect(port, call_timeout_seconds=0.2).get_version()


async def test_a_silent_server_is_left_with_the_next_call(connect: Connect, service: EmbeddedWebService) -> None:
    async with silent_server() as port:
        client = connect(port, service.port, call_timeout_seconds=0.5)
        with pytest.raises(errors.CallTimeoutError):
            await client.get_version()
        assert await client.get_version() == "3.5.0"


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        pytest.param(
            lambda: web.Response(text="<html>login</html>", content_type="text/html"),
            errors.ProtocolViolationError, "answered 'text/html' instead of JSON", id="login page",
        ),
        pytest.param(
            lambda: web.Response(body=b"{", content_type="application/json"),
            errors.ProtocolViolationError, "GET http://.*/cluster/nodes: the answer is no JSON", id="broken JSON",
        ),
        pytest.param(
            lambda: web.Response(body=b"x", content_type="application/json", headers={"Content-Encoding": "gzip"}),
            errors.ProtocolViolationError, "compressed", id="compressed",
        ),
        pytest.param(
            lambda: web.Response(body=b" " * 200_000 + b"{}", content_type="application/json"),
            errors.FrameTooLargeError, "more than 100000 bytes", id="too large",
        ),
        pytest.param(
            lambda: web.Response(status=404, text="It looks like you are making an HTTP request to a Hadoop IPC port."),
            errors.WrongPortError, "Hadoop RPC port", id="RPC port",
        ),
        pytest.param(lambda: web.Response(status=403, text="no"), errors.AccessDeniedError, "HTTP 403: no", id="403"),
        pytest.param(
            lambda: web.json_response(
                {"RemoteException": {"exception": "NullPointerException", "message": None,
                                     "javaClassName": "java.lang.NullPointerException"}}, status=503),
            NodeListError, "one node breaks all of it; use transport rpc", id="one node breaks the list",
        ),
        pytest.param(lambda: web.Response(status=503, text="busy"), errors.ServerBusyError, "HTTP 503", id="busy"),
        pytest.param(
            lambda: web.Response(status=500, text="x" * 100_000), errors.RemoteCallError, "HTTP 500", id="long error"
        ),
        pytest.param(lambda: web.json_response({}), errors.ProtocolViolationError, "/nodes: .*no 'nodes'", id="empty"),
        pytest.param(lambda: web.json_response(None), errors.ProtocolViolationError, "/nodes: .*no 'nodes'", id="null"),
        pytest.param(lambda: web.json_response([]), errors.ProtocolViolationError, "/nodes: .*no 'nodes'", id="list"),
    ],
)  # fmt: skip
async def test_an_odd_answer_to_the_node_list_is_an_error_never_an_empty_list(
    connect: Connect,
    service: EmbeddedWebService,
    answer: Callable[[], web.Response],
    kind: type[errors.HadoopRPCError],
    text: str,
) -> None:
    service.always = lambda request: answer()
    with pytest.raises(kind, match=text):
        await connect(service.port, max_response_bytes=100_000).get_cluster_nodes()


@pytest.mark.parametrize("several", [False, True])
async def test_a_federation_router_is_refused_and_its_demand_unknown(
    connect: Connect, service: EmbeddedWebService, yarn: EmbeddedYarn, several: bool
) -> None:
    about: list[object] = [{"subClusterId": "sub-1", "resourceManagerVersion": "3.4.2"}, {"subClusterId": "sub-2"}]
    queues: list[object] = [
        {"schedulerInfo": {"@type": "capacityScheduler", "queueName": "root"}, "subClusterId": "sub-1"}
    ] * 2

    def answer(request: web.Request) -> web.Response | None:
        told = {"info": about, "scheduler": queues}.get(request.path.rpartition("/")[2])
        return None if told is None else web.json_response({"subCluster": told if several else told[0]})

    service.always = answer
    client = connect(service.port)
    assert len(await client.get_cluster_nodes()) == 2
    assert await PartitionDemandReader(client).read() is None
    update = client.update_node_resource([UPDATE])
    for call in (client.get_version(), client.get_queue_info("root"), client.get_partition_use(), update):
        with pytest.raises(
            errors.FederationRouterError, match="name each sub-cluster's own ResourceManagers"
        ) as caught:
            await call
        assert not caught.value.may_have_been_applied
    assert yarn.updates == []


async def test_the_rpc_port_of_a_cluster_is_told_from_its_web_port(connect: Connect, yarn: EmbeddedYarn) -> None:
    with pytest.raises((errors.WrongPortError, errors.ConnectionLostError, errors.ProtocolViolationError)):
        await connect(yarn.admin_port.port).get_version()


async def test_tls_is_checked_against_the_given_authority(connect: Connect, yarn: EmbeddedYarn, tmp_path: Path) -> None:
    certificate = _self_signed(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    async with EmbeddedWebService(yarn, tls=server) as service:
        trusting = ssl.create_default_context(cafile=str(certificate))
        assert await connect(service.port, is_https=True, tls=trusting).get_version() == "3.5.0"
        with pytest.raises(errors.ConnectError, match=r"TLS failed.*certificate verify failed"):
            await connect(service.port, is_https=True).get_version()


async def test_tls_to_a_plain_port_is_told(connect: Connect, service: EmbeddedWebService) -> None:
    with pytest.raises(errors.WrongPortError, match=r"does not speak TLS; look at yarn\.http\.policy"):
        await connect(service.port, is_https=True).get_version()


def _self_signed(folder: Path) -> Path:
    """Make a certificate for 127.0.0.1 that is its own authority, with its key in one file."""
    certificate, key = make_certificate(folder)
    path = folder / "service.pem"
    path.write_bytes(key.read_bytes() + certificate.read_bytes())
    return path

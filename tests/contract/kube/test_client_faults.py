# SPDX-License-Identifier: Apache-2.0
"""Test single calls under faults: what is tried again, what is not, and that only our errors come out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lab.embedded.kubernetes import EmbeddedKubernetes
from tests.contract.kube.sinks import eventually
from tests.unit.kube.manual_clock import RecordingClock
from yarn_copilot.config.settings import KubernetesSettings
from yarn_copilot.kube import errors
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import (
    Credentials,
    InClusterCredentials,
    KubeconfigCredentials,
    StaticCredentials,
)

Write = Callable[[KubeClient], Awaitable[object]]


def _write(client: KubeClient) -> Awaitable[object]:
    return client.patch_node_annotations("n", expected={"k": "0"}, changed={"k": "1"})


def _stored(server: EmbeddedKubernetes) -> str:
    text: str = server.objects.get("nodes", "n")["metadata"]["annotations"]["k"]
    return text


@pytest.fixture(autouse=True)
def node(server: EmbeddedKubernetes) -> None:
    """Have one Node."""
    server.objects.create_node("n", annotations={"k": "0"})


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_a_read_is_tried_three_times(server: EmbeddedKubernetes, code: int) -> None:
    clock = RecordingClock()
    async with KubeClient(StaticCredentials(server.url, server.token), clock=clock) as client:
        server.faults.refuse(code, verb="get", times=2)
        assert (await client.get_node("n")).metadata.name == "n"
        server.faults.refuse(code, verb="get", times=3)
        with pytest.raises(errors.KubeAPIError) as refusal:
            await client.get_node("n")
    assert refusal.value.status == code
    assert server.calls.count("get", "nodes") == 6
    assert len(clock.sleeps) == 4


async def test_a_read_waits_as_long_as_the_server_asks(server: EmbeddedKubernetes) -> None:
    clock = RecordingClock()
    async with KubeClient(StaticCredentials(server.url, server.token), clock=clock) as client:
        server.faults.refuse(429, reason="TooManyRequests", retry_after=3, verb="get")
        await client.get_node("n")
    assert clock.sleeps == [3.0]


async def test_a_read_survives_a_cut_connection(server: EmbeddedKubernetes, client: KubeClient) -> None:
    server.faults.cut(verb="get", times=2)
    assert (await client.get_node("n")).metadata.name == "n"


@pytest.mark.parametrize("code", [403, 404, 409, 410, 422])
async def test_a_refusal_that_stays_is_not_tried_again(
    server: EmbeddedKubernetes, client: KubeClient, code: int
) -> None:
    server.faults.refuse(code, verb="get", times=None)
    with pytest.raises(errors.KubeAPIError):
        await client.get_node("n")
    assert server.calls.count("get", "nodes") == 1


@pytest.mark.parametrize(
    ("code", "type_"),
    [
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (429, errors.ThrottledError),
        (500, errors.ServerError),
        (503, errors.ServerError),
    ],
)
async def test_a_write_is_sent_once(
    server: EmbeddedKubernetes, client: KubeClient, code: int, type_: type[errors.KubeAPIError]
) -> None:
    server.faults.refuse(code, retry_after=2, verb="patch", times=None)
    with pytest.raises(type_) as refusal:
        await _write(client)
    assert refusal.value.retry_after_seconds == 2
    assert server.calls.writes("nodes") == 1
    assert _stored(server) == "0"


async def test_a_first_write_that_loses_every_race_gives_up(server: EmbeddedKubernetes, client: KubeClient) -> None:
    server.objects.create_node("bare")
    server.faults.refuse(422, reason="Invalid", message=errors.FAILED_TEST_MESSAGE, verb="patch", times=None)
    with pytest.raises(errors.PreconditionFailedError):
        await client.patch_node_annotations("bare", expected={"k": None}, changed={"k": "1"})
    assert server.calls.writes("nodes") == 4


async def test_a_first_write_ends_at_one_deadline_though_it_needs_several_calls(server: EmbeddedKubernetes) -> None:
    server.objects.create_node("bare")
    server.faults.delay(0.2, times=None)
    settings = KubernetesSettings(request_timeout_seconds=0.3)
    async with KubeClient(StaticCredentials(server.url, server.token), settings) as client:
        with pytest.raises(errors.KubeTimeoutError):
            await client.patch_node_annotations("bare", expected={"k": None}, changed={"k": "1"})
    assert server.calls.writes("nodes") == 1


async def test_a_write_whose_answer_is_lost_is_a_connection_error(
    server: EmbeddedKubernetes, client: KubeClient
) -> None:
    server.faults.lose_answer(verb="patch")
    with pytest.raises(errors.KubeConnectionError):
        await _write(client)
    assert server.calls.writes("nodes") == 1
    assert _stored(server) == "1"
    with pytest.raises(errors.PreconditionFailedError):
        await _write(client)


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_silence_ends_at_the_deadline(server: EmbeddedKubernetes, verb: str) -> None:
    server.faults.silence(verb=verb, times=None)
    settings = KubernetesSettings(request_timeout_seconds=0.2)
    async with KubeClient(StaticCredentials(server.url, server.token), settings) as client:
        with pytest.raises(errors.KubeTimeoutError, match=r"0\.2 s"):
            await (client.get_node("n") if verb == "get" else _write(client))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>", id="a proxy's page"),
        pytest.param(b"{}", id="no metadata"),
        pytest.param(b"\xff\xff", id="not UTF-8"),
    ],
)
async def test_an_answer_that_is_no_object_is_a_protocol_error(
    server: EmbeddedKubernetes, client: KubeClient, body: bytes
) -> None:
    server.faults.body(body, times=None)
    with pytest.raises(errors.KubeProtocolError):
        await client.get_node("n")
    with pytest.raises(errors.KubeProtocolError):
        await _write(client)


async def test_a_redirect_is_not_followed(server: EmbeddedKubernetes, client: KubeClient) -> None:
    server.faults.body(b"moved", code=302, times=None)
    with pytest.raises(errors.KubeAPIError) as refusal:
        await client.get_node("n")
    assert refusal.value.status == 302


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_that_is_not_there_is_a_connection_error(server: EmbeddedKubernetes, scheme: str) -> None:
    await server.stop_api_server()
    url = server.url.replace("http", scheme, 1)
    async with KubeClient(StaticCredentials(url, "secret-token"), clock=RecordingClock()) as client:
        with pytest.raises(errors.KubeConnectionError) as lost:
            await client.get_node("n")
        with pytest.raises(errors.KubeConnectionError):
            await _write(client)
    assert "secret-token" not in str(lost.value)


async def test_a_certificate_that_is_not_trusted_is_a_connection_error(tmp_path: Path) -> None:
    async with EmbeddedKubernetes(tls=True) as server:
        trusted = server.kubeconfig(tmp_path / "trusted")
        server.objects.create_node("n")
        async with KubeClient(KubeconfigCredentials(str(trusted))) as client:
            assert (await client.get_node("n")).metadata.name == "n"
        async with KubeClient(StaticCredentials(server.url, server.token), clock=RecordingClock()) as client:
            with pytest.raises(errors.KubeConnectionError, match="ertificate"):
                await client.get_node("n")


async def test_a_closed_client_says_so(server: EmbeddedKubernetes, client: KubeClient) -> None:
    await client.get_node("n")
    await client.aclose()
    with pytest.raises(errors.KubeConnectionError, match="closed"):
        await client.get_node("n")


async def test_a_rotated_token_is_read_again_once_for_all_calls(server: EmbeddedKubernetes) -> None:
    class Rotating:
        loads = 0

        async def load(self) -> Credentials:
            self.loads += 1
            await asyncio.sleep(0.01)
            return await StaticCredentials(server.url, server.token).load()

    source = Rotating()
    async with KubeClient(source) as client:
        await client.get_node("n")
        server.rotate_token()
        await asyncio.gather(*(client.get_node("n") for _ in range(30)))
        await client.patch_node_annotations("n", expected={"k": "0"}, changed={"k": "1"})
    assert source.loads == 2
    assert _stored(server) == "1"


async def test_a_token_that_stays_refused_is_unauthorized(server: EmbeddedKubernetes, client: KubeClient) -> None:
    server.rotate_token()
    with pytest.raises(errors.UnauthorizedError):
        await client.get_node("n")
    with pytest.raises(errors.UnauthorizedError):
        await _write(client)


async def test_a_kubeconfig_whose_token_changes_is_followed(server: EmbeddedKubernetes, tmp_path: Path) -> None:
    path = server.kubeconfig(tmp_path / "kubeconfig")
    async with KubeClient(KubeconfigCredentials(str(path))) as client:
        await client.get_node("n")
        server.rotate_token()
        server.kubeconfig(path)
        await _write(client)
    assert _stored(server) == "1"


async def test_credentials_are_read_again_every_minute_and_kept_where_that_fails(
    server: EmbeddedKubernetes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = server.kubeconfig(tmp_path / "kubeconfig")
    clock = RecordingClock()
    async with KubeClient(KubeconfigCredentials(str(path)), clock=clock) as client:
        await client.get_node("n")
        path.write_text("{half a fi", encoding="utf-8")
        clock.now += 61
        await client.get_node("n")
    assert "the old ones stay" in caplog.text
    assert server.token not in caplog.text


async def test_many_patches_at_once_all_arrive(server: EmbeddedKubernetes, client: KubeClient) -> None:
    for number in range(300):
        server.objects.create_node(f"m{number}")
    await asyncio.gather(
        *(
            client.patch_node_annotations(f"m{number}", expected={"k": None}, changed={"k": str(number)})
            for number in range(300)
        )
    )
    nodes = server.objects.all("nodes")
    assert all(nodes[f"m{number}"]["metadata"]["annotations"] == {"k": str(number)} for number in range(300))


async def test_a_pod_uses_its_service_account_and_follows_its_rotated_token(tmp_path: Path) -> None:
    async with EmbeddedKubernetes(tls=True) as server:
        assert server.ca_file is not None
        (tmp_path / "ca.crt").write_bytes(server.ca_file.read_bytes())
        (tmp_path / "token").write_text(f"{server.token}\n", encoding="utf-8")
        server.objects.create_node("n", annotations={"k": "0"})
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": server.url.rpartition(":")[2]}
        async with KubeClient(InClusterCredentials(environ, tmp_path)) as client:
            await client.get_node("n")
            (tmp_path / "token").write_text(server.rotate_token(), encoding="utf-8")
            await _write(client)
        assert _stored(server) == "1"


async def test_the_lease_is_read_while_all_patches_and_fresh_reads_hang(
    server: EmbeddedKubernetes, client: KubeClient
) -> None:
    parallel = client.settings.parallel_patches
    faults = server.faults
    silent = [faults.silence(verb="patch", times=None), faults.silence(verb="list", resource="pods", times=None)]
    hanging = [asyncio.ensure_future(_write(client)) for _ in range(parallel)]
    hanging += [asyncio.ensure_future(client.list_node_pods("n")) for _ in range(parallel)]
    await eventually(lambda: sum(fault.hits for fault in silent) == 2 * parallel)
    with pytest.raises(errors.NotFoundError):
        await client.get_lease("absent", "default")
    assert not any(task.done() for task in hanging)
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)

# SPDX-License-Identifier: Apache-2.0
"""Test the port for the controller with the controller's own client, over real TCP and TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.embedded.node_manager.server import EmbeddedNodeManager
from lab.processes.certificates import make_certificate
from nm_proxy.copilot import port_api
from nm_proxy.copilot.port_api import TokenError, TokenFile
from nm_proxy.copilot.serving import ServerStartError
from tests.contract.nm_proxy.running import RunningNode, running, until
from tests.unit.nm_proxy.world import container_id
from yarn_copilot.node_agent.client import NodeAgentClient
from yarn_copilot.node_agent.errors import (
    NodeAgentAskError,
    NodeAgentConnectionError,
    NodeAgentError,
    NodeAgentProtocolError,
    NodeAgentRefusedError,
)
from yarn_copilot.node_agent.model import DrainState

TOKEN = "a-token-of-some-length"
GIB = 1 << 30


@dataclass
class Secrets:
    """Hold the files of a Secret."""

    certificate: Path
    key: Path
    token: Path

    def settings(self) -> dict[str, Any]:
        """Give the section."""
        return {
            "port": 0,
            "bind_address": "127.0.0.1",
            "tls_certificate": str(self.certificate),
            "tls_key": str(self.key),
            "kill_token": str(self.token),
        }


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    folder = tmp_path / "secrets"
    folder.mkdir()
    certificate, key = make_certificate(folder, also="DNS:copilot.yarn.svc")
    token = folder / "token"
    token.write_text(f"{TOKEN}\n")
    return Secrets(certificate, key, token)


@contextlib.asynccontextmanager
async def served(
    tmp_path: Path, secrets: Secrets, **options: Any
) -> AsyncIterator[tuple[RunningNode, NodeAgentClient]]:
    async with running(tmp_path, copilot=secrets.settings()) as one:
        given = {"token_file": secrets.token, "ca_file": secrets.certificate, **options}
        async with NodeAgentClient(f"https://127.0.0.1:{one.agent.copilot_port}", timeout_seconds=5, **given) as client:
            yield one, client


async def test_the_port_is_off_by_default(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        assert one.agent.copilot_port is None


async def test_state_needs_no_secret_and_kill_is_refused_in_the_clear(tmp_path: Path) -> None:
    async with running(tmp_path, copilot={"port": 0, "bind_address": "127.0.0.1"}) as one:
        process = one.launch(2)
        await one.settled(2)
        url = f"http://127.0.0.1:{one.agent.copilot_port}"
        async with NodeAgentClient(url, timeout_seconds=5) as client:
            state = await client.state()
            assert (state.drain, state.containers, state.node_manager) == (DrainState.ACTIVE, 1, "answers")
            assert state.node_id == "localhost:8041"
            assert state.lingering.holds == ZERO_BATCH
            with pytest.raises(NodeAgentRefusedError, match="https only"):
                await client.kill(BatchResources(cpu_milli=1, memory_bytes=0), deadline_seconds=2)
        async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/kill", json={}) as response:
            assert response.status == 403
            assert "TLS" in (await response.json())["error"]
        assert one.is_alive(process)


async def test_kills_with_tls_and_token_by_the_policy(tmp_path: Path, secrets: Secrets) -> None:
    async with served(tmp_path, secrets) as (one, client):
        master, task = one.launch(1, vcores=1), one.launch(2, vcores=4, memory_mib=2048)
        await one.settled(1, 2)
        freed = await client.kill(BatchResources(cpu_milli=3000, memory_bytes=0), deadline_seconds=5)
        assert freed == BatchResources(cpu_milli=4000, memory_bytes=2 * GIB)
        assert [one.is_alive(process) for process in (master, task)] == [True, False]
        result = await client.kill_verbosely(BatchResources(cpu_milli=2000, memory_bytes=0), deadline_seconds=5)
        assert result.killed == (container_id(1),)
        assert result.missing.to_batch() == BatchResources(cpu_milli=1000, memory_bytes=0)
        assert await client.kill(ZERO_BATCH, deadline_seconds=5) == ZERO_BATCH
        assert b'kills_total{asked_by="controller",result="ended"} 2.0' in one.agent.metrics.render()


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1]])
async def test_kills_nobody_without_the_right_token(tmp_path: Path, secrets: Secrets, token: str) -> None:
    other = tmp_path / "other-token"
    other.write_text(token)
    async with served(tmp_path, secrets, token_file=other) as (one, client):
        process = one.launch(2)
        await one.settled(2)
        with pytest.raises(NodeAgentRefusedError, match="401") as caught:
            await client.kill(BatchResources(cpu_milli=1, memory_bytes=0), deadline_seconds=2)
        assert TOKEN not in str(caught.value)
        assert one.is_alive(process)


async def test_a_token_that_changed_works_at_once(tmp_path: Path, secrets: Secrets) -> None:
    async with served(tmp_path, secrets) as (_, client):
        await client.kill(ZERO_BATCH, deadline_seconds=2)
        secrets.token.write_text("another-token-of-some-length")
        await client.kill(ZERO_BATCH, deadline_seconds=2)
        secrets.token.unlink()
        with pytest.raises(NodeAgentRefusedError, match="cannot read the token"):
            await client.kill(ZERO_BATCH, deadline_seconds=2)


async def test_without_a_token_file_kills_over_the_port_are_off(tmp_path: Path, secrets: Secrets) -> None:
    section = secrets.settings() | {"kill_token": None}
    async with running(tmp_path, copilot=section) as one:
        url = f"https://127.0.0.1:{one.agent.copilot_port}"
        options: dict[str, Any] = {"timeout_seconds": 5, "ca_file": secrets.certificate}
        async with NodeAgentClient(url, token_file=secrets.token, **options) as client:
            assert (await client.state()).drain is DrainState.ACTIVE
            with pytest.raises(NodeAgentRefusedError, match="403"):
                await client.kill(ZERO_BATCH, deadline_seconds=2)
        async with NodeAgentClient(url, **options) as client:
            with pytest.raises(NodeAgentRefusedError, match="no token file"):
                await client.kill(ZERO_BATCH, deadline_seconds=2)


async def test_an_ask_above_the_node_or_its_deadline_kills_nobody(tmp_path: Path, secrets: Secrets) -> None:
    async with served(tmp_path, secrets) as (one, client):
        process = one.launch(2)
        await one.settled(2)
        for asked, seconds in ((BatchResources(cpu_milli=10**9, memory_bytes=0), 2.0), (ZERO_BATCH, 500.0)):
            with pytest.raises(NodeAgentAskError, match="400"):
                await client.kill(asked, deadline_seconds=seconds)
        assert one.is_alive(process)


async def test_trusts_only_the_authority_and_the_name_it_was_given(tmp_path: Path, secrets: Secrets) -> None:
    stranger, _ = make_certificate(tmp_path, "stranger")
    async with served(tmp_path, secrets, ca_file=stranger) as (_, client):
        with pytest.raises(NodeAgentConnectionError):
            await client.state()
    async with served(tmp_path / "second", secrets, server_name="copilot.yarn.svc") as (_, client):
        assert (await client.state()).drain is DrainState.ACTIVE
    async with served(tmp_path / "third", secrets, server_name="other.svc") as (_, client):
        with pytest.raises(NodeAgentConnectionError):
            await client.state()


async def test_a_new_certificate_is_used_without_a_restart(
    tmp_path: Path, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_api, "CERTIFICATE_INTERVAL_SECONDS", 0.05)
    async with running(tmp_path, copilot=secrets.settings()) as one:
        before = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", one.agent.copilot_port or 0))
        secrets.certificate.write_text("no certificate")
        await asyncio.sleep(0.2)
        certificate, key = make_certificate(tmp_path, "new")
        secrets.key.write_bytes(key.read_bytes())
        secrets.certificate.write_bytes(certificate.read_bytes())

        async def is_new() -> bool:
            now = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", one.agent.copilot_port or 0))
            return now != before

        await until(is_new, "the new certificate is shown")


async def test_no_connection_fails_while_certificates_are_replaced(
    tmp_path: Path, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_api, "CERTIFICATE_INTERVAL_SECONDS", 0.001)
    pairs = [make_certificate(tmp_path, name) for name in ("even", "odd")]
    async with running(tmp_path, copilot=secrets.settings()) as one:
        shown = set()
        for number in range(100):
            certificate, key = pairs[number % 2]
            # As kubelet does: a file is another one at once, never half written.
            for source, target in ((key, secrets.key), (certificate, secrets.certificate)):
                fresh = target.with_suffix(".fresh")
                fresh.write_bytes(source.read_bytes())
                fresh.replace(target)
            address = ("127.0.0.1", one.agent.copilot_port or 0)
            shown.add(await asyncio.to_thread(ssl.get_server_certificate, address))
        assert len(shown) >= 2


async def test_state_tells_lingering_work_and_drain(tmp_path: Path) -> None:
    async with running(tmp_path, copilot={"port": 0, "bind_address": "127.0.0.1"}) as one:
        process = one.launch(2, vcores=3, memory_mib=2048)
        await one.settled(2)
        one.node.set_used(one.node.path(2), 3 * GIB)
        one.pages.containers[container_id(2)]["state"] = "EXITED_WITH_SUCCESS"
        async with NodeAgentClient(f"http://127.0.0.1:{one.agent.copilot_port}", timeout_seconds=5) as client:

            async def lingers() -> bool:
                return (await client.state()).lingering.containers == 1

            await until(lingers, "the container lingers")
            one.agent.drain.request()
            state = await client.state()
            assert state.drain is DrainState.DRAINING
            assert state.lingering.holds == BatchResources(cpu_milli=3000, memory_bytes=3 * GIB)
            assert state.lingering.items[0].why == "finished"
            one.node.kernel.processes.exit(process.pid)

            async def is_drained() -> bool:
                return (await client.state()).drain is DrainState.DRAINED

            await until(is_drained, "the node is drained")
            one.agent.drain.withdraw()
            assert (await client.state()).drain is DrainState.ACTIVE


async def test_what_answers_but_is_no_agent_is_told_apart() -> None:
    async with EmbeddedNodeManager() as pages, NodeAgentClient(pages.url, timeout_seconds=0.5) as client:
        with pytest.raises(NodeAgentProtocolError, match="404"):
            await client.state()
    async with NodeAgentClient(pages.url, timeout_seconds=0.5) as client:
        with pytest.raises(NodeAgentConnectionError):
            await client.state()


async def test_a_client_waits_no_longer_than_its_deadline() -> None:
    ended = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with silent, NodeAgentClient(f"http://127.0.0.1:{port}", timeout_seconds=0.2) as client:
        with pytest.raises(NodeAgentConnectionError, match=r"0\.2 s"):
            await client.state()
        await client.aclose()
        await asyncio.wait_for(ended.wait(), 20)


def test_every_error_of_the_client_is_one_of_ours() -> None:
    for kind in (NodeAgentAskError, NodeAgentConnectionError, NodeAgentProtocolError, NodeAgentRefusedError):
        assert issubclass(kind, NodeAgentError)
        assert kind.retryable is (kind is NodeAgentConnectionError)


@pytest.mark.parametrize("content", ["", "short", "x" * 5000])
async def test_a_token_that_is_none_stops_the_start(tmp_path: Path, secrets: Secrets, content: str) -> None:
    secrets.token.write_text(content)
    with pytest.raises(TokenError, match="must hold a token"):
        async with running(tmp_path, copilot=secrets.settings()):
            pass


async def test_a_certificate_or_address_that_cannot_be_used_stops_the_start(tmp_path: Path, secrets: Secrets) -> None:
    section = secrets.settings()
    for wrong, reason in (
        ({"tls_key": str(secrets.token)}, "cannot use certificate"),
        ({"bind_address": "192.0.2.1"}, "192.0.2.1"),
    ):
        with pytest.raises(ServerStartError, match=reason):
            async with running(tmp_path / reason[:3], copilot=section | wrong):
                pass


def test_compares_tokens_whole(secrets: Secrets) -> None:
    file = TokenFile(secrets.token)
    assert file.matches(f"Bearer {TOKEN}")
    assert file.matches(f"bearer  {TOKEN} ")
    for header in (None, "", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}é"):
        assert not file.matches(header)

# SPDX-License-Identifier: Apache-2.0
"""Test the client of the NodeManager's pages against a NodeManager in every mood."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import aiohttp
import pytest

from lab.embedded.node_manager.server import EmbeddedNodeManager, Mood
from lab.processes.certificates import make_certificate
from nm_proxy.clock import SystemClock
from nm_proxy.node_view import NodeManagerReader
from nm_proxy.nodemanager.errors import (
    NodeManagerAnswerError,
    NodeManagerError,
    NodeManagerLoginError,
    NodeManagerRefusedError,
    NodeManagerTimeoutError,
    NodeManagerUnreachableError,
)
from nm_proxy.nodemanager.model import Answering
from nm_proxy.nodemanager.rest import NodeManagerClient
from tests.contract.nm_proxy.running import until
from tests.unit.nm_proxy.world import container_id


@pytest.fixture
async def pages() -> AsyncIterator[EmbeddedNodeManager]:
    async with EmbeddedNodeManager() as server:
        yield server


@pytest.fixture
async def client(pages: EmbeddedNodeManager) -> AsyncIterator[NodeManagerClient]:
    one = NodeManagerClient(pages.url, timeout_seconds=0.5, user="yarn", max_answer_bytes=1_000_000)
    yield one
    await one.aclose()


async def test_reads_all_pages(pages: EmbeddedNodeManager, client: NodeManagerClient) -> None:
    pages.add(container_id(2), vcores=3)
    found, malformed = await client.containers()
    assert (found[container_id(2)].vcores, malformed) == (3, 0)
    assert (await client.info()).node_id == "localhost:8041"
    assert await client.applications() == {"application_1700000000000_0001": "RUNNING"}
    assert all(call.endswith("?user.name=yarn") for call in pages.calls)


async def test_reads_a_single_container_written_as_an_object(
    pages: EmbeddedNodeManager, client: NodeManagerClient
) -> None:
    pages.add(container_id(2))
    pages.single_as_object = True
    assert list((await client.containers())[0]) == [container_id(2)]


@pytest.mark.parametrize(
    ("mood", "kind"),
    [
        (Mood.HANGS, NodeManagerTimeoutError),
        (Mood.DRIPS, NodeManagerTimeoutError),
        (Mood.CUTS, NodeManagerAnswerError),
        (Mood.BABBLES, NodeManagerAnswerError),
        (Mood.ENORMOUS, NodeManagerAnswerError),
        (Mood.FAILS, NodeManagerAnswerError),
        (Mood.UNAUTHORIZED, NodeManagerLoginError),
        (Mood.REDIRECTS, NodeManagerAnswerError),
    ],
)
async def test_every_mood_is_one_of_our_errors(
    pages: EmbeddedNodeManager, client: NodeManagerClient, mood: Mood, kind: type[NodeManagerError]
) -> None:
    pages.mood = mood
    with pytest.raises(kind) as caught:
        await client.containers()
    assert "/ws/v1/node/containers" in str(caught.value)
    assert len(str(caught.value)) < 500
    pages.mood = Mood.FINE
    assert await client.containers() == ({}, 0)


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        ("Negotiate", ("want Kerberos", "hadoop.http.authentication.type to simple")),
        ("PseudoAuth", ("want a name", "node_manager.user")),
        ("Basic realm=" + "x" * 4000, ("want a login", "Basic realm")),
    ],
)
async def test_pages_that_want_a_login_are_told_with_the_setting_that_opens_them(
    pages: EmbeddedNodeManager, client: NodeManagerClient, challenge: str, words: tuple[str, ...]
) -> None:
    pages.mood, pages.challenge = Mood.UNAUTHORIZED, challenge
    with pytest.raises(NodeManagerLoginError) as caught:
        await client.info()
    assert all(word in str(caught.value) for word in words)
    assert len(str(caught.value)) < 500


async def test_nothing_listening_is_told_apart(pages: EmbeddedNodeManager, client: NodeManagerClient) -> None:
    await pages.stop()
    with pytest.raises(NodeManagerRefusedError):
        await client.containers()
    await pages.start()


async def test_the_reader_keeps_the_last_list_and_says_how_it_is_answered(
    pages: EmbeddedNodeManager, client: NodeManagerClient
) -> None:
    reader = NodeManagerReader(client, clock=SystemClock(), poll_interval_seconds=0.05)
    task = asyncio.create_task(reader.run())
    try:
        pages.add(container_id(2))
        await until(lambda: container_id(2) in reader.view.containers, "the list is read")
        for mood, answering in (
            (Mood.HANGS, Answering.HANGS),
            (Mood.BABBLES, Answering.BABBLES),
            (Mood.UNAUTHORIZED, Answering.WANTS_LOGIN),
            (Mood.FINE, Answering.ANSWERS),
        ):
            pages.mood = mood
            await until(functools.partial(_answers, reader, answering), answering.value)
            assert container_id(2) in reader.view.containers
        await pages.stop()
        await until(lambda: reader.view.answering is Answering.REFUSES, "it refuses")
        refused = reader.view.dead_for(reader.view.answering_since + 5)
        assert refused == pytest.approx(5)
        await pages.start()
        await until(lambda: reader.view.answering is Answering.ANSWERS, "it answers again")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _answers(reader: NodeManagerReader, answering: Answering) -> bool:
    return reader.view.answering is answering


async def test_somebody_in_a_hurry_gets_a_fresh_list(pages: EmbeddedNodeManager, client: NodeManagerClient) -> None:
    reader = NodeManagerReader(client, clock=SystemClock(), poll_interval_seconds=60)
    task = asyncio.create_task(reader.run())
    try:
        await until(lambda: reader.view.answering is Answering.ANSWERS, "it answers")
        pages.add(container_id(2))
        view = await reader.next_view(timeout_seconds=10)
        assert container_id(2) in view.containers
        pages.mood = Mood.HANGS
        assert await reader.next_view(timeout_seconds=0.05) is reader.view
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_certificate_that_is_not_trusted_tells_nothing_of_who_listens(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    client = NodeManagerClient(f"https://127.0.0.1:{port}", timeout_seconds=20)
    try:
        with pytest.raises(NodeManagerUnreachableError, match=r"(?i)certificate"):
            await client.containers()
    finally:
        await client.aclose()
        server.close()
        await server.wait_closed()


async def test_a_name_that_is_not_resolved_tells_nothing_of_who_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object, **__: object) -> NoReturn:
        raise OSError(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", fails)
    monkeypatch.setattr(aiohttp.connector, "DefaultResolver", aiohttp.ThreadedResolver)
    client = NodeManagerClient("http://nobody.invalid:8042", timeout_seconds=20)
    try:
        with pytest.raises(NodeManagerUnreachableError):
            await client.containers()
    finally:
        await client.aclose()

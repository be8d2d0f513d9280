# SPDX-License-Identifier: Apache-2.0
"""Authenticate with tokens to an in-process server, and break the handshake in every way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.embedded.yarn import Authentication, EmbeddedYarn, EmbeddedYarnOptions
from tests.contract.hadoop.backend import settled
from yarn_copilot.hadoop import connection, errors, security
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.authentication import Identity
from yarn_copilot.hadoop.protocols import application_client
from yarn_copilot.hadoop.sasl.protection import Protection
from yarn_copilot.hadoop.sasl.tokens import DelegationToken

TOKEN = DelegationToken(b"identifier-of-alice", b"secret-bytes", "RM_DELEGATION_TOKEN", "rm:8032")
METHOD = application_client.GET_CLUSTER_NODES
DEADLINE = 10.0
EVERY_QOP = ("auth", "auth-int", "auth-conf")


def accepting(**options: object) -> Authentication:
    """Give a server's side that knows the token."""
    return Authentication(tokens={TOKEN.identifier: (TOKEN.password, "alice")}, **options)  # type: ignore[arg-type]


def identity(
    *protections: Protection,
    token: DelegationToken | None = TOKEN,
    fallback: bool = False,
    proxy_user: str | None = None,
) -> Identity:
    """Give a client's side; without a token it wants Kerberos."""
    method = security.AuthenticationMethod.SIMPLE if token else security.AuthenticationMethod.KERBEROS
    return Identity(
        user="whoever",
        token=token,
        proxy_user=proxy_user,
        security=security.ClusterSecurity(
            method=method,
            protections=protections or (Protection.AUTHENTICATION,),
            fallback_to_simple=fallback,
        ),
    )


@asynccontextmanager
async def served(authentication: Authentication | None) -> AsyncIterator[EmbeddedYarn]:
    """Run a ResourceManager with one node."""
    options = EmbeddedYarnOptions(heartbeat_seconds=None, authentication=authentication)
    async with EmbeddedYarn(options) as yarn:
        yarn.add_node("nm-0")
        yield yarn


async def opened(yarn: EmbeddedYarn, who: Identity | None, *, seconds: float = DEADLINE) -> connection.Connection:
    """Open a connection to the client port."""
    options = connection.ConnectionOptions(
        user="whoever", connect_timeout_seconds=seconds, max_response_bytes=10_000_000, identity=who
    )
    address = Address("127.0.0.1", yarn.client_port.port)
    return await connection.open_connection(address, protocol=application_client.PROTOCOL, options=options)


@pytest.mark.parametrize("pieces", [1, 3], ids=["whole answers", "answers in pieces"])
@pytest.mark.parametrize("sends_challenge", [True, False], ids=["challenge ahead", "challenge on demand"])
@pytest.mark.parametrize("protection", list(Protection), ids=lambda one: one.hadoop_name)
async def test_token_opens_a_session_of_each_protection(
    protection: Protection, sends_challenge: bool, pieces: int
) -> None:
    server = accepting(qops=EVERY_QOP, sends_challenge=sends_challenge, pieces=pieces)
    async with served(server) as yarn:
        link = await opened(yarn, identity(protection))
        try:
            assert link.method == "TOKEN"
            bodies = await asyncio.gather(*(link.call(METHOD, b"", timeout_seconds=DEADLINE) for _ in range(5)))
            assert len(set(bodies)) == 1
            assert b"nm-0" in bodies[0]
        finally:
            await link.aclose()


@pytest.mark.parametrize("cipher", ["rc4", "rc4-56", "rc4-40"])
async def test_every_length_of_cipher_key_works(cipher: str) -> None:
    async with served(accepting(qops=("auth-conf",), ciphers=cipher)) as yarn:
        link = await opened(yarn, identity(Protection.PRIVACY))
        assert b"nm-0" in await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        await link.aclose()


async def test_request_longer_than_the_layer_takes_is_cut() -> None:
    async with served(accepting(qops=("auth-int",))) as yarn:
        link = await opened(yarn, identity(Protection.INTEGRITY))
        long = b"\xba\x3e\xf0\xa2\x04" + b"x" * 70_000
        assert b"nm-0" in await link.call(METHOD, long, timeout_seconds=DEADLINE)
        await link.aclose()


async def refused(
    authentication: Authentication | None, who: Identity | None, kind: type[Exception], text: str
) -> None:
    """Check that no session comes about, and that nothing stays open."""
    async with served(authentication) as yarn:
        with pytest.raises(kind, match=text):
            await one_call(Address("127.0.0.1", yarn.client_port.port), who)
        await settled(lambda: not yarn.client_port.open_connections)
        assert yarn.calls == {}


async def test_wrong_secret_is_refused_by_the_server() -> None:
    wrong = DelegationToken(TOKEN.identifier, b"another secret")
    await refused(accepting(), identity(token=wrong), errors.AuthenticationRefusedError, "token can't be found")


async def test_server_without_proof_is_refused_by_the_client() -> None:
    await refused(accepting(proves_itself=False), identity(), errors.ServerIdentityError, "did not prove")


async def test_protection_that_the_server_lacks_is_named() -> None:
    await refused(accepting(), identity(Protection.PRIVACY), errors.AuthenticationError, "privacy")


async def test_cipher_that_is_not_understood_is_named() -> None:
    server = accepting(qops=EVERY_QOP, ciphers="3des,des")
    await refused(server, identity(Protection.PRIVACY), errors.AuthenticationError, "3des")


async def test_client_without_authentication_is_told_what_the_server_wants() -> None:
    await refused(accepting(), None, errors.AuthenticationRefusedError, "SIMPLE authentication is not enabled")


async def test_server_without_authentication_is_refused_by_default() -> None:
    await refused(None, identity(), errors.AuthenticationError, "fallback-to-simple-auth-allowed")


async def test_server_without_authentication_is_accepted_where_the_configuration_says_so() -> None:
    async with served(None) as yarn:
        link = await opened(yarn, identity(fallback=True))
        assert link.method == "SIMPLE"
        assert await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        await link.aclose()


async def test_kerberos_server_with_another_name_is_refused_before_any_ticket_is_asked_for() -> None:
    who = identity(token=None)
    await refused(accepting(), who, errors.ServerIdentityError, "yarn.resourcemanager.principal is not configured")


async def test_token_cannot_speak_for_another_user() -> None:
    await refused(accepting(), identity(proxy_user="bob"), errors.ConnectionLostError, "ended")


class Tap:
    """Stand between client and server and cut or change what the server says."""

    def __init__(self, port: int, *, limit: int | None = None, flip_at: int | None = None) -> None:
        self._port = port
        self._limit = limit
        self._flip_at = flip_at
        self._conversations: set[asyncio.Task[None] | None] = set()
        self.passed = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        """Listen and give the address; at the end wait until all conversations are over."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
            await asyncio.gather(*(task for task in self._conversations if task is not None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._conversations.add(asyncio.current_task())
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        forward = asyncio.create_task(self._forward(reader, server_writer))
        with contextlib.suppress(OSError):
            while data := await server_reader.read(65_536):
                writer.write(self._changed(data))
                if self._limit is not None and self.passed >= self._limit:
                    break
        for ending in (writer, server_writer):
            ending.close()
        await forward
        for ending in (writer, server_writer):
            with contextlib.suppress(OSError):
                await ending.wait_closed()

    def _changed(self, data: bytes) -> bytes:
        start, self.passed = self.passed, self.passed + len(data)
        if self._flip_at is not None and start <= self._flip_at < self.passed:
            position = self._flip_at - start
            data = data[:position] + bytes((data[position] ^ 1,)) + data[position + 1 :]
        return data if self._limit is None else data[: max(0, self._limit - start)]

    @staticmethod
    async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()


async def one_call(address: Address, who: Identity | None) -> bytes:
    """Open a connection, call once, close."""
    options = connection.ConnectionOptions(
        user="u", connect_timeout_seconds=DEADLINE, max_response_bytes=1_000_000, identity=who
    )
    link = await connection.open_connection(address, protocol=application_client.PROTOCOL, options=options)
    try:
        return await link.call(METHOD, b"", timeout_seconds=DEADLINE)
    finally:
        await link.aclose()


async def test_conversation_cut_at_any_byte_is_an_error_of_ours() -> None:
    who = identity(Protection.INTEGRITY)
    async with served(accepting(qops=EVERY_QOP)) as yarn:
        whole = Tap(yarn.client_port.port)
        async with whole.listening() as address:
            assert await one_call(address, who)
        for limit in range(whole.passed):
            async with Tap(yarn.client_port.port, limit=limit).listening() as address:
                with pytest.raises((errors.ConnectError, errors.ConnectionLostError)):
                    await one_call(address, who)
        await settled(lambda: not yarn.client_port.open_connections)


async def test_any_flipped_bit_of_a_protected_answer_is_noticed() -> None:
    who = identity(Protection.INTEGRITY)
    async with served(accepting(qops=EVERY_QOP)) as yarn:
        whole = Tap(yarn.client_port.port)
        async with whole.listening() as address:
            expected = await one_call(address, who)
        for position in range(whole.passed - 40, whole.passed):
            async with Tap(yarn.client_port.port, flip_at=position).listening() as address:
                with pytest.raises((errors.AuthenticationError, errors.ProtocolViolationError)):
                    assert await one_call(address, who) != expected
        await settled(lambda: not yarn.client_port.open_connections)


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        pytest.param(b"HTTP/1.1 404 Not Found\r\n\r\n", errors.WrongPortError, "web port", id="http"),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x28", errors.WrongPortError, "HTTPS", id="tls"),
        pytest.param(b"\x7f\xff\xff\xff", errors.FrameTooLargeError, "announces", id="huge frame"),
        pytest.param(b"\x00\x00\x00\x01\x00", errors.ProtocolViolationError, "call id", id="empty header"),
        pytest.param(b"", errors.ConnectError, "closed", id="nothing"),
    ],
)
async def test_strange_server_is_told_during_the_handshake(said: bytes, kind: type[Exception], text: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        with pytest.raises(kind, match=text):
            await one_call(Address("127.0.0.1", server.sockets[0].getsockname()[1]), identity())


async def test_silence_during_the_handshake_ends_with_the_deadline() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read(-1)
        writer.close()
        ended.set()

    ended = asyncio.Event()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        options = connection.ConnectionOptions(
            user="u", connect_timeout_seconds=0.1, max_response_bytes=1000, identity=identity()
        )
        with pytest.raises(errors.ConnectError, match="handshake"):
            await connection.open_connection(address, protocol="p", options=options)
        await ended.wait()

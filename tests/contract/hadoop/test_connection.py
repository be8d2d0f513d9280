# SPDX-License-Identifier: Apache-2.0
"""Break connections in every way and look at what callers get, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, faults, wire
from tests.contract.hadoop.backend import settled
from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.protocols import application_client

METHOD = application_client.GET_CLUSTER_METRICS
OPTIONS = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=5, max_response_bytes=100_000)
DEADLINE = 10.0
SHORT = 0.1


@pytest.fixture
async def yarn() -> AsyncIterator[EmbeddedYarn]:
    """Run an embedded ResourceManager whose nodes never report by themselves."""
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as started:
        yield started


@asynccontextmanager
async def connected(yarn: EmbeddedYarn) -> AsyncIterator[connection.Connection]:
    """Open a connection to the client port; afterwards neither side has anything left."""
    tasks_before = asyncio.all_tasks()
    address = Address("127.0.0.1", yarn.client_port.port)
    link = await connection.open_connection(address, protocol=application_client.PROTOCOL, options=OPTIONS)
    try:
        yield link
    finally:
        await link.aclose()
        yarn.client_port.close_connections()
        await settled(lambda: not yarn.client_port.open_connections)
    assert {task.get_name() for task in asyncio.all_tasks() - tasks_before if "reader" in task.get_name()} == set()


@asynccontextmanager
async def raw_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Address]:
    """Listen with a server that says anything at all."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])


async def test_call_gives_the_message(yarn: EmbeddedYarn) -> None:
    yarn.add_node("nm-0")
    async with connected(yarn) as link:
        body = await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        assert application_client.decode_cluster_metrics(body).active == 1


async def test_answer_cut_at_any_byte_is_a_lost_connection(yarn: EmbeddedYarn) -> None:
    lengths = []

    def measure(frame: bytes, _request: wire.Request) -> bytes:
        lengths.append(len(frame))
        return frame

    yarn.faults.add(faults.Fault(spoil=measure))
    async with connected(yarn) as link:
        await link.call(METHOD, b"", timeout_seconds=DEADLINE)
    for byte_count in range(lengths[0]):
        yarn.faults.add(faults.cut_after(byte_count))
        async with connected(yarn) as link:
            with pytest.raises(errors.ConnectionLostError):
                await link.call(METHOD, b"", timeout_seconds=DEADLINE)
            assert not link.is_usable
    assert lengths[0] > 20


async def test_end_of_the_connection_fails_every_call_in_flight(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.silent(), times=3)
    async with connected(yarn) as link:
        calls = [asyncio.create_task(link.call(METHOD, b"", timeout_seconds=DEADLINE)) for _ in range(3)]
        await settled(lambda: yarn.calls[METHOD] == 3)
        assert link.calls_in_flight == 3
        yarn.client_port.close_connections()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [errors.ConnectionLostError] * 3
        assert len({id(result) for result in results}) == 3
        assert link.calls_in_flight == 0


async def test_closing_from_this_side_fails_calls_in_flight(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.silent())
    async with connected(yarn) as link:
        call = asyncio.create_task(link.call(METHOD, b"", timeout_seconds=DEADLINE))
        await settled(lambda: yarn.calls[METHOD])
        await link.aclose()
        with pytest.raises(errors.ClientClosedError):
            await call
        with pytest.raises(errors.ConnectError, match="nothing was sent"):
            await link.call(METHOD, b"", timeout_seconds=DEADLINE)


async def test_silent_server_costs_the_deadline_and_the_connection(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.silent())
    async with connected(yarn) as link:
        with pytest.raises(errors.CallTimeoutError, match=r"no answer within 0\.1 s"):
            await link.call(METHOD, b"", timeout_seconds=SHORT)
        assert not link.is_usable
        assert link.calls_in_flight == 0


async def test_slow_call_does_not_hold_up_others_nor_end_the_connection(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.slow(30.0))
    async with connected(yarn) as link:
        slow = asyncio.create_task(link.call(METHOD, b"", timeout_seconds=SHORT))
        await settled(lambda: yarn.calls[METHOD])
        assert await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        with pytest.raises(errors.CallTimeoutError):
            await slow
        assert link.is_usable


async def test_late_answer_is_counted_and_ignored(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.slow(0.3))
    async with connected(yarn) as link:
        late = asyncio.create_task(link.call(METHOD, b"", timeout_seconds=SHORT))
        await settled(lambda: yarn.calls[METHOD])
        await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        with pytest.raises(errors.CallTimeoutError):
            await late
        await settled(lambda: link.unknown_responses)
        assert await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        assert link.unknown_responses == 1


async def test_retired_connection_finishes_its_calls_before_it_closes(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.slow(0.1))
    async with connected(yarn) as link:
        call = asyncio.create_task(link.call(METHOD, b"", timeout_seconds=DEADLINE))
        await settled(lambda: yarn.calls[METHOD])
        link.retire()
        assert not link.is_usable
        assert await call
        await settled(lambda: not yarn.client_port.open_connections)


async def test_answer_for_a_call_that_nobody_made_is_counted_and_ignored(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.wrong_call_id())
    async with connected(yarn) as link:
        with pytest.raises(errors.CallTimeoutError):
            await link.call(METHOD, b"", timeout_seconds=SHORT)
        assert link.unknown_responses == 1
        assert link.is_usable


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        pytest.param(faults.oversize(100_001), errors.FrameTooLargeError, id="oversize"),
        pytest.param(faults.oversize(-5), errors.ProtocolViolationError, id="negative length"),
        pytest.param(faults.http_answer(), errors.WrongPortError, id="http"),
        pytest.param(faults.raw(struct.pack(">i", 3) + b"\x02\xff\xff"), errors.ProtocolViolationError, id="garbage"),
    ],
)
async def test_broken_protocol_ends_the_connection(
    yarn: EmbeddedYarn, fault: faults.Fault, kind: type[errors.HadoopRPCError]
) -> None:
    yarn.faults.add(fault)
    async with connected(yarn) as link:
        with pytest.raises(kind) as caught:
            await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        assert type(caught.value) is kind
        assert str(link.address) in str(caught.value)
        assert not link.is_usable


async def test_refused_call_leaves_the_connection_usable(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.refusal("org.apache.hadoop.ipc.RetriableException", "not yet"))
    async with connected(yarn) as link:
        with pytest.raises(errors.ServerBusyError, match="not yet"):
            await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        assert await link.call(METHOD, b"", timeout_seconds=DEADLINE)


async def test_fatal_refusal_reaches_every_call_and_ends_the_connection(yarn: EmbeddedYarn) -> None:
    denied = "org.apache.hadoop.security.AccessControlException"
    yarn.faults.add(faults.silent())
    yarn.faults.add(faults.refusal(denied, "SIMPLE authentication is not enabled.", is_fatal=True))
    async with connected(yarn) as link:
        calls = [asyncio.create_task(link.call(METHOD, b"", timeout_seconds=DEADLINE)) for _ in range(2)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [errors.AuthenticationRefusedError] * 2
        assert "SIMPLE" in str(results[0])
        assert not link.is_usable


async def test_server_that_closes_an_idle_connection_is_noticed(yarn: EmbeddedYarn) -> None:
    async with connected(yarn) as link:
        await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        yarn.client_port.close_connections()
        await settled(lambda: not link.is_usable)


async def test_cancelled_caller_leaves_nothing_behind(yarn: EmbeddedYarn) -> None:
    yarn.faults.add(faults.silent())
    async with connected(yarn) as link:
        call = asyncio.create_task(link.call(METHOD, b"", timeout_seconds=DEADLINE))
        await settled(lambda: yarn.calls[METHOD])
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert link.calls_in_flight == 0
        assert link.is_usable


async def test_web_port_dialled_by_mistake_is_named_as_such() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 No URI\r\n\r\n")

    async with raw_server(talk) as address:
        link = await connection.open_connection(address, protocol="p", options=OPTIONS)
        with pytest.raises(errors.WrongPortError, match="400 No URI"):
            await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        await link.aclose()


async def test_connection_reset_is_a_lost_connection() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(7)
        writer.transport.abort()

    async with raw_server(talk) as address:
        link = await connection.open_connection(address, protocol="p", options=OPTIONS)
        with pytest.raises(errors.ConnectionLostError):
            await link.call(METHOD, b"", timeout_seconds=DEADLINE)
        await link.aclose()


async def test_peer_that_reads_nothing_cannot_hold_a_large_request() -> None:
    release = asyncio.Event()

    async def talk(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await release.wait()

    async with raw_server(talk) as address:
        link = await connection.open_connection(address, protocol="p", options=OPTIONS)
        with pytest.raises(errors.CallTimeoutError):
            await link.call(METHOD, b"x" * 30_000_000, timeout_seconds=SHORT)
        release.set()
        await link.aclose()


async def test_refused_connect_is_an_error_after_which_nothing_was_sent() -> None:
    async with raw_server(lambda _reader, _writer: asyncio.sleep(0)) as address:
        pass
    with pytest.raises(errors.ConnectError, match="cannot connect") as caught:
        await connection.open_connection(address, protocol="p", options=OPTIONS)
    assert not caught.value.may_have_been_applied


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid"], ids=["unknown", "label too long"])
async def test_host_name_that_does_not_resolve_is_a_connect_error(host: str) -> None:
    with pytest.raises(errors.ConnectError):
        await connection.open_connection(Address(host, 8032), protocol="p", options=OPTIONS)

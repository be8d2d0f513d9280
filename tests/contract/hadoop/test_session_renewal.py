# SPDX-License-Identifier: Apache-2.0
"""Replace sessions before they end, without a failed call, also where nothing new can be had for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions
from tests.contract.hadoop.backend import settled
from yarn_copilot.hadoop import connection, errors, failover
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.protocols import application_client
from yarn_copilot.hadoop.sasl.negotiation import Established, Outcome

METHOD = application_client.GET_CLUSTER_METRICS
LIFE_SECONDS = 1000.0


class HandClock:
    """Give seconds that a test moves by hand."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Sessions:
    """Open connections whose sessions end after `LIFE_SECONDS`; `broken` refuses new ones."""

    def __init__(self, yarn: EmbeddedYarn) -> None:
        self.clock = HandClock()
        self.opened = 0
        self.broken: errors.HadoopRPCError | None = None
        address = Address("127.0.0.1", yarn.client_port.port)
        self.caller = failover.FailoverCaller([address], connect=self._connect, clock=self.clock)

    async def call(self) -> None:
        """Call once."""
        await self.caller.call(METHOD, b"", timeout_seconds=10, is_read=True)

    async def _connect(self, address: Address) -> connection.Connection:
        if self.broken is not None:
            raise self.broken
        self.opened += 1
        options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=5, max_response_bytes=10_000)
        link = await connection.open_connection(address, protocol=application_client.PROTOCOL, options=options)
        link.lifetime_seconds = LIFE_SECONDS
        return link


@pytest.fixture
async def sessions() -> AsyncIterator[Sessions]:
    """Run a server; at the end nothing is open."""
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as yarn:
        started = Sessions(yarn)
        yield started
        await started.caller.aclose()
        await settled(lambda: not yarn.client_port.open_connections)


async def test_session_is_kept_until_most_of_its_life_is_over(sessions: Sessions) -> None:
    await sessions.call()
    sessions.clock.seconds = 799
    await sessions.call()
    assert sessions.opened == 1


async def test_session_is_replaced_before_it_ends(sessions: Sessions) -> None:
    await sessions.call()
    sessions.clock.seconds = 801
    await sessions.call()
    await sessions.call()
    assert sessions.opened == 2


async def test_old_session_serves_while_no_new_one_can_be_had(sessions: Sessions) -> None:
    await sessions.call()
    sessions.broken = errors.KDCUnreachableError("no KDC answers")
    sessions.clock.seconds = 801
    await sessions.call()
    sessions.broken = None
    sessions.clock.seconds = 830
    await sessions.call()
    assert sessions.opened == 1  # it is not tried again with every call
    sessions.clock.seconds = 832
    await sessions.call()
    assert sessions.opened == 2


async def test_session_that_is_over_is_not_used(sessions: Sessions) -> None:
    await sessions.call()
    sessions.broken = errors.KDCUnreachableError("no KDC answers")
    sessions.clock.seconds = 801
    await sessions.call()
    sessions.clock.seconds = 996
    with pytest.raises(errors.KDCUnreachableError):
        await sessions.call()


async def test_layer_that_cannot_sign_any_more_sends_nothing_and_the_call_goes_to_a_new_session() -> None:
    class Over:
        max_plain_bytes = 1000

        def wrap(self, message: bytes) -> bytes:
            raise errors.AuthenticationError("the context is over")

        def unwrap(self, token: bytes) -> bytes:
            raise AssertionError

    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as yarn:
        address = Address("127.0.0.1", yarn.client_port.port)
        options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=5, max_response_bytes=10_000)
        opened: list[connection.Connection] = []

        async def connect(_address: Address) -> connection.Connection:
            link = await connection.open_connection(address, protocol=application_client.PROTOCOL, options=options)
            if not opened:
                streams = (link._reader, link._writer)
                link._reader_task.cancel()
                link = connection.Connection(
                    address, application_client.PROTOCOL, options, streams, Outcome("KERBEROS", Established(Over()))
                )
            opened.append(link)
            return link

        caller = failover.FailoverCaller([address], connect=connect, clock=HandClock())
        assert await caller.call(METHOD, b"", timeout_seconds=10, is_read=True)
        assert len(opened) == 2
        assert yarn.calls == {METHOD: 1}
        await caller.aclose()

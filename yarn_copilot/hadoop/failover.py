# SPDX-License-Identifier: Apache-2.0
"""Find the ResourceManager that answers, among the addresses of one cluster's protocol.

One connection at a time, to the address that worked last; opened by the call that needs it and shared by all calls
of the moment. An address is left when it does not connect, when its connection ends, or when it says that it is on
standby. Within one call every address is tried once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.addresses import Address


class MonotonicClock(Protocol):
    """Give seconds that never run backwards."""

    def monotonic(self) -> float:
        """Read the clock."""


Connector = Callable[[Address], Awaitable[connection.Connection]]


class FailoverCaller:
    """Make calls on whichever address is active; belongs to one event loop."""

    def __init__(self, addresses: Sequence[Address], *, connect: Connector, clock: MonotonicClock) -> None:
        """Remember the addresses; nothing is opened yet.

        Args:
            addresses: at least one, in the order of the configuration.
            connect: opens a connection or raises `ConnectError`.
            clock: measures what is left of a deadline between tries.
        """
        self._addresses = tuple(addresses)
        self._connect = connect
        self._clock = clock
        self._index = 0
        self._connection: connection.Connection | None = None
        self._retired: list[connection.Connection] = []
        self._opening = asyncio.Lock()
        self._is_closed = False

    @property
    def current_address(self) -> Address:
        """Name the address that the next call goes to."""
        return self._addresses[self._index]

    async def call(self, method: str, request: bytes, *, timeout_seconds: float, is_read: bool) -> bytes:
        """Send a call to the active address.

        Args:
            method: Java method name.
            request: serialized request message.
            timeout_seconds: deadline of all tries together, connects included.
            is_read: the call changes nothing, so it may be sent again although the first one may have arrived. Any
                other call is sent again only when the server certainly did nothing with it.

        Raises:
            HadoopRPCError: the last try's error; see its subclasses.
        """
        deadline = self._clock.monotonic() + timeout_seconds
        tries_left = len(self._addresses) + (1 if is_read else 0)
        while True:
            tries_left -= 1
            used = self._index
            try:
                link = await self._usable_connection(deadline)
                return await link.call(method, request, timeout_seconds=self._seconds_left(deadline, method))
            except (errors.ConnectError, errors.ConnectionLostError, errors.StandbyError) as error:
                was_sent = error.may_have_been_applied
                self._leave(used)
                if tries_left <= 0 or (was_sent and not is_read):
                    raise

    async def aclose(self) -> None:
        """Close what is open; calls in flight and later ones fail with `ClientClosedError`."""
        self._is_closed = True
        async with self._opening:
            links = [*self._retired, *([self._connection] if self._connection else [])]
            self._connection = None
            self._retired.clear()
        for link in links:
            await link.aclose()

    async def _usable_connection(self, deadline: float) -> connection.Connection:
        async with self._opening:
            if self._is_closed:
                raise errors.ClientClosedError("the client is closed")
            link = self._connection
            if link is not None and link.is_usable and link.address == self.current_address:
                return link
            if link is not None:
                link.retire()
                self._connection = None
                await self._forget_retired(link)
            try:
                async with asyncio.timeout(max(0.0, deadline - self._clock.monotonic())):
                    self._connection = await self._connect(self.current_address)
            except TimeoutError as error:
                raise errors.ConnectError(f"cannot connect to {self.current_address} within the deadline") from error
            return self._connection

    async def _forget_retired(self, link: connection.Connection) -> None:
        """Finish connections whose last call has ended; keep those that still carry one."""
        self._retired.append(link)
        for finished in [candidate for candidate in self._retired if not candidate.calls_in_flight]:
            self._retired.remove(finished)
            await finished.aclose()

    def _leave(self, used: int) -> None:
        """Go on to the next address, unless another call did so already."""
        if self._index == used:
            self._index = (used + 1) % len(self._addresses)

    def _seconds_left(self, deadline: float, method: str) -> float:
        seconds = deadline - self._clock.monotonic()
        if seconds <= 0:
            raise errors.ConnectError(f"{method}: the deadline passed while connecting to {self.current_address}")
        return seconds

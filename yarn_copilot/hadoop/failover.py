# SPDX-License-Identifier: Apache-2.0
"""Make calls on the ResourceManager that is active, among the addresses of one cluster's protocol.

One connection at a time, to the address that worked last; opened by the call that needs it and shared by all calls
of the moment. It is left when it ends, when its server says that it is on standby, when it is silent, or when a caller
of another protocol has found another one active (`active`). With several addresses and a probe the active one is then
searched (`searching`) for as long as the call's deadline allows, and while a call waits for its answer as well
(`succession`); with one address it is dialled anew.

A call that changes something is sent again only when the server certainly did nothing with it. Where it may have
arrived, the caller gets the error and decides after reading back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from yarn_copilot.hadoop import connection, errors, searching, succession
from yarn_copilot.hadoop.active import ActiveOne
from yarn_copilot.hadoop.addresses import Address

logger = logging.getLogger(__name__)

RENEW_AFTER: Final = 0.8
"""Part of a session's life after which a new connection replaces it, while the old one still serves."""
END_MARGIN_SECONDS: Final = 5.0
RENEW_RETRY_SECONDS: Final = 30.0
OPENING_PART: Final = 0.9
"""Part of what is left of a deadline that opening may take, so that its own, more telling error comes first."""
READ_TRY_PART: Final = 0.5
"""Part of a read's deadline that one silent server may use up where there is another."""

Connector = searching.Connector


class MonotonicClock(Protocol):
    """Give seconds that never run backwards."""

    def monotonic(self) -> float:
        """Read the clock."""


class _Link:
    """Hold a connection with the times at which its session is to be replaced and at which it is over."""

    def __init__(self, link: connection.Connection, now: float) -> None:
        self.connection = link
        self.renew_at: float | None = None
        self.ends_at: float | None = None
        if link.lifetime_seconds is not None:
            self.renew_at = now + RENEW_AFTER * link.lifetime_seconds
            self.ends_at = now + max(RENEW_AFTER * link.lifetime_seconds, link.lifetime_seconds - END_MARGIN_SECONDS)

    def is_usable(self, now: float) -> bool:
        return self.connection.is_usable and (self.ends_at is None or now < self.ends_at)

    def is_due(self, now: float) -> bool:
        return self.renew_at is not None and now >= self.renew_at


class FailoverCaller:
    """Make calls on whichever address is active; belongs to one event loop."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        connect: Connector,
        clock: MonotonicClock,
        probe: searching.Probe | None = None,
        active: ActiveOne | None = None,
    ) -> None:
        """Remember the addresses; nothing is opened yet.

        Args:
            addresses: at least one, in the order of the configuration.
            connect: opens a connection or raises `HadoopRPCError`.
            clock: measures what is left of a deadline between tries.
            probe: tells the active one of several addresses; needed where there are several.
            active: which one that is, shared with the callers of other protocols, whose addresses have the same order;
                None: shared with nobody.
        """
        if len(addresses) > 1 and probe is None:
            raise ValueError("several addresses need a probe")
        self._addresses = tuple(addresses)
        self._connect = connect
        self._clock = clock
        self._probe = probe if self.has_alternatives else None
        self._active = active or ActiveOne()
        self._link: _Link | None = None
        self._retired: list[connection.Connection] = []
        self._opening = asyncio.Lock()
        self._is_closed = False

    @property
    def current_address(self) -> Address:
        """Name the address that the next call goes to first."""
        return self._addresses[self._active.index]

    @property
    def has_alternatives(self) -> bool:
        """Tell whether there is more than one address."""
        return len(self._addresses) > 1

    async def call(self, method: str, request: bytes, *, timeout_seconds: float, is_read: bool) -> bytes:
        """Send a call to the active address.

        Args:
            method: Java method name.
            request: serialized request message.
            timeout_seconds: deadline of all tries together, connects and searches included.
            is_read: the call changes nothing, so it may be sent again although the first one may have arrived.

        Raises:
            HadoopRPCError: the last try's error; see its subclasses.
        """
        deadline = self._clock.monotonic() + timeout_seconds
        # With one address, only a connection that turns out to be dead is worth a second try.
        tries_left = None if self.has_alternatives else (2 if is_read else 1)
        while True:
            link = await self._connection_in_time(deadline, method)
            seconds = self._seconds_left(deadline, method)
            if is_read and self.has_alternatives:
                seconds = min(seconds, READ_TRY_PART * timeout_seconds)
            try:
                return await self._call_on(link, succession.Call(method, request, is_read), seconds)
            except errors.HadoopRPCError as error:
                tries_left = None if tries_left is None else tries_left - 1
                if not self._may_try_again(error, is_read=is_read, tries_left=tries_left):
                    raise
                if self._clock.monotonic() >= deadline:
                    raise
                await self._leave(link)

    async def _call_on(self, link: connection.Connection, wanted: succession.Call, seconds: float) -> bytes:
        """Make a call; end it where its server is silent and another one has become active."""
        if self._probe is None:
            return await link.call(wanted.method, wanted.request, timeout_seconds=seconds)
        others = [address for address in self._addresses if address != link.address]
        search = searching.ActiveSearch(others, connect=self._connect, probe=self._probe)
        successor = succession.Succession(self._probe, search, self._active.change())
        answer = await succession.call(link, wanted, timeout_seconds=seconds, successor=successor)
        if isinstance(answer, bytes):
            return answer
        await self._succeed(link, answer)
        raise succession.given_up(wanted, silent=link.address, active=answer.address)

    async def aclose(self) -> None:
        """Close what is open; calls in flight and later ones fail with `ClientClosedError`."""
        self._is_closed = True
        async with self._opening:
            links = [*self._retired, *([self._link.connection] if self._link else [])]
            self._link = None
            self._retired.clear()
        for link in links:
            await link.aclose()

    def _may_try_again(self, error: errors.HadoopRPCError, *, is_read: bool, tries_left: int | None) -> bool:
        if tries_left is not None and (tries_left <= 0 or isinstance(error, errors.StandbyError)):
            return False
        if isinstance(error, (errors.StandbyError, errors.ConnectError)):
            return True
        if isinstance(error, errors.CallTimeoutError):
            return is_read and self.has_alternatives
        return isinstance(error, errors.ConnectionLostError) and is_read

    async def _connection_in_time(self, deadline: float, method: str) -> connection.Connection:
        """Give the connection to use; waiting for another call that opens it counts, too."""
        seconds = max(0.0, deadline - self._clock.monotonic())
        try:
            async with asyncio.timeout(seconds):
                return await self._usable_connection(deadline)
        except TimeoutError as error:
            raise errors.ConnectError(
                f"{method}: no connection to {self.current_address} within the deadline"
            ) from error

    async def _usable_connection(self, deadline: float) -> connection.Connection:
        async with self._opening:
            if self._is_closed:
                raise errors.ClientClosedError("the client is closed")
            now = self._clock.monotonic()
            if self._link is not None and self._link.is_usable(now) and self._is_at_active(self._link):
                if self._link.is_due(now):
                    await self._renew(self._link, deadline)
                return self._link.connection
            await self._drop()
            opened = await self._open(deadline)
            self._link = _Link(opened, self._clock.monotonic())
            return opened

    def _is_at_active(self, link: _Link) -> bool:
        return link.connection.address == self.current_address

    async def _open(self, deadline: float) -> connection.Connection:
        seconds = OPENING_PART * max(0.0, deadline - self._clock.monotonic())
        if self._probe is not None:
            first = self._active.index
            preferred = (*self._addresses[first:], *self._addresses[:first])
            search = searching.ActiveSearch(preferred, connect=self._connect, probe=self._probe)
            found = await search.run(timeout_seconds=seconds)
            self._choose(found.address)
            return found
        try:
            async with asyncio.timeout(seconds):
                return await self._connect(self.current_address)
        except TimeoutError as error:
            raise errors.ConnectError(f"cannot connect to {self.current_address} within the deadline") from error

    def _choose(self, address: Address) -> None:
        if self._active.found(self._addresses.index(address)):
            logger.info("Changed to another ResourceManager", extra={"rm": str(address)})

    async def _succeed(self, silent: connection.Connection, found: connection.Connection) -> None:
        """Use a connection to another one from now on, unless another call has changed already."""
        async with self._opening:
            if self._is_closed or self._link is None or self._link.connection is not silent:
                await found.aclose()
                return
            await self._drop()
            self._choose(found.address)
            self._link = _Link(found, self._clock.monotonic())

    async def _renew(self, due: _Link, deadline: float) -> None:
        """Replace a session that will end; where that fails the old one serves on and it is tried again later."""
        now = self._clock.monotonic()
        try:
            async with asyncio.timeout(max(0.0, deadline - now) / 2):
                opened = await self._connect(due.connection.address)
        except (errors.HadoopRPCError, TimeoutError) as error:
            due.renew_at = now + RENEW_RETRY_SECONDS
            logger.warning(
                "Cannot renew the session with a ResourceManager yet: %s",
                str(error) or "no answer",
                extra={"rm": str(due.connection.address)},
            )
            return
        await self._drop()
        self._link = _Link(opened, self._clock.monotonic())

    async def _leave(self, link: connection.Connection) -> None:
        """Take no more calls on a connection that did not do, unless another call has left it already."""
        async with self._opening:
            if self._link is not None and self._link.connection is link:
                await self._drop()

    async def _drop(self) -> None:
        """Retire the connection; finish retired ones whose last call has ended."""
        link, self._link = self._link, None
        if link is not None:
            link.connection.retire()
            self._retired.append(link.connection)
        for finished in [candidate for candidate in self._retired if not candidate.calls_in_flight]:
            self._retired.remove(finished)
            await finished.aclose()

    def _seconds_left(self, deadline: float, method: str) -> float:
        seconds = deadline - self._clock.monotonic()
        if seconds <= 0:
            raise errors.ConnectError(f"{method}: the deadline passed while connecting to {self.current_address}")
        return seconds

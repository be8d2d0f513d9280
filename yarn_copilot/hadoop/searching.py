# SPDX-License-Identifier: Apache-2.0
"""Find the active one of several ResourceManagers: ask all of them at once until one answers as the active does.

Each address has a task that connects and sends a probe, a call which changes nothing and which only the active one
answers. A refusing, standing-by or silent one costs the others nothing. The first answer wins; the rest is cancelled
and closed, so nothing but probes ever reaches two of them, also where two claim to be active.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.addresses import Address

HEAD_START_SECONDS: Final = 0.05
"""How much later than the one before it each address is asked: normally the first is the active one."""
FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 0.25
"""Time between two probes of one address; bounds how long a new active one goes unnoticed."""
PROBE_TIMEOUT_SECONDS: Final = 1.0
"""A probe unanswered for so long is taken for silence; the address is dialled anew."""


class Probe(NamedTuple):
    """Hold the call that tells the active one: it changes nothing, and a standby refuses it."""

    method: str
    request: bytes


Connector = Callable[[Address], Awaitable[connection.Connection]]


class ActiveSearch:
    """Search once; use `run`."""

    def __init__(self, addresses: Sequence[Address], *, connect: Connector, probe: Probe) -> None:
        """Take the addresses, the likeliest first."""
        self._addresses = tuple(addresses)
        self._connect = connect
        self._probe = probe
        self._last_errors: dict[Address, errors.HadoopRPCError] = {}

    async def run(self, *, timeout_seconds: float) -> connection.Connection:
        """Give a connection to the active one.

        Raises:
            HadoopRPCError: none was found in time, or every one refused for good; the text lists what each said.
        """
        tasks = [
            asyncio.create_task(self._ask(address, number * HEAD_START_SECONDS), name=f"hadoop-search {address}")
            for number, address in enumerate(self._addresses)
        ]
        winner: connection.Connection | None = None
        try:
            async with asyncio.timeout(timeout_seconds):
                winner = await self._first_success(tasks)
        except TimeoutError:
            pass
        finally:
            await self._end(tasks, winner)
        if winner is None:
            raise self._failure(timeout_seconds)
        return winner

    async def _first_success(
        self, tasks: Sequence[asyncio.Task[connection.Connection]]
    ) -> connection.Connection | None:
        pending = set(tasks)
        while pending:
            _done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and task.exception() is None:
                    return task.result()
        return None

    async def _end(
        self, tasks: Sequence[asyncio.Task[connection.Connection]], winner: connection.Connection | None
    ) -> None:
        """Cancel what still asks and close what won too late."""
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, connection.Connection) and result is not winner:
                await result.aclose()
            elif isinstance(result, Exception) and not isinstance(result, errors.HadoopRPCError):
                raise result  # a fault of this program, which no other address mends

    async def _ask(self, address: Address, head_start_seconds: float) -> connection.Connection:
        """Connect and probe again and again; ends with success or with a refusal that time will not mend."""
        await asyncio.sleep(head_start_seconds)
        pause = FIRST_PAUSE_SECONDS
        link: connection.Connection | None = None
        try:
            while True:
                try:
                    if link is None or not link.is_usable:
                        await _close(link)
                        link = None
                        link = await self._connect(address)
                    await link.call(*self._probe, timeout_seconds=PROBE_TIMEOUT_SECONDS)
                except errors.HadoopRPCError as error:
                    self._last_errors[address] = error
                    if not error.retryable:
                        raise
                else:
                    active, link = link, None
                    return active
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        finally:
            await _close(link)

    def _failure(self, timeout_seconds: float) -> errors.HadoopRPCError:
        """Choose the error that says most: a refusal for good, then a standby, then what was met first."""
        met = [self._last_errors[address] for address in self._addresses if address in self._last_errors]
        told = "; ".join(f"{address}: {self._last_errors.get(address, 'no answer')}" for address in self._addresses)
        text = f"no active ResourceManager within {timeout_seconds:.3g} s: {told}"
        for error in met:
            if not error.retryable:
                return error
        for error in met:
            if isinstance(error, errors.StandbyError):
                return errors.StandbyError(error.class_name, error.message, method=text)
        return errors.ConnectError(text)


async def _close(link: connection.Connection | None) -> None:
    if link is not None:
        await link.aclose()

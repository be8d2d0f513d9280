# SPDX-License-Identifier: Apache-2.0
"""Notice, while a call waits for its answer, that another ResourceManager has taken over.

A process that is frozen, or a machine that is gone, keeps its connections and answers nothing, so that a call waits for
its whole deadline although the next active one is there. A call that has waited for a while is therefore watched: a
server that does not answer a probe on the same connection either is silent, and then the others are searched. Where
another caller has found one of them active, a short probe is made at once. A server that answers probes is slow, and
nobody else is asked: where two claim to be active, a slow call must not reach both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from yarn_copilot.hadoop import connection, errors, searching
from yarn_copilot.hadoop.addresses import Address

PATIENCE_SECONDS: Final = 1.0
"""A call waits so long for its answer before its server is probed, and again after each probe that is answered."""
SHORT_PROBE_SECONDS: Final = 0.25
"""A probe unanswered for so long is silence enough where another one is known to be active."""


class Call(NamedTuple):
    """Hold one call: Java method name, serialized request, and whether it changes nothing."""

    method: str
    request: bytes
    is_read: bool


class Succession(NamedTuple):
    """Say how a silent server and the next active one are found.

    Attributes:
        probe: a call that changes nothing.
        search: among the other addresses; begins when it is needed.
        change: ends when another caller has found another one active; it is shared, so it is never cancelled.
    """

    probe: searching.Probe
    search: searching.ActiveSearch
    change: asyncio.Future[None]


def given_up(call: Call, *, silent: Address, active: Address) -> errors.CallTimeoutError:
    """Say why a call was given up, and what its caller is to do."""
    advice = "ask again, it goes there"
    if not call.is_read:
        advice = "it may have been carried out, so read what is in force there before it is sent again"
    return errors.CallTimeoutError(
        f"{call.method} on {silent}: no answer, and {active} is the active one now; {advice}"
    )


async def call(
    link: connection.Connection, wanted: Call, *, timeout_seconds: float, successor: Succession
) -> bytes | connection.Connection:
    """Make a call and watch over it.

    Args:
        link: where the call goes.
        wanted: the call.
        timeout_seconds: its deadline.
        successor: how the next active one is found.

    Returns:
        The answer; or, where the server is silent and another one is active, a connection to that one, which the
        caller owns. The call may have been carried out then.

    Raises:
        HadoopRPCError: as `Connection.call`.
    """
    answer = asyncio.create_task(
        link.call(wanted.method, wanted.request, timeout_seconds=timeout_seconds), name="hadoop-call"
    )
    tasks: list[asyncio.Task[Any]] = [answer]
    found: connection.Connection | None = None
    try:
        await _first_of(answer, successor.change, timeout_seconds=PATIENCE_SECONDS)
        if not answer.done():
            watch = asyncio.create_task(_next(link, timeout_seconds, successor), name="hadoop-watch")
            tasks.append(watch)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            found = None if answer.done() else watch.result()
        return found or await answer
    finally:
        await _end(tasks, kept=found)


async def _first_of(task: asyncio.Task[Any], change: asyncio.Future[None], *, timeout_seconds: float | None) -> None:
    await asyncio.wait((task, change), timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)


async def _next(link: connection.Connection, seconds: float, successor: Succession) -> connection.Connection | None:
    """Give a connection to another active one; None when there is no reason or no time left to look for one."""
    try:
        async with asyncio.timeout(seconds):
            await _until_silent(link, successor)
            return await successor.search.run(timeout_seconds=seconds)
    except (TimeoutError, errors.HadoopRPCError):
        return None


async def _until_silent(link: connection.Connection, successor: Succession) -> None:
    """Wait until the server gives no sign of life.

    Raises:
        HadoopRPCError: the connection has ended; the call that waits on it is told so, too.
    """
    listening = asyncio.create_task(
        _listen(link, successor.probe, timeout_seconds=searching.PROBE_TIMEOUT_SECONDS), name="hadoop-listen"
    )
    try:
        await _first_of(listening, successor.change, timeout_seconds=None)
        if listening.done():
            listening.result()
            return
    finally:
        await _end([listening], kept=None)
    await _listen(link, successor.probe, timeout_seconds=SHORT_PROBE_SECONDS)


async def _listen(link: connection.Connection, probe: searching.Probe, *, timeout_seconds: float) -> None:
    """Ask for signs of life, and a refusal is one, until there is none.

    Raises:
        HadoopRPCError: the connection has ended.
    """
    while True:
        try:
            await link.call(*probe, timeout_seconds=timeout_seconds)
        except errors.CallTimeoutError:
            return
        except errors.RemoteCallError:
            pass
        await asyncio.sleep(PATIENCE_SECONDS)


async def _end(tasks: Sequence[asyncio.Task[Any]], *, kept: connection.Connection | None) -> None:
    """Cancel what still runs; close a connection that came too late."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, connection.Connection) and result is not kept:
            await result.aclose()

# SPDX-License-Identifier: Apache-2.0
"""Notice, while a call waits for its answer, that another ResourceManager has taken over.

A process that is frozen, or a machine that is gone, keeps its connections and answers nothing, so that a call waits for
its whole deadline although the next active one is there. A call that has waited for a while is therefore watched: a
server that does not answer a probe on the same connection either is silent, and then the others are searched. A server
that answers probes is slow, and nobody else is asked: where two claim to be active, a slow call must not reach both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from yarn_copilot.hadoop import connection, errors, searching

PATIENCE_SECONDS: Final = 1.0
"""A call waits so long for its answer before its server is probed, and again after each probe that is answered."""


class Call(NamedTuple):
    """Hold one call: Java method name and serialized request."""

    method: str
    request: bytes


async def call(
    link: connection.Connection,
    wanted: Call,
    *,
    timeout_seconds: float,
    probe: searching.Probe,
    search: searching.ActiveSearch,
) -> bytes | connection.Connection:
    """Make a call and watch over it.

    Args:
        link: where the call goes.
        wanted: the call.
        timeout_seconds: its deadline.
        probe: a call that changes nothing.
        search: among the other addresses; begins when it is needed.

    Returns:
        The answer; or, where the server is silent and another one is active, a connection to that one, which the
        caller owns. The call may have been carried out then.

    Raises:
        HadoopRPCError: as `Connection.call`.
    """
    answer = asyncio.create_task(link.call(*wanted, timeout_seconds=timeout_seconds), name="hadoop-call")
    tasks: list[asyncio.Task[Any]] = [answer]
    found: connection.Connection | None = None
    try:
        await asyncio.wait({answer}, timeout=PATIENCE_SECONDS)
        if not answer.done():
            watch = asyncio.create_task(_successor(link, timeout_seconds, probe, search), name="hadoop-watch")
            tasks.append(watch)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            found = None if answer.done() else watch.result()
        return found or await answer
    finally:
        await _end(tasks, kept=found)


async def _successor(
    link: connection.Connection,
    seconds: float,
    probe: searching.Probe,
    search: searching.ActiveSearch,
) -> connection.Connection | None:
    """Give a connection to another active one; None when there is no reason or no time left to look for one."""
    try:
        async with asyncio.timeout(seconds):
            while not await _is_silent(link, probe):
                pass
            return await search.run(timeout_seconds=seconds)
    except (TimeoutError, errors.HadoopRPCError):
        return None


async def _is_silent(link: connection.Connection, probe: searching.Probe) -> bool:
    """Ask for a sign of life; after one, and a refusal is one, the call may wait on for a while.

    Raises:
        HadoopRPCError: the connection has ended; the call that waits on it is told so, too.
    """
    try:
        await link.call(*probe, timeout_seconds=searching.PROBE_TIMEOUT_SECONDS)
    except errors.CallTimeoutError:
        return True
    except errors.RemoteCallError:
        pass
    await asyncio.sleep(PATIENCE_SECONDS)
    return False


async def _end(tasks: Sequence[asyncio.Task[Any]], *, kept: connection.Connection | None) -> None:
    """Cancel what still runs; close a connection that came too late."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, connection.Connection) and result is not kept:
            await result.aclose()

# SPDX-License-Identifier: Apache-2.0
"""Signals stop the program in order; a task that ends by itself is an error."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import NoReturn

import pytest

from yarn_copilot.cli.supervising import Tasks, stop_on_signals


async def for_ever() -> None:
    await asyncio.Event().wait()


async def broken() -> NoReturn:
    raise ValueError("boom")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_stops_and_the_second_leaves_at_once(number: signal.Signals) -> None:
    stop = asyncio.Event()
    left: list[int] = []
    gone = asyncio.Event()

    def leave(code: int) -> None:
        left.append(code)
        gone.set()

    with stop_on_signals(stop, exit_at_once=leave):
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 10)
        assert left == []
        os.kill(os.getpid(), number)
        await asyncio.wait_for(gone.wait(), 10)
    assert left == [128 + number]


async def test_waiting_ends_well_when_told_to_stop() -> None:
    stop, tasks = asyncio.Event(), Tasks()
    tasks.start({"a": for_ever()})
    stop.set()
    assert await tasks.wait(stop)
    await tasks.cancel()


async def test_a_task_that_ends_is_logged_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()
    tasks.start({"good": for_ever(), "bad": broken()})
    with caplog.at_level(logging.ERROR):
        assert not await tasks.wait(asyncio.Event())
    assert "A task ended that should run for ever" in caplog.text
    assert "ValueError: boom" in caplog.text
    await tasks.cancel()


async def test_tasks_are_cancelled_by_name_and_waited_for() -> None:
    ended: list[str] = []

    async def slow_end(name: str) -> None:
        try:
            await for_ever()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    tasks = Tasks()
    tasks.start({"a": slow_end("a"), "b": slow_end("b")})
    await asyncio.sleep(0)
    await tasks.cancel("a", "unknown")
    assert ended == ["a"]
    await tasks.cancel()
    assert ended == ["a", "b"]

# SPDX-License-Identifier: Apache-2.0
"""Test which nodes are due, and that nobody is woken too late."""

from __future__ import annotations

import asyncio

from tests.unit.kube.manual_clock import ManualClock, settle
from yarn_copilot.controller import dirty as dirty_module
from yarn_copilot.controller.dirty import DirtyNodes
from yarn_copilot.controller.waiting import wait_at_most


def test_a_node_is_taken_once_with_its_first_moment() -> None:
    clock = ManualClock()
    dirty = DirtyNodes(clock)
    dirty.mark("a")
    clock.now += 5
    dirty.mark_all(["a", "b"])
    assert dirty.take() == {"a": 1000.0, "b": 1005.0}
    assert dirty.take() == {}


def test_of_several_moments_the_earliest_counts_and_the_others_do_nothing() -> None:
    clock = ManualClock()
    dirty = DirtyNodes(clock)
    for moment in (1030.0, 1010.0, 1020.0):
        dirty.mark_at("a", moment)
    clock.now = 1010.0
    assert dirty.take() == {"a": 1010.0}
    clock.now = 1100.0
    assert dirty.take() == {}


def test_replaced_moments_are_not_collected_for_ever() -> None:
    clock = ManualClock()
    dirty = DirtyNodes(clock)
    for _ in range(10_000):
        dirty.mark_at("a", clock.now + 900)
        dirty.mark_at("a", clock.now + 0.01)
        clock.now += 0.02
        assert dirty.take().keys() == {"a"}
    assert len(dirty._later) <= dirty_module._COMPACT_ABOVE + 10


async def test_whoever_waits_is_woken_by_a_mark_and_by_a_moment() -> None:
    clock = ManualClock()
    dirty = DirtyNodes(clock)
    waiting = asyncio.create_task(dirty.wait())
    await settle()
    dirty.mark("a")
    await settle()
    assert waiting.done()
    dirty.take()
    dirty.mark_at("b", clock.now + 100)
    waiting = asyncio.create_task(dirty.wait())
    await clock.advance(50)
    dirty.mark_at("c", clock.now + 1)
    await clock.advance(0.9)
    assert not waiting.done()
    await clock.advance(0.2)
    assert waiting.done()
    assert dirty.take().keys() == {"c"}
    waiting = asyncio.create_task(dirty.wait())
    await clock.advance(49.5)
    assert waiting.done()
    assert dirty.take().keys() == {"b"}


async def test_a_mark_between_taking_and_waiting_is_not_lost() -> None:
    dirty = DirtyNodes(ManualClock())
    dirty.mark("a")
    dirty.take()
    dirty.mark("b")
    await dirty.wait()
    assert dirty.take().keys() == {"b"}


async def test_a_wait_ends_with_the_event_or_the_time_and_leaves_no_task() -> None:
    clock, event = ManualClock(), asyncio.Event()
    waiting = asyncio.create_task(wait_at_most(event, clock, 10))
    await clock.advance(9)
    assert not waiting.done()
    await clock.advance(1)
    assert waiting.result() is False
    waiting = asyncio.create_task(wait_at_most(event, clock, 10))
    await settle()
    event.set()
    await settle()
    assert waiting.result() is True
    assert await wait_at_most(event, clock, 10)
    event.clear()
    assert not await wait_at_most(event, clock, 0)
    await settle()
    assert len(asyncio.all_tasks()) == 1


async def test_a_cancelled_wait_leaves_no_task() -> None:
    clock = ManualClock()
    waiting = asyncio.create_task(wait_at_most(asyncio.Event(), clock, 10))
    await settle()
    waiting.cancel()
    await settle()
    assert waiting.cancelled()
    assert len(asyncio.all_tasks()) == 1

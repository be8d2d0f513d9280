# SPDX-License-Identifier: Apache-2.0
"""Test that one kill that does not get done holds up no other, and that no victim is counted twice."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from batch_resources.resources import BatchResources
from batch_resources.units import UnitModel
from nm_proxy.agent_metrics import AgentMetrics
from nm_proxy.cgroup.errors import KillIncompleteError
from nm_proxy.clock import SystemClock
from nm_proxy.containers import Catalog
from nm_proxy.killing import ContainerKiller
from nm_proxy.lingering.loop import LingeringLoop
from nm_proxy.lingering.tracking import Delays
from tests.unit.nm_proxy.world import Node, container_id

ROOM = BatchResources(cpu_milli=0, memory_bytes=1)


class GatedEnder:
    """Empty groups, but for those that are stuck until `gate` opens."""

    def __init__(self, node: Node, *stuck: str) -> None:
        self._node = node
        self._stuck = set(stuck)
        self.gate = threading.Event()
        self.asked: list[str] = []
        self.entered = threading.Event()

    def kill(self, path: str, *, timeout_seconds: float) -> int:
        """End who is inside."""
        self.asked.append(path)
        if path in self._stuck:
            self.entered.set()
            self.gate.wait(4)
            raise KillIncompleteError("1 processes are alive", path=path)
        members = self._node.tree.processes(path)
        for pid in members:
            self._node.kernel.processes.exit(pid)
        return len(members)


def catalog_of(node: Node) -> Catalog:
    return Catalog(
        node.tree, node.place, node.processes, units=UnitModel(1000), states=lambda: node.adopter.states, view=node.view
    )


def killer_of(node: Node, ender: GatedEnder) -> ContainerKiller:
    return ContainerKiller(catalog_of(node), ender, metrics=AgentMetrics(), clock=SystemClock())


def launched(node: Node, *numbers: int) -> None:
    for number in numbers:
        node.launch(number)
    node.look()


async def test_a_kill_that_is_stuck_holds_up_no_other_ask(node: Node) -> None:
    launched(node, 2, 3)
    ender = GatedEnder(node, node.path(3))
    killer = killer_of(node, ender)
    stuck = asyncio.create_task(killer.end(container_id(3), timeout_seconds=4, asked_by="lingering"))
    await asyncio.to_thread(ender.entered.wait, 2)
    try:
        async with asyncio.timeout(1):
            room = await killer.make_room(ROOM, timeout_seconds=1, asked_by="api")
        assert [one.container.container_id for one in room.ended] == [container_id(2)]
    finally:
        ender.gate.set()
        ended = await stuck
    assert ended is not None
    assert ended.error


async def test_two_asks_never_choose_the_same_victim(node: Node) -> None:
    launched(node, 2, 3)
    ender = GatedEnder(node)
    killer = killer_of(node, ender)
    rooms = await asyncio.gather(*(killer.make_room(ROOM, timeout_seconds=3, asked_by="api") for _ in range(3)))
    names = sorted(one.container.container_id for room in rooms for one in room.ended)
    assert names == [container_id(2), container_id(3)]
    assert sorted(room.missing.memory_bytes for room in rooms) == [0, 0, 1]
    assert sorted(ender.asked) == [node.path(2), node.path(3)]


async def test_a_second_ask_for_one_container_waits_until_its_own_deadline(node: Node) -> None:
    launched(node, 2)
    ender = GatedEnder(node, node.path(2))
    killer = killer_of(node, ender)
    first = asyncio.create_task(killer.end(container_id(2), timeout_seconds=4, asked_by="lingering"))
    await asyncio.to_thread(ender.entered.wait, 2)
    try:
        second = await killer.end(container_id(2), timeout_seconds=0.05, asked_by="api")
        assert second is not None
        assert "another ask" in second.error
        assert ender.asked == [node.path(2)]
    finally:
        ender.gate.set()
        await first


async def test_a_lingering_kill_that_fails_is_tried_less_often_and_told_once(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    launched(node, 2)
    node.reports.clear()
    ender = GatedEnder(node, node.path(2))
    ender.gate.set()
    loop = LingeringLoop(
        catalog_of(node),
        ContainerKiller(catalog_of(node), ender, metrics=AgentMetrics(), clock=node.time),
        node.view,
        delays=Delays(finished_seconds=0, dead_node_manager_seconds=0),
        metrics=AgentMetrics(),
        clock=node.time,
    )
    tries = []
    with caplog.at_level(logging.INFO):
        for second in range(1300):
            before = len(ender.asked)
            # Each look reads the whole group; only the seconds around a try are worth one.
            if second < 70 or second in (127, 255, 511, 811, 1111) or second % 100 == 0:
                await loop.look()
            if len(ender.asked) > before:
                tries.append(second)
            node.time.now += 1
    assert tries == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111]
    assert sum("Could not end" in one.message for one in caplog.records) == 1

# SPDX-License-Identifier: Apache-2.0
"""After a failover an update arrives soon: however long nobody was active, and as soon as its NodeManager registers."""

from __future__ import annotations

import pytest

from tests.unit.controller.outside import unrecognized
from tests.unit.controller.world import World, origin_text
from yarn_copilot.controller.cluster_view.poller import RETURN_WATCH_SECONDS
from yarn_copilot.hadoop.errors import ConnectError, StandbyError
from yarn_copilot.hadoop.model import NodeId

NODE = NodeId("nm-1", 8041)
STEP_SECONDS = 0.05
SOON_SECONDS = 1.0


async def seconds_until_nine(world: World) -> float:
    """Move the time until the update has arrived."""
    began = world.clock.now
    while world.rm.capacity(NODE).vcores != 9:
        assert world.clock.now - began < 60
        await world.advance(STEP_SECONDS)
    return world.clock.now - began


@pytest.mark.parametrize("down_seconds", [0.3, 7.0, 43.0, 120.0])
@pytest.mark.parametrize("error", [ConnectError("refused"), StandbyError("x", "rm1 is not Active!")])
async def test_update_arrives_soon_after_one_is_active_again(down_seconds: float, error: Exception) -> None:
    world = World()
    world.manager(1)
    async with world:
        world.rm.down = error
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(down_seconds)
        world.rm.down = None
        assert await seconds_until_nine(world) <= SOON_SECONDS


@pytest.mark.parametrize("missing_seconds", [0.4, 3.3, RETURN_WATCH_SECONDS - 2])
async def test_update_arrives_soon_after_its_node_manager_has_registered(missing_seconds: float) -> None:
    world = World()
    world.manager(1)
    async with world:
        world.rm.down = ConnectError("refused")
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(3)
        world.rm.down = None
        report = world.rm.reports.pop(NODE)
        world.rm.unknown.add(NODE)
        await world.advance(missing_seconds)
        world.rm.reports[NODE] = report
        world.rm.unknown.clear()
        assert await seconds_until_nine(world) <= SOON_SECONDS


async def test_refusal_before_the_list_was_read_costs_a_moment_only() -> None:
    world = World()
    world.manager(1)
    async with world:
        # The list never shows that the node was missing.
        world.rm.update_errors.extend([unrecognized(NODE)] * 2)
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        assert await seconds_until_nine(world) <= SOON_SECONDS


async def test_node_manager_that_stays_away_is_not_looked_for_that_often_for_ever() -> None:
    world = World()
    world.manager(1)
    async with world:
        del world.rm.reports[NODE]
        await world.advance(5)
        before = world.rm.reads
        await world.advance(10)
        assert world.rm.reads - before > 30
        await world.advance(RETURN_WATCH_SECONDS)
        before = world.rm.reads
        await world.advance(10)
        assert world.rm.reads - before <= 11

# SPDX-License-Identifier: Apache-2.0
"""The whole controller never sells a unit twice, whatever both sides do and whatever is late, with real quantities.

The seed is printed when a run fails; hypothesis shrinks the history. `YARN_COPILOT_RACING_EXAMPLES` sets the length of
the long run.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from batch_resources.resources import BatchResources
from tests.model.racing.machine import Racing
from tests.model.racing.world import NODES, RacingWorld
from tests.unit.controller.world import GIB
from yarn_copilot.hadoop.model import Resource

LONG = int(os.environ.get("YARN_COPILOT_RACING_EXAMPLES", "2000"))


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@pytest.mark.timeout(900)
def test_nothing_is_sold_twice_by_the_whole_controller() -> None:
    run_state_machine_as_test(Racing, settings=_settings(25))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_is_sold_twice_by_the_whole_controller_in_a_long_run() -> None:
    run_state_machine_as_test(Racing, settings=_settings(LONG))


async def test_a_node_manager_that_comes_back_with_its_containers_is_raised_by_the_rules_only() -> None:
    """Its use is above its capacity then, and giving way looks at it while the transfer to it still settles."""
    world = RacingWorld()
    world.waiting_pods, world.bind_seconds = BatchResources(cpu_milli=500, memory_bytes=GIB), 2.0
    world.waiting_containers = Resource(1024, 1)
    one = world.late["one"]
    await world.start(1.0)

    async def restart(*, seconds: float) -> None:
        for node_id in one.managers:
            one.restart_manager(node_id, keeps_containers=False)
        await world.advance(seconds)

    async def pods_end(count: int, *, seconds: float) -> None:
        for _ in range(count):
            world.kube.finish("node-1")
        waiting, world.waiting_pods = world.waiting_pods, None
        await world.advance(seconds)
        world.waiting_pods = waiting

    try:
        await world.advance(0.25)
        await pods_end(1, seconds=0.25)
        await pods_end(1, seconds=0.25)
        await restart(seconds=0.25)
        await restart(seconds=14.0)
        await pods_end(13, seconds=14.0)
        await restart(seconds=0.25)
        await pods_end(1, seconds=14.0)
    finally:
        await world.stop()


async def test_both_sides_get_their_part_when_all_is_calm() -> None:
    world = RacingWorld()
    await world.start(1.0)
    try:
        await world.advance(60)
        for name in NODES:
            sides = world.sides(name)
            assert sides.permitted_yarn.cpu_milli >= 9000
            assert world.kube.allocatable(name).cpu_milli >= 9000
        assert world.judge.states > 400
    finally:
        await world.stop()

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

from tests.model.racing.machine import Racing
from tests.model.racing.world import NODES, RacingWorld

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

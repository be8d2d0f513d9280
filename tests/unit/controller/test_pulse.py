# SPDX-License-Identifier: Apache-2.0
"""Test how a loop that stopped turning is noticed."""

from __future__ import annotations

from tests.unit.kube.manual_clock import ManualClock
from yarn_copilot.controller.dirty import DirtyNodes
from yarn_copilot.controller.pulse import Pulse


def test_a_loop_that_comes_round_in_time_is_healthy_and_one_that_does_not_is_named() -> None:
    clock = ManualClock()
    dirty, pulse = DirtyNodes(clock), Pulse(clock, limit_seconds=60.0)
    clock.now += 50.0
    pulse.beat("cluster_view of a")
    clock.now += 50.0
    assert pulse.stuck(["cluster_view of a"], dirty) == []
    assert pulse.stuck(["cluster_view of a", "cluster_view of b"], dirty) == [
        "loop cluster_view of b has not come round for 100 s"
    ]


def test_a_node_left_waiting_shows_that_planning_lies_still() -> None:
    clock = ManualClock()
    dirty, pulse = DirtyNodes(clock), Pulse(clock, limit_seconds=60.0)
    dirty.mark("node-1")
    clock.now += 59.0
    assert pulse.stuck([], dirty) == []
    clock.now += 1.0
    assert pulse.stuck([], dirty) == ["loop planning has left a node waiting for 60 s"]
    dirty.take()
    assert pulse.stuck([], dirty) == []

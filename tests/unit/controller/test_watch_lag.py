# SPDX-License-Identifier: Apache-2.0
"""How late the Node watch is gets measured, told, and stops growth in mode strict while it is later than settling."""

from __future__ import annotations

from tests.unit.controller.strict_world import StrictWorld
from tests.unit.controller.test_strict import OFFICE, SETTLE
from tests.unit.controller.world import settings
from yarn_copilot.controller.watch_lag import WatchLag
from yarn_copilot.hadoop.model import Resource


def test_a_version_counts_from_when_it_was_known_until_the_watch_has_it_or_a_newer_one() -> None:
    lag = WatchLag(window_seconds=10.0)
    assert lag.seconds(now=0.0) == 0.0
    lag.note_known(5, now=1.0)
    lag.note_known(7, now=2.0)
    assert lag.seconds(now=4.0) == 3.0
    lag.note_delivered(4, now=4.5)
    assert lag.seconds(now=5.0) == 4.0
    lag.note_delivered(6, now=5.0)
    assert lag.seconds(now=5.5) == 4.0  # measured; version 7 has waited for 3.5 s
    assert lag.seconds(now=7.0) == 5.0
    lag.note_delivered(9, now=7.0)
    assert lag.seconds(now=16.0) == 5.0
    assert lag.seconds(now=17.1) == 0.0


def test_what_the_watch_was_faster_with_is_no_lag() -> None:
    lag = WatchLag(window_seconds=10.0)
    lag.note_delivered(8, now=1.0)
    lag.note_known(8, now=2.0)
    assert lag.seconds(now=9.0) == 0.0


def test_a_new_list_ends_the_waiting_and_lets_versions_begin_anew() -> None:
    lag = WatchLag(window_seconds=10.0)
    lag.note_delivered(100, now=0.0)
    lag.note_known(200, now=1.0)
    lag.note_gap()
    assert lag.seconds(now=60.0) == 0.0
    lag.note_known(3, now=60.0)
    assert lag.seconds(now=61.0) == 1.0


async def test_yarn_does_not_grow_until_the_watch_has_been_in_time_for_a_settle_time() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(OFFICE + SETTLE)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)
        assert world.controller.book.lag.seconds(now=world.clock.monotonic()) < 1.0
        assert "WatchLag" not in "".join(reason for _, reason, _ in world.events.of_controller)
        # Kubernetes asks for a part and gives it back; the answer to our patch outruns the watch by 12 seconds.
        world.pod("batch-1", cpu="5000", memory="0")
        await world.advance(OFFICE)
        assert world.rm.capacity(node_id).vcores == 14
        world.kube.delete("pods", "yarn/batch-1")
        await world.kube.delivered()
        world.kube.silent = True
        await world.advance(12)
        assert world.kube.held
        world.kube.release_held()
        await world.advance(2)
        reasons = [reason for _, reason, _ in world.events.of_controller]
        assert "WatchLagExceedsSettleTime" in reasons
        assert world.rm.capacity(node_id).vcores == 14
        await world.advance(7)
        assert world.rm.capacity(node_id).vcores == 14
        assert any("further behind" in line for line in world.reader.explain("node-1") or [])
        await world.advance(SETTLE + 5)
        assert world.rm.capacity(node_id).vcores == 19
        assert "yarn_copilot_watch_lag_seconds" in world.metrics.render().decode()


async def test_a_longer_settle_time_tolerates_a_longer_lag() -> None:
    world = StrictWorld()
    async with world:
        world.controller.apply(settings(capacity={"mode": "strict", "strict": {"settle_seconds": 30}}))
        assert world.controller.book.lag.window_seconds == 30

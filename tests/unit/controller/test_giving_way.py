# SPDX-License-Identifier: Apache-2.0
"""A whole controller gives way in stages: a dip kills nothing, a lasting excess only after grace and warning."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller.outside import FakeResourceManager
from tests.unit.controller.strict_world import StrictWorld
from tests.unit.controller.world import GIB, World, origin_text, settings
from yarn_copilot.hadoop.errors import CallTimeoutError, ConnectError
from yarn_copilot.hadoop.model import FAR_OVERCOMMIT_TIMEOUT_MILLIS, NodeId, Resource

FAR = FAR_OVERCOMMIT_TIMEOUT_MILLIS
STAGES: dict[str, Any] = {"giving_way": {"grace_seconds": 20, "preemption_timeout_seconds": 8}}
USED = Resource(12 * 1024, 12)
MODES = pytest.mark.parametrize("mode", ["shared", "strict"])


def world_of(mode: str, **capacity: Any) -> World:
    """Give a world in a mode, with short stages."""
    changes = {**STAGES, **capacity}
    return StrictWorld(**changes) if mode == "strict" else World(settings(capacity=changes))


async def busy(world: World) -> NodeId:
    """Bring a node to 20 vcores of which 12 are used, and forget how."""
    node_id = world.manager(capacity=Resource(20 * 1024, 20), used=USED)
    await world.advance(60)
    world.rm.batches.clear()
    return node_id


def timeouts(rm: FakeResourceManager) -> list[int]:
    """Give the over-commit timeouts of all updates, in order."""
    return [update.overcommit_timeout_millis for batch in rm.batches for update in batch]


def shrink(world: World, cpu_milli: int) -> None:
    """Let Koordinator publish another origin."""
    world.kube.annotate("node-1", origin=origin_text(cpu_milli, 64 * GIB))


@MODES
async def test_a_momentary_zero_sets_no_deadline(mode: str) -> None:
    async with world_of(mode) as world:
        await busy(world)
        shrink(world, 0)
        await world.advance(15)
        shrink(world, 20_000)
        await world.advance(100)

        assert world.rm.batches, "the dip was followed"
        assert set(timeouts(world.rm)) == {FAR}


@MODES
async def test_a_lasting_fall_sets_a_deadline_after_the_grace_by_one_mib(mode: str) -> None:
    async with world_of(mode) as world:
        node_id = await busy(world)
        shrink(world, 8_000)
        await world.advance(15)
        assert world.rm.capacity(node_id).vcores == 8
        assert set(timeouts(world.rm)) == {FAR}
        before = world.rm.capacity(node_id)

        await world.advance(10)

        assert timeouts(world.rm)[-1] == 8_000
        assert timeouts(world.rm).count(8_000) == 1
        assert world.rm.capacity(node_id) == Resource(before.memory_mib - 1, 8)
        await world.advance(60)
        assert timeouts(world.rm).count(8_000) == 1, "a deadline that runs is left alone"


@MODES
async def test_a_recovered_origin_calls_a_running_deadline_off_before_it_ends(mode: str) -> None:
    async with world_of(mode) as world:
        node_id = await busy(world)
        shrink(world, 8_000)
        await world.advance(24)
        armed = world.rm.capacity(node_id)
        assert timeouts(world.rm)[-1] == 8_000

        shrink(world, 20_000)
        await world.advance(1.5)

        assert timeouts(world.rm)[-1] == FAR
        assert world.rm.capacity(node_id) != armed, "an unchanged value would leave the deadline"
        await world.advance(90)
        assert world.rm.capacity(node_id).vcores >= 12


@MODES
async def test_an_origin_that_is_not_known_any_more_calls_it_off_too(mode: str) -> None:
    async with world_of(mode) as world:
        await busy(world)
        shrink(world, 8_000)
        await world.advance(24)
        assert timeouts(world.rm)[-1] == 8_000

        world.kube.annotate("node-1", origin=None)
        await world.advance(1.5)

        assert timeouts(world.rm)[-1] == FAR
        await world.advance(100)
        assert timeouts(world.rm)[-1] == FAR


@MODES
async def test_a_dip_while_a_deadline_runs_does_not_make_it_kill_more(mode: str) -> None:
    async with world_of(mode) as world:
        await busy(world)
        shrink(world, 8_000)
        await world.advance(24)
        shrink(world, 0)
        await world.advance(1.5)

        last = world.rm.batches[-1][-1]
        assert last.overcommit_timeout_millis == FAR
        assert last.resource.vcores < 8


@MODES
async def test_a_new_controller_calls_off_what_it_cannot_see_and_waits_the_whole_grace(mode: str) -> None:
    async with world_of(mode) as world:
        await busy(world)
        shrink(world, 8_000)
        await world.advance(24)
        assert timeouts(world.rm)[-1] == 8_000
        world.rm.batches.clear()

        await world.restart(15)
        assert timeouts(world.rm) == [FAR], "what an earlier leader set may run"
        await world.advance(10)

        assert timeouts(world.rm) == [FAR, 8_000]


@MODES
async def test_a_deadline_whose_call_was_lost_is_set_again_with_another_value(mode: str) -> None:
    async with world_of(mode) as world:
        await busy(world)
        shrink(world, 8_000)
        await world.advance(15)
        world.rm.batches.clear()
        world.rm.lands_before_error = True
        world.rm.update_errors.append(CallTimeoutError("no answer within 4 s"))

        await world.advance(10)

        values = [update.resource for batch in world.rm.batches for update in batch]
        assert len(values) == len(set(values)) == 2
        assert timeouts(world.rm) == [8_000, 8_000]


@MODES
async def test_a_deadline_is_set_anew_after_the_resource_manager_was_away(mode: str) -> None:
    async with world_of(mode) as world:
        node_id = await busy(world)
        shrink(world, 8_000)
        await world.advance(24)
        armed = world.rm.capacity(node_id)
        world.rm.down = ConnectError("no answer")
        await world.advance(3)
        world.rm.down = None
        await world.advance(15)

        assert timeouts(world.rm).count(8_000) == 2, "it was in the memory of the one that is gone"
        assert world.rm.capacity(node_id) != armed


@MODES
async def test_nothing_more_is_sent_once_use_fits(mode: str) -> None:
    async with world_of(mode) as world:
        node_id = await busy(world)
        shrink(world, 8_000)
        await world.advance(24)
        world.rm.change(node_id, used=Resource(7 * 1024, 7))
        await world.advance(30)
        world.rm.batches.clear()
        await world.advance(100)

        assert world.rm.batches == []


async def test_pods_that_took_the_room_make_yarn_give_way_in_mode_shared() -> None:
    async with world_of("shared") as world:
        await busy(world)
        world.pod("batch", cpu="14000", memory=str(GIB))
        await world.advance(24)

        assert world.rm.batches[-1][-1].overcommit_timeout_millis == 8_000
        assert world.rm.batches[-1][-1].resource.vcores == 6


async def test_nothing_dies_with_graded_off() -> None:
    stages = {"giving_way": {"graded": False, "grace_seconds": 1}}
    async with world_of("shared", **stages) as world:
        await busy(world)
        shrink(world, 8_000)
        await world.advance(300)

        assert set(timeouts(world.rm)) == {FAR}


async def test_the_stage_and_what_comes_next_are_told_in_events_api_and_words() -> None:
    async with world_of("shared") as world:
        await busy(world)
        shrink(world, 8_000)
        await world.advance(5)
        view = world.reader.node("node-1")
        assert view is not None
        way = view.node_managers[0].giving_way
        assert (way.stage, way.next_stage) == ("soft", "graded")
        assert way.next_in_seconds == pytest.approx(15, abs=1)
        assert "YarnOverOrigin" in world.events.reasons("node-1")
        assert any("Next stage graded in" in sentence for sentence in world.reader.explain("node-1") or [])

        await world.advance(17)
        view = world.reader.node("node-1")
        assert view is not None
        assert view.node_managers[0].giving_way.stage == "graded"
        assert any("kills what does not fit in" in sentence for sentence in world.reader.explain("node-1") or [])
        assert world.reader.table().reasons["PreemptionDeadlineSet"] == 1

        shrink(world, 20_000)
        await world.advance(5)
        assert world.events.reasons("node-1")[-2:] == ["PreemptionDeadlineSet", "PreemptionEnded"]
        assert "PreemptionDeadlineSet" not in world.reader.table().reasons

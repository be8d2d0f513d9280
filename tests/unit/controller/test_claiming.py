# SPDX-License-Identifier: Apache-2.0
"""Test that a claim follows use, and never falls without proof."""

from __future__ import annotations

import json

import pytest

from tests.unit.controller.kubernetes import THIRD, connection_lost
from tests.unit.controller.outside import ZERO
from tests.unit.controller.world import World, origin_text, settings, third_text
from yarn_copilot.hadoop.errors import ConnectError
from yarn_copilot.hadoop.model import Resource
from yarn_copilot.kube.errors import ForbiddenError, NotFoundError, ServerError, ThrottledError

USED = Resource(8192, 8)
CLAIM = (8000, 8192)
FLOOR = (1000, 1024)


async def history(world: World, seconds: float, step: float = 0.05) -> list[tuple[int, int] | None]:
    """Watch the claim while time passes."""
    seen = []
    for _ in range(round(seconds / step)):
        await world.advance(step)
        seen.append(world.claim())
    return seen


async def test_a_momentary_zero_of_use_after_an_update_never_lowers_the_claim() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        for round_ in range(20):
            world.kube.annotate("node-1", origin=origin_text(10_000 + 1000 * (round_ % 5), "64Gi"))
            calls = len(world.rm.batches)
            while len(world.rm.batches) == calls:
                await world.advance(0.05)
            world.rm.change(node_id, used=ZERO)
            assert set(await history(world, 0.4)) == {CLAIM}
            world.rm.change(node_id, used=USED)
            assert set(await history(world, 0.8, step=0.2)) == {CLAIM}


async def test_a_zero_that_somebody_elses_update_causes_does_not_lower_the_claim_either() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        for _ in range(10):
            world.rm.change(node_id, used=ZERO)
            await world.advance(1.0)
            world.rm.change(node_id, used=USED)
            await world.advance(1.0)
            assert world.claim() == CLAIM
        assert len(world.kube.patches) == 1


async def test_a_real_fall_lowers_the_claim_after_two_reads_a_heartbeat_apart() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.rm.change(node_id, used=Resource(2048, 2))
        reads = world.rm.reads
        while world.claim() == CLAIM:
            await world.advance(0.1)
        assert world.rm.reads - reads >= 2
        assert world.claim() == (2000, 2048)


async def test_a_rise_is_claimed_at_once() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.rm.change(node_id, used=Resource(16384, 16))
        await world.advance(1.3)
        assert world.claim() == (16000, 16384)


async def test_a_restart_of_the_controller_never_lowers_the_claim_below_use() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        assert world.claim() == CLAIM
        await world.stop()
        world.rm.change(node_id, used=ZERO)
        await world.restart(seconds=0.5)
        assert world.claim() == CLAIM
        world.rm.change(node_id, used=USED)
        assert set(await history(world, 5, step=0.25)) == {CLAIM}


async def test_a_restart_while_the_resource_manager_is_down_changes_no_claim() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        world.rm.down = ConnectError("refused")
        await world.restart()
        assert set(await history(world, 30, step=1)) == {CLAIM}


async def test_a_new_leader_does_not_trust_a_zero_that_it_saw_as_standby() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.lead(False)
        world.rm.change(node_id, used=ZERO)
        await world.advance(5)
        world.rm.change(node_id, used=ZERO)
        world.lead(True)
        await world.advance(0.5)
        world.rm.change(node_id, used=USED)
        assert set(await history(world, 4, step=0.1)) == {CLAIM}


async def test_a_resource_manager_that_is_down_freezes_capacity_and_claim() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.rm.down = ConnectError("refused")
        await world.advance(5)
        calls = len(world.rm.batches)
        world.kube.annotate("node-1", origin=origin_text(5000, "8Gi"))
        assert set(await history(world, 700, step=20)) == {CLAIM}
        assert len(world.rm.batches) == calls
        world.rm.down = None
        await world.advance(8)
        assert world.rm.capacity(node_id) == Resource(8192, 5)
        assert world.claim() == CLAIM


async def test_an_empty_node_list_after_a_restart_changes_no_claim() -> None:
    world = World()
    world.manager(1, used=USED)
    world.manager(2)
    async with world:
        reports = dict(world.rm.reports)
        world.rm.down = ConnectError("refused")
        await world.advance(3)
        world.rm.down = None
        world.rm.reports.clear()
        patches = len(world.kube.patches)
        await world.advance(30)
        world.rm.reports.update(reports)
        await world.advance(5)
        assert len(world.kube.patches) == patches
        assert world.claim() == CLAIM


async def test_a_foreign_entry_is_kept_when_ours_changes() -> None:
    foreign = third_text(3000, 1 << 30, name="other-scheduler")
    world = World()
    world.node(third=foreign)
    node_id = world.manager(used=USED)
    async with world:
        names = [a["name"] for a in json.loads(world.kube.annotation("node-1") or "")["allocations"]]
        assert sorted(names) == ["hadoop-yarn", "other-scheduler"]
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 17)


async def test_a_conflict_is_repeated_at_once_on_the_new_text() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.silent = True
        world.kube.annotate("node-1", third=_with_other(world.kube.annotation("node-1")))
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(2)
        assert world.claim() == (9000, 9216)
        assert "other-scheduler" in (world.kube.annotation("node-1") or "")


@pytest.mark.parametrize(
    "error",
    [connection_lost(), ServerError("500"), ThrottledError("429", retry_after_seconds=3), ForbiddenError("403")],
    ids=["lost", "500", "429", "403"],
)
async def test_a_patch_that_fails_is_repeated_with_growing_waits(error: Exception) -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        patches = len(world.kube.patches)
        world.kube.patch_errors.extend([error] * 4)
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(2)
        assert len(world.kube.patches) - patches <= 3
        await world.advance(30)
        assert world.claim() == (9000, 9216)
        assert len(world.kube.patches) - patches == 5


async def test_a_throttled_patch_waits_as_long_as_the_server_asks() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        patches = len(world.kube.patches)
        world.kube.patch_errors.append(ThrottledError("429", retry_after_seconds=10))
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(9)
        assert len(world.kube.patches) == patches + 1
        await world.advance(4)
        assert world.claim() == (9000, 9216)


async def test_a_refusal_that_a_person_has_to_mend_is_told() -> None:
    world = World()
    world.kube.patch_errors.append(ForbiddenError("PATCH nodes: 403"))
    world.manager(used=USED)
    async with world:
        refused = [event for event in world.events.of_controller if event[1] == "ClaimRefused"]
        assert len(refused) == 1
        assert "node-1" in refused[0][2]


async def test_a_patch_of_a_node_that_is_gone_is_given_up() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.patch_errors.append(NotFoundError("404"))
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(1.3)
        world.kube.delete("nodes", "node-1")
        patches = len(world.kube.patches)
        await world.advance(60)
        assert len(world.kube.patches) == patches
        assert world.controller.book.memory("node-1") is None


async def test_many_claims_are_written_at_once_but_one_at_a_time_on_a_node() -> None:
    world = World(settings(kubernetes={"parallel_patches": 3}))
    for index in range(1, 8):
        world.manager(index)
    world.kube.gate.clear()
    async with world:
        assert len(world.kube.patches) == 3
        assert len({name for name, _, _ in world.kube.patches}) == 3
        world.kube.gate.set()
        await world.advance(1)
        assert sorted(name for name, _, _ in world.kube.patches) == [f"node-{index}" for index in range(1, 8)]


async def test_a_claim_that_changes_while_its_patch_is_in_flight_is_written_after_it() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.gate.clear()
        patches = len(world.kube.patches)
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(2)
        world.rm.change(node_id, used=Resource(10240, 10))
        await world.advance(2)
        assert len(world.kube.patches) == patches + 1
        world.kube.gate.set()
        await world.advance(1)
        assert len(world.kube.patches) == patches + 2
        assert world.claim() == (10_000, 10240)


async def test_lost_patches_are_remembered_once_however_long_the_outage_lasts() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.down = connection_lost()
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(600)
        assert len(world.memory().claim.possible) == 1
        world.kube.down = None
        await world.advance(60)
        assert world.claim() == (9000, 9216)


def _with_other(text: str | None) -> str:
    document = json.loads(text or "{}")
    document["allocations"].append(json.loads(third_text(1, 1, name="other-scheduler"))["allocations"][0])
    return json.dumps(document)


def test_the_annotation_that_is_written_is_koordinators() -> None:
    assert THIRD == "node.koordinator.sh/thirdPartyAllocations"

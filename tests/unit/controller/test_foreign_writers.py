# SPDX-License-Identifier: Apache-2.0
"""Test that our own writes are never taken for somebody else's, and that somebody else's stop ours."""

from __future__ import annotations

import pytest

from tests.unit.controller.kubernetes import connection_lost
from tests.unit.controller.world import World, origin_text, settings, third_text
from yarn_copilot.hadoop.model import Resource

USED = Resource(8192, 8)
CLAIM = (8000, 8192)
FOREIGN = "ForeignWriterOfOurEntry"


async def test_our_patch_seen_before_its_answer_is_ours() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.answer_gate.clear()
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(3)
        assert world.claim() == (9000, 9216)
        world.kube.annotate("node-1", origin=origin_text(30_000, "64Gi"))
        await world.advance(1)
        world.kube.answer_gate.set()
        await world.advance(3)
        assert FOREIGN not in world.events.reasons("node-1")
        assert world.rm.capacity(node_id).vcores == 30


async def test_our_patches_seen_long_after_their_answers_are_ours() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.silent = True
        for vcores in (9, 10, 11):
            world.rm.change(node_id, used=Resource(1024 * vcores, vcores))
            await world.advance(2)
        assert world.claim() == (11_000, 11 * 1024)
        world.kube.release_held()
        await world.advance(3)
        assert FOREIGN not in world.events.reasons("node-1")
        assert world.claim() == (11_000, 11 * 1024)


@pytest.mark.parametrize("silent", [False, True], ids=["seen", "seen late"])
async def test_a_patch_that_landed_without_an_answer_is_ours(silent: bool) -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.lands_before_error = True
        world.kube.patch_errors.append(connection_lost())
        world.kube.silent = silent
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(1.5)
        world.rm.change(node_id, used=Resource(10240, 10))
        await world.advance(5)
        world.kube.release_held()
        await world.advance(3)
        assert FOREIGN not in world.events.reasons("node-1")
        assert world.claim() == (10_000, 10240)


async def test_the_first_write_over_a_former_leaders_claim_is_not_foreign() -> None:
    world = World()
    world.node(third=third_text(3000, 3 << 30))
    world.manager(used=USED)
    async with world:
        assert world.claim() == CLAIM
        assert FOREIGN not in world.events.reasons("node-1")


async def test_a_new_term_takes_the_claim_that_it_finds_for_its_own() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.lead(False)
        world.kube.annotate("node-1", third=third_text(9000, 9 << 30))
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(2)
        world.lead(True)
        await world.advance(4)
        world.rm.change(node_id, used=USED)
        await world.advance(4)
        assert world.claim() == CLAIM
        assert FOREIGN not in world.events.reasons("node-1")


async def test_a_foreign_change_stops_both_kinds_of_writes_with_one_event_until_the_hold_is_over() -> None:
    world = World(settings(capacity={"foreign_writer_hold_seconds": 60}))
    node_id = world.manager(used=USED)
    async with world:
        world.kube.annotate("node-1", third=third_text(3000, 3 << 30))
        await world.advance(1)
        patches, calls = len(world.kube.patches), len(world.rm.batches)
        world.kube.annotate("node-1", origin=origin_text(30_000, "64Gi"))
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(50)
        assert (len(world.kube.patches), len(world.rm.batches)) == (patches, calls)
        assert world.events.reasons("node-1").count(FOREIGN) == 1
        assert world.claim() == (3000, 3072)
        await world.advance(15)
        assert world.claim() == (9000, 9216)
        assert world.rm.capacity(node_id).vcores == 30
        assert not world.controller.notices.of("node-1")


async def test_a_writer_that_goes_on_prolongs_the_hold() -> None:
    world = World(settings(capacity={"foreign_writer_hold_seconds": 60}))
    world.manager(used=USED)
    async with world:
        patches = len(world.kube.patches)
        for cpu in range(3000, 3010):
            world.kube.annotate("node-1", third=third_text(cpu, 3 << 30))
            await world.advance(40)
        assert len(world.kube.patches) == patches
        assert world.events.reasons("node-1").count(FOREIGN) == 1


async def test_an_entry_removed_by_somebody_else_is_a_foreign_change() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        world.kube.annotate("node-1", third=None)
        await world.advance(2)
        assert world.events.reasons("node-1").count(FOREIGN) == 1
        assert world.claim() is None


async def test_another_partys_entry_is_no_foreign_change() -> None:
    world = World()
    world.node(third=third_text(1000, 1 << 30, name="other"))
    world.manager(used=USED)
    async with world:
        text = (world.kube.annotation("node-1") or "").replace('"1k"', '"2k"').replace('"1000"', '"2000"')
        world.kube.annotate("node-1", third=text)
        await world.advance(2)
        assert FOREIGN not in world.events.reasons("node-1")


async def test_an_annotation_that_was_broken_and_mended_is_no_foreign_change() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        text = world.kube.annotation("node-1")
        world.kube.annotate("node-1", third="{broken")
        await world.advance(2)
        assert world.kube.annotation("node-1") == "{broken"
        world.kube.annotate("node-1", third=text)
        world.rm.change(node_id, used=Resource(9216, 9))
        await world.advance(3)
        assert FOREIGN not in world.events.reasons("node-1")
        assert world.claim() == (9000, 9216)

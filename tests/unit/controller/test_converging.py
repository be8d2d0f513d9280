# SPDX-License-Identifier: Apache-2.0
"""Test how the whole controller comes to rest, and that it stays there."""

from __future__ import annotations

from tests.unit.controller.world import World, origin_text
from yarn_copilot.hadoop.model import Resource


async def test_capacity_and_claim_converge_from_nothing() -> None:
    world = World()
    node_id = world.manager(used=Resource(2048, 2), capacity=Resource(4096, 4))
    async with world:
        assert world.rm.capacity(node_id) == Resource(64 * 1024, 20)
        assert world.claim() == (2000, 2048)


async def test_kubernetes_use_and_other_third_parties_are_left_out_of_capacity() -> None:
    world = World()
    node_id = world.manager()
    world.pod("job", cpu="5000", memory="8Gi")
    async with world:
        assert world.rm.capacity(node_id) == Resource(56 * 1024, 15)


async def test_the_documented_node_becomes_60_vcores_and_234581_mib_and_comes_back_whole() -> None:
    world = World()
    world.node(origin=(60646, 245976973438))
    node_id = world.manager()
    async with world:
        assert world.rm.capacity(node_id) == Resource(234581, 60)
        world.rm.change(node_id, used=Resource(234581, 60))
        await world.advance(2)
        text = world.kube.annotation("node-1") or ""
        assert '"60k"' in text or '"60000"' in text
        assert "245976006656" in text or '"234581Mi"' in text


async def test_a_thousand_idle_cycles_write_nothing() -> None:
    world = World()
    world.manager(1, used=Resource(2048, 2))
    world.manager(2)
    async with world:
        batches, patches = len(world.rm.batches), len(world.kube.patches)
        reads = world.rm.reads
        for _ in range(20):
            await world.advance(50)
            world.report("node-1")
            world.report("node-2")
        assert world.rm.reads - reads >= 990
        assert (len(world.rm.batches), len(world.kube.patches)) == (batches, patches)


async def test_one_change_of_all_nodes_is_one_call() -> None:
    world = World()
    for index in range(1, 6):
        world.manager(index)
    async with world:
        batches = len(world.rm.batches)
        for index in range(1, 6):
            world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
        await world.advance(1)
        assert len(world.rm.batches) == batches + 1
        assert {resource.vcores for resource in map(world.rm.capacity, world.rm.reports)} == {9}


async def test_the_first_claim_already_tells_the_use_that_yarn_has() -> None:
    world = World()
    world.manager(used=Resource(8 * 1024, 8), capacity=Resource(16 * 1024, 16))
    async with world:
        assert len(world.kube.patches) == 1
        assert world.claim() == (8000, 8192)
